/**
 * Client of the configured resolvers: UDP first, TCP if a response does not fit. Every question is sent from
 * its own port with its own id, to one address, and only a response from there to this very question counts
 * (RFC 5452).
 */
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, isIP } from 'node:net'
import { DnsError } from './error.ts'
import { type Answer, buildQuery, encodeName, parseAnswer, type Question } from './message.ts'
import { parseSshfp, type SshfpAnswer, TYPE_SSHFP } from './sshfp.ts'

export interface ResolverOptions {
  /** Addresses, used in this order until one has responded. */
  servers: readonly { host: string; port: number }[]
  /** Time limit for each of them, over UDP and over TCP separately. Absent for 2 seconds. */
  timeoutMs?: number
}

const TIMEOUT_MS = 2_000
/** UDP loses packets, so there is a second attempt. */
const UDP_ATTEMPTS = 2
/** Limit of packets with other answers, as sent to guess ids, until the attempt fails. */
const MAX_STRAY = 64

export class Resolver {
  readonly #servers: ResolverOptions['servers']
  readonly #timeoutMs: number

  constructor({ servers, timeoutMs = TIMEOUT_MS }: ResolverOptions) {
    this.#servers = servers
    this.#timeoutMs = timeoutMs
  }

  /** @throws DnsError if no resolver responds; its message has the error of the last of them */
  async sshfp(host: string): Promise<SshfpAnswer> {
    if (isIP(host) !== 0) throw new DnsError(`${host} is an address, and SSHFP records are about names`)
    const name = encodeName(host)
    let failure = new DnsError('no resolver is configured')
    for (const server of this.#servers) {
      try {
        const { isAuthenticated, data } = await this.#ask(server, name)
        return { isAuthenticated, records: data.flatMap((one) => parseSshfp(one) ?? []) }
      } catch (error) {
        if (!(error instanceof DnsError)) throw error
        failure = new DnsError(`${error.message} (resolver ${server.host} port ${server.port})`)
      }
    }
    throw failure
  }

  async #ask(server: { host: string; port: number }, name: Buffer): Promise<Answer> {
    const newQuestion = (): Question => ({ id: randomInt(0x10000), name, type: TYPE_SSHFP })
    let answer: Answer | 'truncated' | undefined
    for (let attempt = 1; answer === undefined && attempt <= UDP_ATTEMPTS; attempt++) {
      answer = await askUdp(server, newQuestion(), this.#timeoutMs)
    }
    if (answer === 'truncated') answer = await askTcp(server, newQuestion(), this.#timeoutMs)
    if (answer === undefined || answer === 'truncated') throw new DnsError('the resolver does not answer')
    return answer
  }
}

/** Returns undefined if there is no response in time. */
function askUdp(
  { host, port }: { host: string; port: number },
  question: Question,
  timeoutMs: number,
): Promise<Answer | 'truncated' | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
    let strays = 0
    let isOver = false
    const end = (settle: () => void) => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      socket.close()
      settle()
    }
    const timer = setTimeout(() => end(() => resolve(undefined)), timeoutMs)
    socket.on('error', (error) => end(() => reject(unreachable(error))))
    socket.on('message', (message) => {
      if (isOver) return
      try {
        const answer = parseAnswer(message, question)
        if (answer !== undefined) end(() => resolve(answer))
        else if (++strays > MAX_STRAY) end(() => resolve(undefined))
      } catch (error) {
        end(() => reject(error))
      }
    })
    // A connected socket receives packets only from this address and port.
    socket.on('connect', () => socket.send(buildQuery(question)))
    socket.connect(port, host)
  })
}

/** RFC 1035 4.2.2: each message follows its length. */
function askTcp(
  { host, port }: { host: string; port: number },
  question: Question,
  timeoutMs: number,
): Promise<Answer | 'truncated' | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    let received = Buffer.alloc(0)
    const end = (settle: () => void) => {
      clearTimeout(timer)
      socket.destroy()
      settle()
    }
    const timer = setTimeout(() => end(() => resolve(undefined)), timeoutMs)
    socket.on('error', (error) => end(() => reject(unreachable(error))))
    socket.on('close', () => end(() => resolve(undefined)))
    socket.on('data', (data) => {
      received = Buffer.concat([received, data])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return
      try {
        const answer = parseAnswer(received.subarray(2, 2 + received.readUInt16BE()), question)
        end(() => resolve(answer))
      } catch (error) {
        end(() => reject(error))
      }
    })
    const query = buildQuery(question)
    const length = Buffer.alloc(2)
    length.writeUInt16BE(query.length)
    socket.write(Buffer.concat([length, query]))
  })
}

const unreachable = (error: NodeJS.ErrnoException): DnsError =>
  new DnsError(`the resolver cannot be reached: ${error.code ?? error.message}`)
