/**
 * A connection of one job to its target: bounded in bytes and time, ended at once when the job's signal aborts. The
 * libraries of the protocols read from its socket, and keep what they read in buffers of their own.
 */
import { Buffer } from 'node:buffer'
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { ChangeTarget } from '../../src/contract/change.ts'
import { ChangeError, said } from './plugin.ts'

/** Bytes that a target may send in one job. */
export const MAX_RECEIVED = 1024 * 1024
/** A target that has not accepted the connection by then counts as down. */
const CONNECT_TIMEOUT_MS = 15_000
/** Bytes kept of the beginning. */
const HEAD = 4

export class Connection {
  readonly target: ChangeTarget
  readonly #signal: AbortSignal
  readonly #gone: Promise<never>
  #reject!: (error: ChangeError) => void
  /** The TCP connection, or the TLS above it. */
  socket: Socket
  /** Bytes received so far, and the first of them; with TLS those above it too. */
  received = 0
  head = Buffer.alloc(0)
  readonly #onAbort = () => this.fail(lateFor(this.target))

  private constructor(target: ChangeTarget, socket: Socket, signal: AbortSignal) {
    this.target = target
    this.socket = socket
    this.#signal = signal
    this.#gone = new Promise((_resolve, reject) => {
      this.#reject = reject
    })
    this.#gone.catch(() => undefined)
    this.watch(socket)
    signal.addEventListener('abort', this.#onAbort, { once: true })
    if (signal.aborted) this.#onAbort()
  }

  /** Connects, does the work, and closes. All errors are ChangeError; `explain` reads those of the library. */
  static async during<T>(
    target: ChangeTarget,
    signal: AbortSignal,
    explain: (error: Error) => ChangeError | undefined,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const connection = new Connection(target, await dial(target, signal), signal)
    try {
      return await connection.#until(work(connection))
    } catch (error) {
      if (error instanceof ChangeError) throw error
      throw explain(error as Error) ?? explained(error as Error, target)
    } finally {
      connection.#close()
    }
  }

  /** Fails the job with this error, and ends the connection. */
  fail(error: ChangeError): void {
    this.#reject(error)
    this.socket.destroy()
  }

  /** Counts the bytes of the socket, and fails the job where a library throws at them. Call before the first read. */
  watch(socket: Socket): void {
    const emit = socket.emit.bind(socket) as (event: string | symbol, ...values: unknown[]) => boolean
    const read = (event: string | symbol, ...values: unknown[]): boolean => {
      if (event !== 'data') return emit(event, ...values)
      try {
        return this.#count(values[0] as Buffer) && emit(event, ...values)
      } catch (error) {
        const words = said((error as Error).message)
        this.fail(
          new ChangeError('unexpected_answer', `${nameOf(this.target)} sent what cannot be read: ${words}`),
        )
        return true
      }
    }
    socket.emit = read as typeof socket.emit
    // Libraries miss errors between their own listeners; the end of the connection ends the job.
    socket.on('error', (error) => this.#reject(explained(error, this.target)))
    socket.once('close', () =>
      this.#reject(new ChangeError('unreachable', `${nameOf(this.target)} closed the connection early`)),
    )
  }

  /** Returns false if the target has sent too much. */
  #count(chunk: Buffer): boolean {
    this.received += chunk.length
    if (this.head.length < HEAD) this.head = Buffer.concat([this.head, chunk]).subarray(0, HEAD)
    if (this.received <= MAX_RECEIVED) return true
    const most = `more than ${MAX_RECEIVED} bytes`
    this.fail(new ChangeError('unexpected_answer', `${nameOf(this.target)} sent ${most} in one job`))
    return false
  }

  /** Continues with TLS: the certificate has to be of a trusted authority and for the target's name. */
  async secure(): Promise<void> {
    const plain = this.socket
    if (plain.readableLength > 0) {
      throw new ChangeError('untrusted', `${nameOf(this.target)} sent bytes between clear text and TLS`)
    }
    const secure = connectTls({ ...tlsOptions(this.target), socket: plain })
    this.socket = secure
    this.watch(secure)
    await this.#until(
      new Promise<void>((resolve, reject) => {
        secure.once('secureConnect', resolve)
        secure.once('error', (error) => reject(explained(error, this.target)))
      }),
    )
    // The count begins anew: a handshake is no answer.
    this.received = 0
  }

  /** Reads the reply to a request for TLS: as many bytes as `lengthOf` finds, and not one more. */
  reply(lengthOf: (bytes: Buffer) => number | undefined): Promise<Buffer> {
    const { socket } = this
    return this.#until(
      new Promise((resolve, reject) => {
        let bytes = Buffer.alloc(0)
        const read = (chunk: Buffer) => {
          bytes = Buffer.concat([bytes, chunk])
          const length = lengthOf(bytes)
          if (length === undefined || bytes.length < length) return
          socket.off('data', read)
          socket.pause()
          if (bytes.length === length) resolve(bytes)
          else
            reject(
              new ChangeError('untrusted', `${nameOf(this.target)} sent bytes between clear text and TLS`),
            )
        }
        socket.on('data', read)
      }),
    )
  }

  /** Rejects as soon as the connection has ended. */
  #until<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined)
    return Promise.race([work, this.#gone])
  }

  #close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.socket.destroy()
  }
}

