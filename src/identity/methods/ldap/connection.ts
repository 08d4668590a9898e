/**
 * A connection to a directory (RFC 4511): by TLS, by StartTLS, or clear. Bounded in bytes and in time, whatever the server
 * sends; all errors but result codes end it.
 */
import { Buffer } from 'node:buffer'
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { BerReader, Client, type Entry, type Filter, ResultCodeError, type SearchOptions } from 'ldapts'
import type { LdapOptions } from '../../../model/external-auths.ts'
import { RESULT } from './refusals.ts'

/** Bytes that a server may send in answer to one operation. */
export const MAX_ANSWER = 4 * 1024 * 1024
/** The ExtendedRequest of RFC 4511 4.14.1, with message number 1. */
const START_TLS = Buffer.from(
  `301d0201017718801631${Buffer.from('.3.6.1.4.1.1466.20037').toString('hex')}`,
  'hex',
)
const EXTENDED_RESPONSE = 0x78
/** Of idle connections, so that those that a firewall has dropped are noticed. */
const KEEP_ALIVE_MS = 15_000
/** Longest reply to it. */
const MAX_REPLY = 4096

/** An error of the way to the directory, in words for administrators: nothing was judged. */
export class DirectoryError extends Error {}

export interface Endpoint {
  host: string
  port: number
  options: Pick<LdapOptions, 'security' | 'caCertificates' | 'serverName' | 'clientCertificate'>
  /** PEM. */
  clientKey?: string
  /** Milliseconds for the connection with TLS, and for each operation. */
  timeoutMs: number
}

export class DirectoryConnection {
  readonly #client: Client
  readonly #socket: Socket
  readonly #name: string
  readonly #timeoutMs: number
  readonly #gone: Promise<never>
  #fail!: (error: DirectoryError) => void
  #received = 0
  #isCut = false
  isOpen = true
  readonly #onError = (error: Error) => this.#fail(new DirectoryError(`${this.#name}: ${error.message}`))

