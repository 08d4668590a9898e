/** LDAP (RFC 4511) for the plugins of directories: a connection by TLS, a bind, and words for refusals. */
import { Buffer } from 'node:buffer'
import { BerReader, Client, PasswordPolicyControl, PasswordPolicyError, ResultCodeError } from 'ldapts'
import type { ChangeTarget } from '../../src/contract/change.ts'
import { Connection, nameOf } from './connection.ts'
import { ChangeError, said } from './plugin.ts'

/** Result codes (RFC 4511, appendix A). */
export const RESULT = {
  operationsError: 1,
  protocolError: 2,
  strongerAuthRequired: 8,
  referral: 10,
  constraintViolation: 19,
  noSuchObject: 32,
  invalidCredentials: 49,
  insufficientAccessRights: 50,
  busy: 51,
  unavailable: 52,
  unwillingToPerform: 53,
}
/** The ExtendedRequest of RFC 4511 4.14.1, with message number 1. */
const START_TLS = Buffer.from('301d0201017718801631' + '2e332e362e312e342e312e313436362e3230303337', 'hex')
/** Longest reply to it. */
const MAX_REPLY = 4096
const EXTENDED_RESPONSE = 0x78

/** A bound client, and the connection below it. */
export interface Directory {
  client: Client
  connection: Connection
  /** Binds; throws ResultCodeError, or ChangeError if the password cannot be judged. */
  bind(name: string, password: string): Promise<void>
}

/** Opens a directory for the work, and closes it. `isSecure` false sends clear text. */
export function inDirectory<T>(
  target: ChangeTarget,
  signal: AbortSignal,
  { isSecure, startsTls, secrets }: { isSecure: boolean; startsTls: boolean; secrets: readonly string[] },
  work: (directory: Directory) => Promise<T>,
): Promise<T> {
  return Connection.during(
    target,
    signal,
    (error) => explained(error, target, secrets),
    async (connection) => {
      if (startsTls) await startTls(connection)
      if (isSecure) await connection.secure()
      const client = new Client({
        url: 'ldap://directory.invalid',
        createConnection: () => connection.socket,
        strictDN: false,
      })
      // The library only logs what it cannot read, and would wait for ever.
      const { messageParser } = client as unknown as { messageParser: NodeJS.EventEmitter }
      messageParser.on('error', (error: Error) => connection.fail(malformed(nameOf(target), error)))
      const bind = (name: string, password: string) => bindAs(client, target, name, password, secrets)
      return await work({ client, connection, bind })
    },
  )
}

async function startTls(connection: Connection): Promise<void> {
  connection.socket.write(START_TLS)
  const name = nameOf(connection.target)
  const reply = await connection.reply((bytes) => {
    if (bytes.length < 2) return undefined
    const reader = new BerReader(bytes)
    let length: number | undefined
    try {
      // Also the number of octets before the content depends on the form of the length (X.690 8.1.3).
      length = reader.readSequence() === null ? undefined : reader.offset + reader.length
    } catch (error) {
      throw malformed(name, error)
    }
    if (reader.length < 0 || (length ?? bytes.length) > MAX_REPLY)
      throw malformed(name, new Error('an impossible length'))
    return length
  })
  let code: number | null
  try {
    const reader = new BerReader(reply)
    reader.readSequence()
    reader.readInt()
    reader.readSequence(EXTENDED_RESPONSE)
    code = reader.readEnumeration()
  } catch (error) {
    throw malformed(name, error)
  }
  if (code !== 0) throw new ChangeError('untrusted', `${name} offers no StartTLS (result ${code})`)
}

function malformed(name: string, error: unknown): ChangeError {
  return new ChangeError('unexpected_answer', `${name} sent no LDAP: ${said((error as Error).message)}`)
}

async function bindAs(
  client: Client,
  target: ChangeTarget,
  name: string,
  password: string,
  secrets: readonly string[],
): Promise<void> {
  const policy = new PasswordPolicyControl()
  try {
    await client.bind(name, password, policy)
  } catch (error) {
    const refusedBy = policy.value?.error
    if (error instanceof ResultCodeError && error.code === RESULT.invalidCredentials) {
      if (refusedBy === PasswordPolicyError.AccountLocked)
        throw new ChangeError('refused_sign_in', `${nameOf(target)}: the account is locked`)
      if (refusedBy === PasswordPolicyError.PasswordExpired)
        throw new ChangeError('refused_sign_in', `${nameOf(target)}: the password has expired`)
    }
    if (error instanceof ResultCodeError && error.code === RESULT.strongerAuthRequired)
      throw new ChangeError('refused_sign_in', said(error.message, ...secrets))
    throw error
  }
}

/** Returns the error of a refused change: nothing was changed, unless the server was not able to answer. */
export function refusal(error: unknown, target: ChangeTarget, secrets: readonly string[]): ChangeError {
  if (!(error instanceof ResultCodeError)) throw error
  const text = `${nameOf(target)}: ${said(error.message, ...secrets)}`
  switch (error.code) {
    case RESULT.constraintViolation:
      return new ChangeError('refused_password', text)
    case RESULT.referral:
    case RESULT.noSuchObject:
    case RESULT.insufficientAccessRights:
    case RESULT.unwillingToPerform:
    case RESULT.strongerAuthRequired:
      return new ChangeError('not_permitted', text)
    case RESULT.protocolError:
      return new ChangeError('unsupported', text)
    default:
      return new ChangeError('unclear', text)
  }
}

function explained(error: Error, target: ChangeTarget, secrets: readonly string[]): ChangeError | undefined {
  const text = `${nameOf(target)}: ${said(error.message, ...secrets)}`
  if (error instanceof ResultCodeError) {
    const isAway = error.code === RESULT.busy || error.code === RESULT.unavailable
    return new ChangeError(isAway ? 'unreachable' : 'unclear', text)
  }
  if (error.name === 'InvalidAsn1Error' || 'messageDetails' in error)
    return new ChangeError('unexpected_answer', text)
  return undefined
}

/** Returns a value for a filter, escaped (RFC 4515 3). */
export function escapeFilter(value: string): string {
  return [...Buffer.from(value, 'utf8')]
    .map((byte) => (isPlain(byte) ? String.fromCharCode(byte) : hex(byte)))
    .join('')
}

/** Returns a value for a name, escaped (RFC 4514 2.4). */
export function escapeName(value: string): string {
  return escapeFilter(value)
}

const hex = (byte: number) => `\\${byte.toString(16).padStart(2, '0')}`
/** Letters, digits and a few more stay as they are, so that messages can be read. */
const isPlain = (byte: number) => /[A-Za-z0-9@._-]/.test(String.fromCharCode(byte))
