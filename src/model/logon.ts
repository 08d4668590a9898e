/**
 * What somebody logs in with at a target where no stored account is used: their own name (account mapping), or the
 * login and password that they are asked for (interactive login).
 */
import { Buffer } from 'node:buffer'
import { hasUnprintable } from './names.ts'

/** UTF-8 bytes of a login that is typed. */
export const MAX_TYPED_LOGIN_BYTES = 128
/** UTF-8 bytes of a password that is typed. */
export const MAX_TYPED_PASSWORD_BYTES = 1024

/** The login that a user is mapped to: the user's name without the part that tells an authentication domain. */
export function mappedLogin(userName: string): string {
  const at = userName.lastIndexOf('@')
  return at > 0 ? userName.slice(0, at) : userName
}

/** What is wrong with a login that was typed, for the person; undefined: nothing. It is never repeated. */
export function typedLoginFlaw(login: string): string | undefined {
  if (login === '') return 'the login must not be empty'
  if (MAX_TYPED_LOGIN_BYTES < login.length || MAX_TYPED_LOGIN_BYTES < Buffer.byteLength(login)) {
    return `the login must not be longer than ${MAX_TYPED_LOGIN_BYTES} bytes`
  }
  // login(1) of old rlogind and telnetd takes it for an option (-froot: no password)
  if (login.startsWith('-')) return 'the login must not begin with a hyphen'
  return hasUnprintable(login) ? 'the login must not hold control or invisible characters' : undefined
}

/** The same of a password. */
export function typedPasswordFlaw(password: string): string | undefined {
  if (password === '') return 'the password must not be empty'
  if (MAX_TYPED_PASSWORD_BYTES < password.length || MAX_TYPED_PASSWORD_BYTES < Buffer.byteLength(password)) {
    return `the password must not be longer than ${MAX_TYPED_PASSWORD_BYTES} bytes`
  }
  return undefined
}
