/**
 * Accounts of an LDAP directory: by the Password Modify operation (RFC 3062), which leaves storage and rules to the server.
 */
import { Attribute, BerWriter, Change, ResultCodeError } from 'ldapts'
import type { ChangeTarget, SecretChange, SignIn } from '../../src/contract/change.ts'
import { nameOf } from './connection.ts'
import { type Directory, escapeFilter, escapeName, inDirectory, RESULT, refusal } from './directory.ts'
import { ChangeError, type ChangePlugin, said } from './plugin.ts'
import { newPasswordOf, passwordOf, textOf } from './secrets.ts'

/** Password Modify (RFC 3062) and "Who am I?" (RFC 4532). */
const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1'
const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3'
/** A login of this form is a name of an entry itself. */
const DISTINGUISHED_NAME = /^[A-Za-z][A-Za-z0-9.-]*=.+/

export const ldap: ChangePlugin = {
  async verify(target, as, signal) {
    const password = passwordOf(as)
    return await inDirectory(
      target,
      signal,
      { ...securityOf(target), secrets: [password] },
      async (directory) => {
        const name = await nameIn(directory, as.login)
        try {
          await directory.bind(name, password)
        } catch (error) {
          if (error instanceof ResultCodeError && error.code === RESULT.invalidCredentials) return 'invalid'
          throw error
        }
        await proveIdentity(directory)
        return 'valid'
      },
    )
  },

  async change(target, change, signal) {
    const { account, by, isAdministrator, next } = change
    const password = newPasswordOf(
      next,
      /^[^\p{Cc}\p{Cs}]{1,256}$/u,
      'of 1 to 256 characters that can be seen',
    )
    const secrets = secretsOf(change, password)
    return await inDirectory(target, signal, { ...securityOf(target), secrets }, async (directory) => {
      const name = await signIn(directory, by, secrets)
      const entry = isAdministrator ? await nameIn(directory, account.login) : name
      try {
        await modify(directory, entry, isAdministrator ? undefined : passwordOf(account), password)
      } catch (error) {
        throw refusal(error, target, secrets)
      }
    })
  },
}

/** Returns whether there is TLS, and how it begins. */
function securityOf({ parameters }: ChangeTarget): { isSecure: boolean; startsTls: boolean } {
  const startsTls = parameters['start_tls'] === true
  return { isSecure: startsTls || parameters['insecure'] !== true, startsTls }
}

/** Returns all secrets of a job, which no message may hold. */
export function secretsOf({ account, by }: SecretChange, next: string): string[] {
  const stored = [account.secret, by.secret].map((secret) =>
    secret.type === 'password' ? secret.password : '',
  )
  return [next, ...stored]
}

async function signIn(directory: Directory, by: SignIn, secrets: readonly string[]): Promise<string> {
  const name = await nameIn(directory, by.login)
  try {
    await directory.bind(name, passwordOf(by))
  } catch (error) {
    if (!(error instanceof ResultCodeError)) throw error
    throw new ChangeError(
      'refused_sign_in',
      `${nameOf(directory.connection.target)}: ${said(error.message, ...secrets)}`,
    )
  }
  return name
}

/**
 * Returns the name of a login's entry: the login itself if it is one, else by the template `user_dn`, else by a search,
 * which runs with the rights of the present bind.
 */
async function nameIn({ client, connection }: Directory, login: string): Promise<string> {
  const { parameters } = connection.target
  if (DISTINGUISHED_NAME.test(login)) return login
  const template = textOf(parameters, 'user_dn')
  if (template !== undefined) return template.replaceAll('{login}', () => escapeName(login))
  const base = textOf(parameters, 'search_base')
  if (base === undefined)
    throw new ChangeError('unsupported', 'neither `user_dn` nor `search_base` says where the account is')
  const filter = textOf(parameters, 'search_filter') ?? '(uid={login})'
  const { searchEntries } = await client.search(base, {
    filter: filter.replaceAll('{login}', () => escapeFilter(login)),
    scope: 'sub',
    attributes: ['1.1'],
    sizeLimit: 2,
  })
  const [found, another] = searchEntries
  if (!found || another) {
    const what = found ? 'several entries are' : 'no entry is'
    throw new ChangeError('unsupported', `${nameOf(connection.target)}: ${what} found for ${said(login)}`)
  }
  return found.dn
}

/** Throws if the server took the bind for an anonymous one. */
async function proveIdentity({ client, connection }: Directory): Promise<void> {
  try {
    const { value } = await client.exop(WHO_AM_I)
    if (value === undefined || value === '')
      throw new ChangeError('unclear', `${nameOf(connection.target)} takes the account for an anonymous one`)
  } catch (error) {
    // Not every server knows it, and an account that has to change its password may do nothing else.
    if (!(error instanceof ResultCodeError)) throw error
  }
}

async function modify(
  { client, connection }: Directory,
  name: string,
  old: string | undefined,
  next: string,
): Promise<void> {
  try {
    await client.exop(PASSWORD_MODIFY, passwordModify(name, old, next))
  } catch (error) {
    const mayReplace = connection.target.parameters['modify_user_password'] === true
    if (!mayReplace || !(error instanceof ResultCodeError) || error.code !== RESULT.protocolError) throw error
    await client.modify(name, [
      new Change({
        operation: 'replace',
        modification: new Attribute({ type: 'userPassword', values: [next] }),
      }),
    ])
  }
}

/** PasswdModifyRequestValue (RFC 3062 2). */
function passwordModify(name: string, old: string | undefined, next: string) {
  const writer = new BerWriter()
  writer.startSequence()
  writer.writeString(name, 0x80)
  if (old !== undefined) writer.writeString(old, 0x81)
  writer.writeString(next, 0x82)
  writer.endSequence()
  return writer.buffer
}
