/**
 * Users of MySQL and MariaDB. A value goes into a statement only after the session's quoting is known, whatever the
 * server's settings are.
 */

import { checkServerIdentity, type TLSSocket } from 'node:tls'
import { createConnection, type Connection as MysqlConnection, type RowDataPacket } from 'mysql2'
import type { ChangeTarget, SecretChange, SignIn } from '../../src/contract/change.ts'
import { Connection, isUntrusted, nameOf, tlsName } from './connection.ts'
import { ChangeError, type ChangePlugin, said } from './plugin.ts'
import { newPasswordOf, passwordOf, textOf } from './secrets.ts'

/** Bytes before a packet's payload: its length and its number. */
const PACKET_HEADER = 4
/** Protocol::HandshakeV10. */
const PROTOCOL_VERSION = 10

/** Error numbers (MySQL, Server Error Message Reference; those from 4000 on are MariaDB's). */
const ERROR = {
  accessDenied: 1045,
  /** The user signs in by another way than a password, as by unix_socket. */
  noPassword: 1698,
  mustChangeAtLogin: 1862,
  mustChange: 1820,
}
const NO_ROOM: readonly number[] = [1040, 1053, 1203, 1226]
const NOT_LET_IN: readonly number[] = [ERROR.noPassword, 1129, 1130, 1251, 3118, 3955, 4151]
const NOT_PERMITTED: readonly number[] = [1044, 1131, 1133, 1142, 1227, 1290, 1396, 1410, 1836]
/** By the server's checks of strength, length, and repetition. */
const REFUSED: readonly number[] = [1372, 1819, 3638, 3894]

export const mysql: ChangePlugin = {
  async verify(target, as, signal) {
    try {
      await signedIn(target, as, signal, async () => undefined)
      return 'valid'
    } catch (error) {
      if (error instanceof Refused && error.number === ERROR.accessDenied) return 'invalid'
      // The server says so after the password was right.
      if (error instanceof Refused && error.number === ERROR.mustChangeAtLogin) return 'valid'
      throw error
    }
  },

  async change(target, change, signal) {
    const { account, by, next } = change
    const password = newPasswordOf(
      next,
      /^[^\p{Cc}\p{Cs}]{1,256}$/u,
      'of 1 to 256 characters that can be seen',
    )
    const hidden = account.secret.type === 'password' ? [account.secret.password, password] : [password]
    await signedIn(target, by, signal, async (client) => {
      const query = (text: string) => answerOf(client, text, target, hidden)
      // A user whose password has expired may run one kind of statement only; its quoting is then the server's.
      const isStrict = await query("set session sql_mode = 'NO_BACKSLASH_ESCAPES'").then(
        () => true,
        (error: unknown) => {
          if ((error as { number?: number }).number === ERROR.mustChange) return false
          throw error
        },
      )
      if (!isStrict && password.includes('\\')) {
        throw new ChangeError(
          'refused_password',
          'a user whose password has expired gets none with a backslash',
        )
      }
      await query(statement(target, change, versionOf(client), password))
    })
  },
}

/** Returns the statement that sets the password, which belongs to NO_BACKSLASH_ESCAPES. */
export function statement(
  { parameters }: Pick<ChangeTarget, 'parameters'>,
  { account, isAdministrator }: Pick<SecretChange, 'account' | 'isAdministrator'>,
  version: string,
  password: string,
): string {
  if (!isAdministrator) {
    // MariaDB's ALTER USER needs a privilege even for the own user; MySQL has no PASSWORD() any more.
    return /mariadb/i.test(version)
      ? `set password = password(${quoted(password)})`
      : `alter user current_user() identified by ${quoted(password)}`
  }
  const hosts = (textOf(parameters, 'account_hosts') ?? '%').split(',')
  const users = hosts.map(
    (host) => `${quoted(account.login)}@${quoted(host.trim())} identified by ${quoted(password)}`,
  )
  return `alter user ${users.join(', ')}`
}

/** Quotes a value for a session with NO_BACKSLASH_ESCAPES: the quote alone has a meaning. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}

/** The server's own refusal, by its number. */
class Refused extends ChangeError {
  readonly number: number

  constructor(code: ChangeError['code'], message: string, number: number) {
    super(code, message)
    this.number = number
  }
}

function signedIn(
  target: ChangeTarget,
  as: SignIn,
  signal: AbortSignal,
  work: (client: MysqlConnection) => Promise<void>,
): Promise<void> {
  const password = passwordOf(as)
  return Connection.during(
    target,
    signal,
    (error) => explained(error, target, password),
    async (connection) => {
      const client = clientOn(connection, as.login, password)
      client.on('error', () => undefined)
      await new Promise<void>((resolve, reject) => {
        client.connect((error) => (error ? reject(refusal(error, target, password) ?? error) : resolve()))
      })
      requireOrder(client, target)
      await work(client)
    },
  )
}

