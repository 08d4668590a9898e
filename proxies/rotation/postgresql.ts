/**
 * Roles of PostgreSQL. The server gets the verifier of a new password, never the password: its log, its statistics and its
 * replicas would keep the text of the statement.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { ChangeTarget, SignIn } from '../../src/contract/change.ts'
import { Connection, nameOf } from './connection.ts'
import { ChangeError, type ChangePlugin, said } from './plugin.ts'
import { SCRAM_SALT_BYTES, scramVerifier } from './scram.ts'
import { newPasswordOf, passwordOf, textOf } from './secrets.ts'

/** SSLRequest (PostgreSQL's protocol, 55.7): its length, and a number in the place of a version. */
const SSL_REQUEST = Buffer.from('0000000804d2162f', 'hex')
const ACCEPTED = 0x53
/** The first version that knows SCRAM; older ones would take a verifier for the password itself. */
const FIRST_VERSION = 100_000

/** SQLSTATE of the errors that mean something here (PostgreSQL, appendix A). */
const STATE = {
  wrongPassword: '28P01',
  noEntry: '28000',
  noDatabase: '3D000',
  notPermitted: '42501',
  noRole: '42704',
  invalidValue: '22023',
  readOnly: '25006',
}
/** Sent after the sign-in only: the password was right. */
const AFTER_SIGN_IN: readonly string[] = [STATE.noDatabase, STATE.notPermitted]

type Method = 'authenticationCleartextPassword' | 'authenticationMD5Password' | 'authenticationSASL'

export const postgresql: ChangePlugin = {
  async verify(target, as, signal) {
    try {
      await signedIn(target, as, signal, async (client) => {
        await client.query('select 1')
      })
      return 'valid'
    } catch (error) {
      if (error instanceof Refused) return error.isWrongPassword ? 'invalid' : 'valid'
      throw error
    }
  },

  async change(target, { account, by, next }, signal) {
    const password = newPasswordOf(next, /^[\x20-\x7e]{1,256}$/, 'of 1 to 256 printable ASCII characters')
    const verifier = scramVerifier(password, randomBytes(SCRAM_SALT_BYTES))
    try {
      await signedIn(target, by, signal, async (client) => {
        const { rows } = await client.query<{ version: string }>(
          "select current_setting('server_version_num') as version",
        )
        if (!(Number(rows[0]?.version) >= FIRST_VERSION)) {
          throw new ChangeError(
            'unsupported',
            `${nameOf(target)} is older than PostgreSQL 10, so it knows no SCRAM`,
          )
        }
        await client.query(`alter role ${pg.escapeIdentifier(account.login)} password '${verifier}'`)
      })
    } catch (error) {
      if (error instanceof Refused) throw new ChangeError('refused_sign_in', error.message)
      throw error
    }
  },
}

/** The server's own refusal of a sign-in, before the first statement. */
class Refused extends ChangeError {
  readonly isWrongPassword: boolean

  constructor(message: string, isWrongPassword: boolean) {
    super('refused_sign_in', message)
    this.isWrongPassword = isWrongPassword
  }
}

function signedIn(
  target: ChangeTarget,
  as: SignIn,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const password = passwordOf(as)
  const isSecure = target.parameters['insecure'] !== true
  return Connection.during(
    target,
    signal,
    (error) => explained(error, target, password),
    async (connection) => {
      if (isSecure) await startTls(connection)
      const { client, wasAsked } = clientOn(connection, as.login, password, isSecure)
      try {
        await client.connect()
      } catch (error) {
        throw refusal(error as Error, target, password, wasAsked()) ?? error
      }
      await work(client)
    },
  )
}

/** Asks for TLS; the server's reply is a byte of clear text, and nothing may follow it. */
async function startTls(connection: Connection): Promise<void> {
  connection.socket.write(SSL_REQUEST)
  const reply = await connection.reply(() => 1)
  if (reply[0] !== ACCEPTED) {
    throw new ChangeError('untrusted', `${nameOf(connection.target)} offers no TLS`)
  }
  await connection.secure()
}

/** A client, and whether the server has asked for the password. */
interface Asked {
  client: pg.Client
  wasAsked: () => boolean
}

/** Makes a client that uses the connection, and sends the password only by a method that may have it. */
function clientOn(connection: Connection, user: string, password: string, isSecure: boolean): Asked {
  const { socket, target } = connection
  let asked: Method | undefined
  // The library would connect by itself.
  const stream = Object.assign(socket, {
    connect: () => {
      process.nextTick(() => socket.emit('connect'))
      return socket
    },
  })
  const client = new pg.Client({
    user,
    database: textOf(target.parameters, 'database') ?? 'postgres',
    host: target.host,
    port: target.port,
    password: () => {
      if (!isSecure && asked !== 'authenticationSASL') {
        const error = new ChangeError(
          'untrusted',
          `${nameOf(target)} asks for the password itself or its MD5 without TLS: SCRAM only is allowed there`,
        )
        connection.fail(error)
        throw error
      }
      return password
    },
    ssl: false,
    stream: () => stream,
    application_name: 'sallyport',
    enableChannelBinding: isSecure,
  })
  client.on('error', () => undefined)
  const { connection: wire } = client as unknown as { connection: NodeJS.EventEmitter }
  for (const method of [
    'authenticationCleartextPassword',
    'authenticationMD5Password',
    'authenticationSASL',
  ] as const) {
    wire.prependListener(method, () => {
      asked = method
    })
  }
  // Before the library notices: a server that asks for no password proves none.
  wire.prependListener('readyForQuery', () => {
    if (asked === undefined) {
      const error = `${nameOf(target)} lets ${said(user)} in without a password (trust, peer or cert in pg_hba.conf)`
      connection.fail(new ChangeError('unclear', error))
    }
  })
  return { client, wasAsked: () => asked !== undefined }
}

/** Returns the error of a refused sign-in, or undefined for another one. */
function refusal(
  error: Error,
  target: ChangeTarget,
  password: string,
  wasAsked: boolean,
): ChangeError | undefined {
  const { code = '' } = error as { code?: string }
  const text = `${nameOf(target)}: ${said(error.message, password)}`
  if (code === STATE.wrongPassword) return new Refused(text, true)
  if (AFTER_SIGN_IN.includes(code) && wasAsked) return new Refused(text, false)
  if (code === STATE.noEntry) return new ChangeError('refused_sign_in', text)
  // 53: too many connections; 57: it starts or stops; 08: the connection.
  if (/^(53|57|08)/.test(code)) return new ChangeError('unreachable', text)
  return undefined
}

function explained(error: Error, target: ChangeTarget, password: string): ChangeError | undefined {
  const { code } = error as { code?: string }
  const text = `${nameOf(target)}: ${said(error.message, password)}`
  if (error.message.startsWith('SASL')) return new ChangeError('untrusted', text)
  if (code === STATE.notPermitted || code === STATE.noRole || code === STATE.readOnly)
    return new ChangeError('not_permitted', text)
  if (code === STATE.invalidValue) return new ChangeError('refused_password', text)
  return undefined
}
