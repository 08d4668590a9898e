/**
 * The SSH server side toward the user's client: key exchange, sign-in through the gate, and then a transport
 * for the relay. It never decides who somebody is: it hands proofs to the gate and holds the identity that the
 * gate answers with.
 */
import type { Socket } from 'node:net'
import ssh2, { type AuthContext, type Connection, type PublicKeyAuthContext } from 'ssh2'
import type { AuthenticateAnswer, Gate, Identity, Source } from '../../src/gate/messages.ts'
import { FRONT_ALGORITHMS } from './algorithms.ts'
import { MAX_AUTH_TRIES, MAX_KEY_OFFERS } from './limits.ts'
import { Transport } from './transport.ts'

export interface FrontOptions {
  gate: Gate
  /** Private keys in OpenSSH's PEM form. No RSA: ssh2 cannot switch its SHA-1 signature off. */
  hostKeys: string[]
  /** Software version in the identification string, `SSH-2.0-` excluded. */
  ident: string
  /** A person has signed in. The transport is silent until its `onMessage` is set. */
  onSignedIn: (identity: Identity, source: Source, transport: Transport, socket: Socket) => void
}

const METHODS: ('publickey' | 'keyboard-interactive' | 'password')[] = [
  'publickey',
  'keyboard-interactive',
  'password',
]

/** The longest time that setInterval takes. */
const MAX_TIMER_MS = 2 ** 31 - 1

export class SshFront {
  readonly #server: ssh2.Server
  readonly #options: FrontOptions

  constructor(options: FrontOptions) {
    this.#options = options
    this.#server = new ssh2.Server({
      hostKeys: options.hostKeys,
      algorithms: FRONT_ALGORITHMS,
      ident: options.ident,
      // Lobby and relay ask for signs of life themselves. ssh2 takes 0 for its default of 15 s.
      keepaliveInterval: MAX_TIMER_MS,
    })
    this.#server.on('connection', (client, info) => this.#welcome(client, info))
  }

  /** Hands an accepted socket over. The caller keeps the grace timer and the counts of half-open sockets. */
  accept(socket: Socket): void {
    this.#server.injectSocket(socket)
  }

  #welcome(client: Connection, info: { ip: string; port: number }): void {
    const socket = (client as unknown as { _sock: Socket })._sock
    socket.setNoDelay(true)
    const transport = new Transport(client, socket, { strict: true })
    const source: Source = { address: plainAddress(info.ip), port: info.port }
    const attempt = new SignIn(this.#options.gate, source, transport)
    // Errors of one client (bad packets, resets) end that connection and nothing else.
    client.on('error', () => socket.destroySoon())
    client.on('authentication', (context) => attempt.answer(context))
    client.on('ready', () => {
      if (attempt.identity) this.#options.onSignedIn(attempt.identity, source, transport, socket)
      else transport.destroy()
    })
  }
}

/** The sign-in of one connection: its attempts are counted, and each is the gate's to answer. */
class SignIn {
  identity: Identity | undefined
  readonly #gate: Gate
  readonly #source: Source
  readonly #transport: Transport
  #tries = 0
  #offers = 0

  constructor(gate: Gate, source: Source, transport: Transport) {
    this.#gate = gate
    this.#source = source
    this.#transport = transport
  }

  answer(context: AuthContext): void {
    this.#decide(context).catch(() => this.#transport.end())
  }

  async #decide(context: AuthContext): Promise<void> {
    switch (context.method) {
      case 'none':
        context.reject(METHODS)
        return
      case 'password':
        await this.#password(context, 'password', context.password)
        return
      case 'keyboard-interactive':
        context.prompt([{ prompt: 'Password: ', echo: false }], (answers: unknown) => {
          // ssh2 hands an Error here when the client starts another method instead of answering.
          const password = Array.isArray(answers) ? answers[0] : undefined
          if (typeof password !== 'string') return
          this.#password(context, 'keyboard-interactive', password).catch(() => this.#transport.end())
        })
        return
      case 'publickey':
        await this.#publicKey(context)
        return
      default:
        this.#reject(context)
    }
  }

  async #password(
    context: AuthContext,
    method: 'password' | 'keyboard-interactive',
    password: string,
  ): Promise<void> {
    this.#tries++
    const answer = await this.#gate.authenticate({
      protocol: 'SSH',
      source: this.#source,
      login: context.username,
      proof: { method, password },
    })
    this.#conclude(context, answer)
  }

  async #publicKey(context: PublicKeyAuthContext): Promise<void> {
    const { key, signature, blob } = context
    const signed = signature && blob ? { data: blob, signature } : undefined
    if (signed) this.#tries++
    else this.#offers++
    const answer = await this.#gate.authenticate({
      protocol: 'SSH',
      source: this.#source,
      login: context.username,
      proof: { method: 'publickey', key: key.data, ...(signed && { signed }) },
    })
    // ssh2 answers an accepted offer with PK_OK and an accepted signature with success.
    if (answer.result === 'key_acceptable' && !signed) context.accept()
    else this.#conclude(context, answer)
  }

  #conclude(context: AuthContext, answer: AuthenticateAnswer): void {
    if (this.#transport.closed) {
      if (answer.result === 'accepted') void this.#gate.leave({ identity: answer.identity.token })
      return
    }
    if (answer.result === 'accepted') {
      this.identity = answer.identity
      context.accept()
    } else if (answer.result === 'malformed') {
      this.#turnAway(context, answer.message)
    } else {
      this.#reject(context)
    }
  }

  #reject(context: AuthContext): void {
    if (this.#tries >= MAX_AUTH_TRIES || this.#offers >= MAX_KEY_OFFERS) {
      this.#turnAway(context, 'too many failed attempts, try again with a new connection')
      return
    }
    context.reject(METHODS)
  }

  #turnAway(context: AuthContext, reason: string): void {
    this.#transport.send(bannerMessage(`sallyport: ${reason}\r\n`))
    context.reject([])
    this.#transport.end()
  }
}

const USERAUTH_BANNER = 53

/** RFC 4252 5.4: byte 53, string message (UTF-8), string language tag. */
function bannerMessage(text: string): Buffer {
  const message = Buffer.from(text, 'utf8')
  const payload = Buffer.alloc(1 + 4 + message.length + 4)
  payload[0] = USERAUTH_BANNER
  payload.writeUInt32BE(message.length, 1)
  message.copy(payload, 5)
  return payload
}

/** Node gives IPv4 clients of a dual-stack listener as `::ffff:a.b.c.d`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
