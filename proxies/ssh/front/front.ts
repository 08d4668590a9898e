/**
 * The SSH server side toward the user's client: key exchange, sign-in through the gate, and then a transport
 * for the relay.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import ssh2, { type Connection } from 'ssh2'
import type { Gate, Identity, Source } from '../../../src/contract/gate.ts'
import { FRONT_ALGORITHMS } from '../transport/algorithms.ts'
import { announcementOf, type HostKey, prover, readHostKeys } from '../transport/host-keys.ts'
import { type RekeyLimits, Transport } from '../transport/transport.ts'
import { SignIn } from './sign-in.ts'

export interface FrontOptions {
  gate: Gate
  /** Private host keys in OpenSSH's PEM form, one of a type, in the order of preference. */
  hostKeys: string[]
  /** Keys that are not in use yet: clients are told of them, so that they know them by then. */
  nextHostKeys?: string[]
  /** About some of `hostKeys`, for clients that ask for one. */
  hostCertificates?: readonly HostCertificate[]
  /** What every client is shown before it signs in. */
  banner?: string
  /** Software version in the identification string, `SSH-2.0-` excluded. */
  ident: string
  /** When new keys are agreed; default: REKEY_LIMITS. */
  rekey?: RekeyLimits
  /** A person has signed in. The transport is silent until its `onMessage` is set. */
  onSignedIn: (identity: Identity, source: Source, transport: Transport, socket: Socket) => void
}

/** A certificate about a host key of the front. */
export interface HostCertificate {
  blob: Uint8Array
  /** The blob of the key that it is about. */
  key: Uint8Array
  /** Milliseconds since the epoch: it is shown before that. */
  validBefore: number
}

/** The longest time that setInterval takes. */
const MAX_TIMER_MS = 2 ** 31 - 1

export class SshFront {
  #server: ssh2.Server
  readonly #options: FrontOptions
  readonly #hostKeys: readonly HostKey[]
  #certificates: readonly HostCertificate[]
  #banner: string | undefined

  constructor(options: FrontOptions) {
    this.#options = options
    this.#banner = options.banner
    this.#hostKeys = readHostKeys([...options.hostKeys, ...(options.nextHostKeys ?? [])])
    this.#certificates = options.hostCertificates ?? []
    this.#server = this.#newServer()
  }

  #newServer(): ssh2.Server {
    const { hostKeys, ident } = this.#options
    const server = new ssh2.Server({
      hostKeys: hostKeys.map((key, index) => {
        const { blob } = this.#hostKeys[index]!
        const certificate = this.#certificates.find((one) => blob.equals(one.key))
        return certificate ? certified(key, certificate) : key
      }),
      algorithms: FRONT_ALGORITHMS,
      ident,
      // Lobby and relay ask for signs of life themselves. ssh2 takes 0 for its default of 15 s.
      keepaliveInterval: MAX_TIMER_MS,
    })
    server.on('connection', (client, info) => this.#welcome(client, info))
    return server
  }

  /** For connections from now on. */
  set hostCertificates(certificates: readonly HostCertificate[]) {
    this.#certificates = certificates
    this.#server = this.#newServer()
  }

  /** For connections from now on. */
  set banner(banner: string | undefined) {
    this.#banner = banner
  }

  /** Hands an accepted socket over. The caller keeps the grace timer and the counts of half-open sockets. */
  accept(socket: Socket): void {
    const now = Date.now()
    const inTime = this.#certificates.filter(({ validBefore }) => now < validBefore)
    // a client that is shown the plain key can still know it; one that is shown an old certificate goes away
    if (inTime.length < this.#certificates.length) this.hostCertificates = inTime
    this.#server.injectSocket(socket)
  }

  #welcome(client: Connection, info: { ip: string; port: number }): void {
    const socket = (client as unknown as { _sock: Socket })._sock
    socket.setNoDelay(true)
    const transport = new Transport(client, socket, {
      strict: true,
      ...(this.#options.rekey && { rekey: this.#options.rekey }),
    })
    const source: Source = { address: plainAddress(info.ip), port: info.port }
    const attempt = new SignIn({ gate: this.#options.gate, source, transport, banner: this.#banner })
    // Errors of one client (bad packets, resets) end that connection and nothing else.
    client.on('error', () => socket.destroySoon())
    socket.once('close', () => attempt.destroy())
    client.on('authentication', (context) => attempt.answer(context))
    client.on('ready', () => {
      const identity = attempt.takeIdentity()
      if (!identity) {
        transport.destroy()
        return
      }
      transport.onGlobalRequest = prover(this.#hostKeys, () => ({
        sessionId: transport.sessionId,
        negotiated: transport.hostKeyAlgorithm,
      }))
      transport.send(announcementOf(this.#hostKeys))
      this.#options.onSignedIn(identity, source, transport, socket)
    })
  }
}

/** As the patched ssh2 takes it. */
function certified(key: string, { blob }: HostCertificate): { key: string; certificate: Buffer } {
  return { key, certificate: Buffer.from(blob) }
}

/** Node gives IPv4 clients of a dual-stack listener as `::ffff:a.b.c.d`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
