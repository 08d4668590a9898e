/**
 * The credentials that users log in with at a target without a stored account: their own name (account
 * mapping), or a login and password that they type (interactive login).
 */
import { Buffer } from 'node:buffer'
import { hasUnprintable } from './names.ts'

/** UTF-8 bytes of a typed login. */
export const MAX_TYPED_LOGIN_BYTES = 128
/** UTF-8 bytes of a typed password. */
export const MAX_TYPED_PASSWORD_BYTES = 1024

/** Returns the login that a user is mapped to: the user's name without its authentication domain. */
export function mappedLogin(userName: string): string {
  const at = userName.lastIndexOf('@')
  return at > 0 ? userName.slice(0, at) : userName
}

/**
 * Returns the error in a typed login, for the user, or undefined if it is valid. It never repeats the login.
 */
export function typedLoginFlaw(login: string): string | undefined {
  if (login === '') return 'the login must not be empty'
  if (MAX_TYPED_LOGIN_BYTES < login.length || MAX_TYPED_LOGIN_BYTES < Buffer.byteLength(login)) {
    return `the login must not be longer than ${MAX_TYPED_LOGIN_BYTES} bytes`
  }
  // login(1) of old rlogind and telnetd reads it as an option (-froot: no password)
  if (login.startsWith('-')) return 'the login must not begin with a hyphen'
  return hasUnprintable(login) ? 'the login must not hold control or invisible characters' : undefined
}

/** Returns the error in a typed password, or undefined if it is valid. */
export function typedPasswordFlaw(password: string): string | undefined {
  if (password === '') return 'the password must not be empty'
  if (MAX_TYPED_PASSWORD_BYTES < password.length || MAX_TYPED_PASSWORD_BYTES < Buffer.byteLength(password)) {
    return `the password must not be longer than ${MAX_TYPED_PASSWORD_BYTES} bytes`
  }
  return undefined
}