/** Returns the target's name for messages. */
export function nameOf({ host, port }: ChangeTarget): string {
  return `${said(host)}:${port}`
}

/** Options of TLS toward the target; its name is the parameter `tls_name`, or its host. */
export function tlsOptions({ host, parameters, trust }: ChangeTarget): ConnectionOptions {
  const name = tlsName({ host, parameters })
  return {
    minVersion: 'TLSv1.2',
    host: name,
    rejectUnauthorized: true,
    ...(isIP(name) === 0 && { servername: name }),
    ...(trust.certificates !== undefined && { ca: trust.certificates }),
  }
}

export function tlsName({ host, parameters }: Pick<ChangeTarget, 'host' | 'parameters'>): string {
  const named = parameters['tls_name']
  return typeof named === 'string' && named !== '' ? named : host
}

/** True for an error of a certificate, or of the name in it. */
export function isUntrusted(error: Error): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return (
    code === 'ERR_TLS_CERT_ALTNAME_INVALID' ||
    /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH)/.test(
      code,
    )
  )
}

function explained(error: Error, target: ChangeTarget): ChangeError {
  const name = nameOf(target)
  const text = said(error.message)
  if (isUntrusted(error))
    return new ChangeError('untrusted', `the certificate of ${name} is not trusted: ${text}`)
  const { code = '' } = error as NodeJS.ErrnoException
  if (code.startsWith('ERR_SSL_')) return new ChangeError('unreachable', `TLS with ${name} failed: ${text}`)
  if (/^(E[A-Z]+|ERR_STREAM_.*)$/.test(code)) return new ChangeError('unreachable', `${name}: ${text}`)
  return new ChangeError('unclear', `${name}: ${text}`)
}

function lateFor(target: ChangeTarget): ChangeError {
  return new ChangeError('timeout', `${nameOf(target)} did not finish in time`)
}

function dial(target: ChangeTarget, signal: AbortSignal): Promise<Socket> {
  const { host, port } = target
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(lateFor(target))
      return
    }
    const socket = connect({ host, port, noDelay: true })
    const fail = (error: ChangeError) => {
      end()
      socket.on('error', () => undefined)
      socket.destroy()
      reject(error)
    }
    const onAbort = () => fail(lateFor(target))
    const timer = setTimeout(
      () => fail(new ChangeError('unreachable', `${nameOf(target)} does not accept the connection`)),
      CONNECT_TIMEOUT_MS,
    )
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.removeAllListeners()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', (error) =>
      fail(new ChangeError('unreachable', `${nameOf(target)}: ${said(error.message)}`)),
    )
    socket.once('connect', () => {
      end()
      resolve(socket)
    })
  })
}
