/** Characters of a new password of a user: unless the configuration says otherwise, and what it may say. */
export const MIN_LENGTH = 8
export const LEAST_MIN_LENGTH = 8
export const MOST_MIN_LENGTH = 64
