/**
 * The SSH server side toward the user's client: key exchange, sign-in through the gate, and then a transport
 * for the relay.
 */
import type { Socket } from 'node:net'
import ssh2, { type Connection } from 'ssh2'
import type { Gate, Identity, Source } from '../../src/gate/messages.ts'
import { FRONT_ALGORITHMS } from './algorithms.ts'
import { announcementOf, type HostKey, prover, readHostKeys } from './host-keys.ts'
import { SignIn } from './sign-in.ts'
import { type RekeyLimits, Transport } from './transport.ts'

export interface FrontOptions {
  gate: Gate
  /** Private host keys in OpenSSH's PEM form, one of a type, in the order of preference. */
  hostKeys: string[]
  /** Keys that are not in use yet: clients are told of them, so that they know them by then. */
  nextHostKeys?: string[]
  /** What every client is shown before it signs in. */
  banner?: string
  /** Software version in the identification string, `SSH-2.0-` excluded. */
  ident: string
  /** When new keys are agreed; default: REKEY_LIMITS. */
  rekey?: RekeyLimits
  /** A person has signed in. The transport is silent until its `onMessage` is set. */
  onSignedIn: (identity: Identity, source: Source, transport: Transport, socket: Socket) => void
}

/** The longest time that setInterval takes. */
const MAX_TIMER_MS = 2 ** 31 - 1

export class SshFront {
  readonly #server: ssh2.Server
  readonly #options: FrontOptions
  readonly #hostKeys: readonly HostKey[]
  #banner: string | undefined

  constructor(options: FrontOptions) {
    this.#options = options
    this.#banner = options.banner
    this.#hostKeys = readHostKeys([...options.hostKeys, ...(options.nextHostKeys ?? [])])
    this.#server = new ssh2.Server({
      hostKeys: options.hostKeys,
      algorithms: FRONT_ALGORITHMS,
      ident: options.ident,
      // Lobby and relay ask for signs of life themselves. ssh2 takes 0 for its default of 15 s.
      keepaliveInterval: MAX_TIMER_MS,
    })
    this.#server.on('connection', (client, info) => this.#welcome(client, info))
  }

  /** For connections from now on. */
  set banner(banner: string | undefined) {
    this.#banner = banner
  }

  /** Hands an accepted socket over. The caller keeps the grace timer and the counts of half-open sockets. */
  accept(socket: Socket): void {
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

/** Node gives IPv4 clients of a dual-stack listener as `::ffff:a.b.c.d`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
