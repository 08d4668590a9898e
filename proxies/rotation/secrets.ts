/** The passwords of a job, for plugins that know no other kind of secret. */
import type { NewSecret, SignIn } from '../../src/contract/change.ts'
import { ChangeError } from './plugin.ts'

/** Returns the account's password. An empty one is no proof: protocols have meanings of their own for it. */
export function passwordOf({ secret }: SignIn): string {
  if (secret.type !== 'password')
    throw new ChangeError('unsupported', 'this kind of target knows passwords only')
  if (secret.password === '') throw new ChangeError('unsupported', 'an empty password is never sent')
  return secret.password
}

/** Returns the new password; `fits` describes all that the target can take. */
export function newPasswordOf(next: NewSecret, fits: RegExp, words: string): string {
  if (next.type !== 'password')
    throw new ChangeError('unsupported', 'this kind of target knows passwords only')
  if (!fits.test(next.password))
    throw new ChangeError('refused_password', `the new password must be ${words}`)
  return next.password
}

/** Returns a parameter that is a text, or undefined if it is absent or empty. */
export function textOf(
  parameters: Readonly<Record<string, string | number | boolean>>,
  name: string,
): string | undefined {
  const value = parameters[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
