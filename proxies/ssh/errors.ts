/** What a user is told when there is no way to the target. */

/** The message is for the user: it names the target as the user does and never the credential. */
export class TargetError extends Error {
  override name = 'TargetError'
}

/** Instead of what only an administrator should read; that is in the audit log. */
export const INTERNAL = 'the bastion has an internal problem, try again later'
