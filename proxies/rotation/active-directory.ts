/**
 * Accounts of an Active Directory domain: `unicodePwd` over LDAPS ([MS-ADTS] 3.1.1.3.1.5). An account changes its own by
 * deleting the old value and adding the new one; an administrator replaces it.
 */
import { Buffer } from 'node:buffer'
import { Attribute, Change, ResultCodeError } from 'ldapts'
import type { ChangeTarget, SignIn } from '../../src/contract/change.ts'
import { nameOf } from './connection.ts'
import { type Directory, escapeFilter, inDirectory, RESULT, refusal } from './directory.ts'
import { secretsOf } from './ldap.ts'
import { ChangeError, type ChangePlugin, said } from './plugin.ts'
import { newPasswordOf, passwordOf, textOf } from './secrets.ts'

/** Why a bind was refused, by the `data` of its text (Windows error codes, hexadecimal). */
const REASONS: Readonly<Record<string, { words: string; isRight?: true }>> = {
  '525': { words: 'no such account' },
  '52e': { words: 'wrong password' },
  '530': { words: 'it may not sign in at this time' },
  '531': { words: 'it may not sign in from here' },
  '532': { words: 'its password has expired', isRight: true },
  '533': { words: 'it is disabled' },
  '701': { words: 'it has expired' },
  '773': { words: 'it has to change its password', isRight: true },
  '775': { words: 'it is locked' },
}
const WRONG: readonly string[] = ['525', '52e']
/** Win32 codes before the text of a refused change. */
const PASSWORD_RESTRICTION = '0000052D'
const WRONG_OLD_PASSWORD = '00000056'

const SECURITY = { isSecure: true, startsTls: false }
/** 127 is the most that Windows itself lets a user type. */
const FITS = /^[^\p{Cc}\p{Cs}]{1,127}$/u

export const activeDirectory: ChangePlugin = {
  async verify(target, as, signal) {
    const password = passwordOf(as)
    return await inDirectory(target, signal, { ...SECURITY, secrets: [password] }, async (directory) => {
      const base = await baseOf(directory)
      const refused = await bind(directory, as, [password])
      if (refused === undefined) {
        await proveIdentity(directory, base)
        return 'valid'
      }
      if (refused.isRight) return 'valid'
      if (WRONG.includes(refused.data)) return 'invalid'
      throw new ChangeError('refused_sign_in', refused.message)
    })
  },

  async change(target, change, signal) {
    const { account, by, isAdministrator, next } = change
    const password = newPasswordOf(next, FITS, 'of 1 to 127 characters that can be seen')
    const secrets = secretsOf(change, password)
    return await inDirectory(target, signal, { ...SECURITY, secrets }, async (directory) => {
      const base = await baseOf(directory)
      const refused = await bind(directory, by, secrets)
      if (refused) throw new ChangeError('refused_sign_in', refused.message)
      const name = await nameIn(directory, base, account.login)
      const set = (operation: 'add' | 'delete' | 'replace', value: string) =>
        new Change({
          operation,
          modification: new Attribute({ type: 'unicodePwd', values: [encoded(value)] }),
        })
      const changes = isAdministrator
        ? [set('replace', password)]
        : [set('delete', passwordOf(account)), set('add', password)]
      try {
        await directory.client.modify(name, changes)
      } catch (error) {
        throw refusalOf(error, target, secrets)
      }
    })
  },
}

/** Returns the value of unicodePwd: in quotes, UTF-16 with the low byte first. */
function encoded(password: string): Buffer {
  return Buffer.from(`"${password}"`, 'utf16le')
}

/** Returns the name of the domain's root, which also an anonymous client may read. */
async function baseOf({ client, connection }: Directory): Promise<string> {
  const named = textOf(connection.target.parameters, 'search_base')
  if (named !== undefined) return named
  const { searchEntries } = await client.search('', { scope: 'base', attributes: ['defaultNamingContext'] })
  const value = searchEntries[0]?.['defaultNamingContext']
  if (typeof value !== 'string')
    throw new ChangeError('unexpected_answer', `${nameOf(connection.target)} is no Active Directory`)
  return value
}

