/** The SSH server side toward the user's client: key exchange, sign-in through the gate, then a transport. */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import ssh2, { type Connection } from 'ssh2'
import type { HostCertificate } from '../../../src/contract/front-settings.ts'
import type { Gate, Identity, Source } from '../../../src/contract/gate.ts'
import { FRONT_ALGORITHMS } from '../transport/algorithms.ts'
import { announcementOf, type HostKey, prover, readHostKeys } from '../transport/host-keys.ts'
import { type RekeyLimits, Transport } from '../transport/transport.ts'
import { SignIn } from './sign-in.ts'

export interface FrontOptions {
  gate: Gate
  /** Private host keys in OpenSSH's PEM form, one per type, in order of preference. */
  hostKeys: string[]
  /** Future host keys, announced to clients before they are used. */
  nextHostKeys?: string[]
  /** Certificates for some of `hostKeys`, shown to clients that ask for one. */
  hostCertificates?: readonly HostCertificate[]
  /** Shown to every client before sign-in. */
  banner?: string
  /** Software version in the identification string, without `SSH-2.0-`. */
  ident: string
  /** Limits for new keys; default: REKEY_LIMITS. */
  rekey?: RekeyLimits
  /** Called when a user has signed in. The transport delivers nothing until its `onMessage` is set. */
  onSignedIn: (identity: Identity, source: Source, transport: Transport, socket: Socket) => void
  /** Called when a connection may stay that many milliseconds longer without a sign-in. */
  onWaiting?: (socket: Socket, milliseconds: number) => void
}

/** The longest interval of setInterval. */
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
      // Lobby and relay send keepalives themselves; ssh2 reads 0 as its default of 15 s.
      keepaliveInterval: MAX_TIMER_MS,
    })
    server.on('connection', (client, info) => this.#welcome(client, info))
    return server
  }

  /** Applies to new connections. */
  set hostCertificates(certificates: readonly HostCertificate[]) {
    this.#certificates = certificates
    this.#server = this.#newServer()
  }

  /** Applies to new connections. */
  set banner(banner: string | undefined) {
    this.#banner = banner
  }

  /** Serves an accepted socket. The caller keeps the grace timer and the counts of half-open sockets. */
  accept(socket: Socket): void {
    const now = Date.now()
    const inTime = this.#certificates.filter(({ validBefore }) => now < validBefore)
    // Fall back to the plain key, which a client may know: an expired certificate makes clients disconnect.
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
    const { gate, onWaiting } = this.#options
    const attempt = new SignIn({
      ...{ gate, source, transport, banner: this.#banner },
      onWaiting: (milliseconds) => onWaiting?.(socket, milliseconds),
    })
    // Errors of one client (bad packets, resets) end that connection only.
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

/** Returns the form that the patched ssh2 expects. */
function certified(key: string, { blob }: HostCertificate): { key: string; certificate: Buffer } {
  return { key, certificate: Buffer.from(blob) }
}

/** Node reports IPv4 clients of a dual-stack listener as `::ffff:a.b.c.d`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