function clientOn(connection: Connection, user: string, password: string): MysqlConnection {
  const { socket, target } = connection
  const isSecure = target.parameters['insecure'] !== true
  // The library replaces the code of an error from here, so the job fails by itself.
  const refuseMethod = () => () => {
    const asks = 'asks for the password in a form that another server could read, without TLS'
    connection.fail(new ChangeError('untrusted', `${nameOf(target)} ${asks}`))
    throw new Error('refused')
  }
  const client = createConnection({
    user,
    password,
    host: target.host,
    port: target.port,
    stream: socket,
    charset: 'utf8mb4_bin',
    connectTimeout: 0,
    // Without these a server could ask for a file of this machine, or run a second statement.
    flags: [
      '-LOCAL_FILES',
      '-MULTI_STATEMENTS',
      '-COMPRESS',
      '-CONNECT_ATTRS',
      '-MULTI_FACTOR_AUTHENTICATION',
    ],
    multipleStatements: false,
    enableCleartextPlugin: false,
    authPlugins: isSecure ? {} : { caching_sha2_password: refuseMethod, sha256_password: refuseMethod },
    ...(isSecure && { ssl: { ...authorities(target), rejectUnauthorized: true, minVersion: 'TLSv1.2' } }),
  })
  if (isSecure) checkIdentity(client, connection)
  return client
}

const authorities = ({ trust }: ChangeTarget) =>
  trust.certificates === undefined ? {} : { ca: trust.certificates }

/** The part of the library's connection that begins TLS. */
interface TlsSide {
  stream: TLSSocket
  startTLS(onSecure: (error?: Error) => void): void
}

/**
 * Checks the name in the certificate, which the library compares with `localhost` for an address; and that no byte
 * followed the greeting: a part of a packet would become the beginning of the first one inside TLS.
 */
function checkIdentity(client: MysqlConnection, connection: Connection): void {
  const side = client as unknown as TlsSide
  const { target } = connection
  const start = side.startTLS.bind(side)
  side.startTLS = (onSecure) => {
    const greeting = PACKET_HEADER + connection.head.readUIntLE(0, 3)
    if (connection.received !== greeting) {
      connection.fail(new ChangeError('untrusted', `${nameOf(target)} sent bytes between clear text and TLS`))
      return
    }
    start((error) => {
      const fault = error ?? checkServerIdentity(tlsName(target), side.stream.getPeerCertificate())
      if (fault) connection.fail(untrusted(fault, target))
      else onSecure()
    })
    connection.socket = side.stream
    connection.watch(side.stream)
  }
}

function untrusted(error: Error, target: ChangeTarget): ChangeError {
  if (isUntrusted(error)) {
    return new ChangeError(
      'untrusted',
      `the certificate of ${nameOf(target)} is not trusted: ${said(error.message)}`,
    )
  }
  return new ChangeError('unreachable', `TLS with ${nameOf(target)} failed: ${said(error.message)}`)
}

function answerOf(
  client: MysqlConnection,
  text: string,
  target: ChangeTarget,
  hidden: readonly string[],
): Promise<RowDataPacket[]> {
  return new Promise((resolve, reject) => {
    client.query<RowDataPacket[]>(text, (error, rows) =>
      error ? reject(refusal(error, target, ...hidden) ?? error) : resolve(rows),
    )
  })
}

/** The greeting, and the packets whose number was not the next one, as the library keeps them. */
interface Seen {
  _handshakePacket?: { protocolVersion?: number; serverVersion?: string }
  _outOfOrderPackets: readonly unknown[]
}

/** Refuses a sign-in that is none: the library takes any packets in any order, and zeros for success. */
function requireOrder(client: MysqlConnection, target: ChangeTarget): void {
  const { _handshakePacket: greeting, _outOfOrderPackets: astray } = client as unknown as Seen
  if (greeting?.protocolVersion === PROTOCOL_VERSION && astray.length === 0) return
  throw new ChangeError('unexpected_answer', `${nameOf(target)} does not speak the protocol of MySQL`)
}

/** Returns the version of the greeting, which also an expired user has seen. */
function versionOf(client: MysqlConnection): string {
  return (client as unknown as Seen)._handshakePacket?.serverVersion ?? ''
}

/** Returns the error of a refusal by the server, or undefined for another one. */
function refusal(error: Error, target: ChangeTarget, ...hidden: readonly string[]): ChangeError | undefined {
  if (error instanceof ChangeError) return error
  const { errno: number } = error as NodeJS.ErrnoException
  const text = `${nameOf(target)}: ${said(error.message, ...hidden)}`
  if (number === undefined || number < 1000) return undefined
  if (number === ERROR.accessDenied || number === ERROR.mustChangeAtLogin || NOT_LET_IN.includes(number))
    return new Refused('refused_sign_in', text, number)
  if (NO_ROOM.includes(number)) return new Refused('unreachable', text, number)
  if (NOT_PERMITTED.includes(number)) return new Refused('not_permitted', text, number)
  if (REFUSED.includes(number)) return new Refused('refused_password', text, number)
  return new Refused('unclear', text, number)
}

function explained(error: Error, target: ChangeTarget, password: string): ChangeError | undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  const text = `${nameOf(target)}: ${said(error.message, password)}`
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT')
    return new ChangeError('untrusted', `${nameOf(target)} offers no TLS`)
  if (code.startsWith('AUTH_SWITCH') || code === 'MYSQL_CLEAR_PASSWORD_NOT_ENABLED')
    return new ChangeError('untrusted', text)
  if (code === 'PROTOCOL_CONNECTION_LOST') return new ChangeError('unreachable', text)
  if (/^(PROTOCOL|HANDSHAKE|MALFORMED)/.test(code)) return new ChangeError('unexpected_answer', text)
  return undefined
}