/** A bind that the server refused, and whether the password was right all the same. */
interface RefusedBind {
  data: string
  message: string
  isRight: boolean
}

async function bind(
  directory: Directory,
  by: SignIn,
  secrets: readonly string[],
): Promise<RefusedBind | undefined> {
  const { target } = directory.connection
  try {
    await directory.bind(principalOf(target, by.login), passwordOf(by))
    return undefined
  } catch (error) {
    if (!(error instanceof ResultCodeError) || error.code !== RESULT.invalidCredentials) throw error
    const [, data = ''] = /\bdata ([0-9a-f]{1,8})\b/.exec(error.message) ?? []
    const { words, isRight = false } = REASONS[data] ?? { words: said(error.message, ...secrets) }
    return { data, isRight, message: `${nameOf(target)} does not let ${said(by.login)} in: ${words}` }
  }
}

/** Returns the name to bind with: as it is if it is a UPN, DOMAIN\user or a DN, else with the domain of `domain`. */
function principalOf({ parameters }: ChangeTarget, login: string): string {
  const domain = textOf(parameters, 'domain')
  return /[@\\=]/.test(login) || domain === undefined ? login : `${login}@${domain}`
}

/** Reads the domain's root, which an anonymous client may not. */
async function proveIdentity({ client, connection }: Directory, base: string): Promise<void> {
  try {
    await client.search(base, { scope: 'base', attributes: ['1.1'] })
  } catch (error) {
    if (!(error instanceof ResultCodeError) || error.code !== RESULT.operationsError) throw error
    throw new ChangeError('unclear', `${nameOf(connection.target)} takes the account for an anonymous one`)
  }
}

async function nameIn({ client, connection }: Directory, base: string, login: string): Promise<string> {
  if (/^(CN|OU|DC)=/i.test(login)) return login
  const { target } = connection
  const { searchEntries } = await client.search(base, {
    filter: `(&(objectClass=user)${filterOf(target, base, login)})`,
    scope: 'sub',
    attributes: ['1.1'],
    sizeLimit: 2,
  })
  const [found, another] = searchEntries
  if (!found || another) {
    const what = found ? 'several accounts are' : 'no account is'
    throw new ChangeError('not_permitted', `${nameOf(target)}: ${what} found for ${said(login)}`)
  }
  return found.dn
}

/** Finds a login in each form: `user`, `DOMAIN\\user`, and `user@domain`, which is stored or follows from the domain. */
function filterOf({ parameters }: ChangeTarget, base: string, login: string): string {
  const [, short = login] = /^[^\\]*\\(.+)$/.exec(login) ?? []
  const [, user = short, suffix] = /^(.+)@([^@]+)$/.exec(short) ?? []
  const byName = `(sAMAccountName=${escapeFilter(user)})`
  if (suffix === undefined) return byName
  const domain = textOf(parameters, 'domain') ?? base.replace(/^DC=/i, '').replace(/,DC=/gi, '.')
  const isOwn = suffix.toLowerCase() === domain.toLowerCase()
  return `(|(userPrincipalName=${escapeFilter(short)})${isOwn ? byName : ''})`
}

function refusalOf(error: unknown, target: ChangeTarget, secrets: readonly string[]): ChangeError {
  const { message = '' } = error as Error
  if (error instanceof ResultCodeError && message.includes(PASSWORD_RESTRICTION)) {
    const rules = 'length, complexity, history or minimum age'
    return new ChangeError('refused_password', `${nameOf(target)}: the domain's rules refuse it (${rules})`)
  }
  if (error instanceof ResultCodeError && message.includes(WRONG_OLD_PASSWORD)) {
    return new ChangeError('refused_sign_in', `${nameOf(target)}: the old password is wrong`)
  }
  return refusal(error, target, secrets)
}
