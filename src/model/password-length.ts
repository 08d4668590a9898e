/** Characters of a user's new password: the default minimum, and the range that the configuration may set. */
export const MIN_LENGTH = 8
export const LEAST_MIN_LENGTH = 8
export const MOST_MIN_LENGTH = 64