  private constructor(socket: Socket, { timeoutMs, ...endpoint }: Endpoint) {
    this.#socket = socket
    this.#name = nameOf(endpoint)
    this.#timeoutMs = timeoutMs
    this.#gone = new Promise((_resolve, reject) => {
      this.#fail = (error) => {
        this.close()
        reject(error)
      }
    })
    this.#gone.catch(() => undefined)
    socket.prependListener('data', (chunk: Buffer) => this.#count(chunk.length))
    socket.on('error', this.#onError)
    socket.once('close', () => this.#fail(new DirectoryError(`${this.#name} closed the connection`)))
    this.#client = new Client({
      url: 'ldap://directory.invalid',
      createConnection: () => socket,
      strictDN: false,
    })
    // The library only logs what it cannot read, and would wait for ever.
    const { messageParser } = this.#client as unknown as { messageParser: NodeJS.EventEmitter }
    messageParser.on('error', (error: Error) =>
      this.#fail(new DirectoryError(`${this.#name} sent no LDAP: ${error.message}`)),
    )
    // The library hides it where a limit was asked for.
    messageParser.on('message', ({ status }: { status?: number }) => {
      this.#isCut = status === RESULT.sizeLimitExceeded
    })
  }

  /** @throws DirectoryError */
  static async open(endpoint: Endpoint, signal: AbortSignal): Promise<DirectoryConnection> {
    return new DirectoryConnection(await securedSocket(endpoint, signal), endpoint)
  }

  /** Does one operation. @throws ResultCodeError for the server's refusal, DirectoryError else */
  async run<T>(work: (client: Client) => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#received = 0
    const late = () => this.#fail(new DirectoryError(`${this.#name} did not answer in ${this.#timeoutMs} ms`))
    const timer = setTimeout(late, this.#timeoutMs)
    signal.addEventListener('abort', late, { once: true })
    if (signal.aborted) late()
    try {
      const done = this.isOpen ? work(this.#client) : this.#gone
      done.catch(() => undefined)
      // The library removes the listeners of others as it begins.
      if (!this.#socket.listeners('error').includes(this.#onError)) this.#socket.on('error', this.#onError)
      return await Promise.race([done, this.#gone])
    } catch (error) {
      if (error instanceof ResultCodeError) throw error
      this.close()
      if (error instanceof DirectoryError) throw error
      throw new DirectoryError(`${this.#name}: ${(error as Error).message}`)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', late)
    }
  }

  /** Searches below a base. References to other servers are not followed. `isCut`: there are more entries. */
  async search(
    base: string,
    filter: Filter,
    options: Pick<SearchOptions, 'attributes' | 'explicitBufferAttributes' | 'scope' | 'sizeLimit'>,
    signal: AbortSignal,
  ): Promise<{ entries: Entry[]; isCut: boolean }> {
    this.#isCut = false
    const timeLimit = Math.max(1, Math.ceil(this.#timeoutMs / 1000))
    const result = await this.run(
      (client) => client.search(base, { derefAliases: 'never', timeLimit, ...options, filter }),
      signal,
    )
    return { entries: result.searchEntries, isCut: this.#isCut }
  }

  close(): void {
    this.isOpen = false
    this.#socket.destroy()
  }

  #count(bytes: number): void {
    this.#received += bytes
    if (this.#received > MAX_ANSWER)
      this.#fail(new DirectoryError(`${this.#name} sent more than ${MAX_ANSWER} bytes in one answer`))
  }
}

export function nameOf({ host, port }: Pick<Endpoint, 'host' | 'port'>): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}

/** Returns the options of TLS. The name in the certificate is always checked: `serverName` only says another one. */
function tlsOptions({ host, options, clientKey }: Endpoint): ConnectionOptions {
  const name = options.serverName ?? host
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    host: name,
    ...(isIP(name) === 0 && { servername: name }),
    ...(options.caCertificates !== undefined && { ca: options.caCertificates }),
    ...(options.clientCertificate !== undefined && { cert: options.clientCertificate, key: clientKey }),
  }
}

async function securedSocket(endpoint: Endpoint, signal: AbortSignal): Promise<Socket> {
  const name = nameOf(endpoint)
  const { host, port, timeoutMs, options } = endpoint
  if (signal.aborted) throw new DirectoryError(`${name}: given up`)
  const plain = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS })
  let current: Socket = plain
  const { promise: ended, reject } = Promise.withResolvers<never>()
  ended.catch(() => undefined)
  const late = () => reject(new DirectoryError(`${name} did not accept a connection in ${timeoutMs} ms`))
  const failed = (error: Error) => reject(wayError(name, error))
  const closed = () => reject(new DirectoryError(`${name} closed the connection`))
  const timer = setTimeout(late, timeoutMs)
  signal.addEventListener('abort', late, { once: true })
  plain.on('error', failed).once('close', closed)
  try {
    await Promise.race([new Promise((resolve) => plain.once('connect', resolve)), ended])
    if (options.security === 'none') return plain
    if (options.security === 'starttls') await startTls(plain, name, ended)
    const secure = connectTls({ ...tlsOptions(endpoint), socket: plain })
    current = secure
    secure.on('error', failed).once('close', closed)
    await Promise.race([new Promise((resolve) => secure.once('secureConnect', resolve)), ended])
    return secure
  } catch (error) {
    current.destroy()
    plain.destroy()
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', late)
    current.off('close', closed)
  }
}

function wayError(name: string, error: Error): DirectoryError {
  const { code = '' } = error as NodeJS.ErrnoException
  const isTrust = /^(ERR_TLS_CERT|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/.test(code)
  const text = isTrust
    ? `the certificate of ${name} is not trusted: ${error.message}`
    : `${name}: ${error.message}`
  return new DirectoryError(text)
}

/** Asks for TLS, and reads the reply: not one byte may follow it in clear text. */
async function startTls(socket: Socket, name: string, ended: Promise<never>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let bytes = Buffer.alloc(0)
  const read = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    try {
      const length = messageLength(bytes)
      if (length === undefined || bytes.length < length) return
      socket.off('data', read)
      socket.pause()
      if (bytes.length > length) throw new Error('bytes between clear text and TLS')
      resolve(bytes)
    } catch (error) {
      reject(new DirectoryError(`${name}, asked for StartTLS: ${(error as Error).message}`))
    }
  }
  socket.on('data', read)
  socket.write(START_TLS)
  const reply = new BerReader(await Promise.race([promise, ended]))
  reply.readSequence()
  reply.readInt()
  reply.readSequence(EXTENDED_RESPONSE)
  const code = reply.readEnumeration()
  if (code !== 0) throw new DirectoryError(`${name} offers no StartTLS (result ${code})`)
}

/** Returns the length of the message that begins here, or undefined as long as it is not known. */
function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < 2) return undefined
  const reader = new BerReader(bytes)
  const length = reader.readSequence() === null ? undefined : reader.offset + reader.length
  if (reader.length < 0 || (length ?? bytes.length) > MAX_REPLY)
    throw new Error('a reply of impossible length')
  return length
}
