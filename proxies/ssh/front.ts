/**
 * The SSH server side toward the user's client: key exchange, sign-in through the gate, and then a transport
 * for the relay. It never decides who somebody is: it hands proofs to the gate and holds the identity that the
 * gate answers with.
 */
import type { Socket } from 'node:net'
import ssh2, { type AuthContext, type Connection, type PublicKeyAuthContext } from 'ssh2'
import type { AuthenticateRequest, Gate, Identity, PasswordProof, Source } from '../../src/gate/messages.ts'
import { FRONT_ALGORITHMS } from './algorithms.ts'
import { LINGER_MS, MAX_AUTH_REQUESTS, MAX_AUTH_TRIES, MAX_KEY_OFFERS } from './limits.ts'
import { type RekeyLimits, Transport } from './transport.ts'

export interface FrontOptions {
  gate: Gate
  /** Private host keys in OpenSSH's PEM form, one of a type, in the order of preference. */
  hostKeys: string[]
  /** Software version in the identification string, `SSH-2.0-` excluded. */
  ident: string
  /** When new keys are agreed; default: REKEY_LIMITS. */
  rekey?: RekeyLimits
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
    const transport = new Transport(client, socket, {
      strict: true,
      ...(this.#options.rekey && { rekey: this.#options.rekey }),
    })
    const source: Source = { address: plainAddress(info.ip), port: info.port }
    const attempt = new SignIn(this.#options.gate, source, transport)
    // Errors of one client (bad packets, resets) end that connection and nothing else.
    client.on('error', () => socket.destroySoon())
    client.on('authentication', (context) => attempt.answer(context))
    client.on('ready', () => {
      const identity = attempt.takeIdentity()
      if (identity) this.#options.onSignedIn(identity, source, transport, socket)
      else transport.destroy()
    })
  }
}

/** The sign-in of one connection: its attempts are counted, and each is the gate's to answer. */
class SignIn {
  readonly #gate: Gate
  readonly #source: Source
  readonly #transport: Transport
  #identity: Identity | undefined
  #requests = 0
  #tries = 0
  #offers = 0
  #isOver = false

  constructor(gate: Gate, source: Source, transport: Transport) {
    this.#gate = gate
    this.#source = source
    this.#transport = transport
  }

  /** Who has just been signed in, once. */
  takeIdentity(): Identity | undefined {
    const identity = this.#identity
    this.#identity = undefined
    return identity
  }

  answer(context: AuthContext): void {
    this.#run(context, () => this.#decide(context))
  }

  /** Counts before it asks: a client may send many requests without waiting for an answer. */
  #run(context: AuthContext, step: () => Promise<void>): void {
    // The socket of somebody who was turned away is read until it is closed.
    if (this.#isOver) return
    const work =
      ++this.#requests > MAX_AUTH_REQUESTS ? Promise.resolve().then(() => this.#tooMany(context)) : step()
    work.catch(() => this.#end())
  }

  async #decide(context: AuthContext): Promise<void> {
    switch (context.method) {
      case 'keyboard-interactive':
        context.prompt([{ prompt: 'Password: ', echo: false }], (answers: unknown) => {
          // ssh2 hands an Error here when the client starts another method instead of answering.
          const password = Array.isArray(answers) ? answers[0] : undefined
          if (typeof password !== 'string') return
          this.#run(context, () => this.#password(context, { method: 'keyboard-interactive', password }))
        })
        return
      case 'password':
        await this.#password(context, { method: 'password', password: context.password })
        return
      case 'publickey':
        await this.#publicKey(context)
        return
      default:
        await this.#ask(context, { method: 'none' })
    }
  }

  async #password(context: AuthContext, proof: PasswordProof): Promise<void> {
    if (++this.#tries > MAX_AUTH_TRIES) this.#tooMany(context)
    else await this.#ask(context, proof)
  }

  async #publicKey(context: PublicKeyAuthContext): Promise<void> {
    const { key, signatureField, blob } = context as PublicKeyAuthContext & { signatureField?: Buffer }
    // ssh2 hands on what is missing when the request was cut short; it counts, and is answered, like any other.
    const offered: Uint8Array = key.data ?? new Uint8Array(0)
    const signed = signatureField && blob ? { data: blob, signature: signatureField } : undefined
    const isTooMuch = signed ? ++this.#tries > MAX_AUTH_TRIES : ++this.#offers > MAX_KEY_OFFERS
    if (isTooMuch) this.#tooMany(context)
    else await this.#ask(context, { method: 'publickey', key: offered, ...(signed && { signed }) })
  }

  async #ask(context: AuthContext, proof: AuthenticateRequest['proof']): Promise<void> {
    const login = context.username
    const answer = await this.#gate.authenticate({ protocol: 'SSH', source: this.#source, login, proof })
    switch (answer.result) {
      case 'accepted':
        await this.#accept(context, answer.identity)
        return
      case 'malformed':
        this.#turnAway(context, answer.message)
        return
      case 'key_acceptable':
        // ssh2 answers an accepted question with PK_OK, and an accepted signature with success.
        if (proof.method === 'publickey' && !proof.signed && !this.#isOver) context.accept()
        return
      case 'rejected':
        if (this.#tries >= MAX_AUTH_TRIES) this.#tooMany(context)
        else if (!this.#isOver) context.reject(METHODS)
    }
  }

  async #accept(context: AuthContext, identity: Identity): Promise<void> {
    this.#identity = identity
    if (!this.#isOver && !this.#transport.closed) context.accept()
    // Not taken: the client has gone, or has made another request in the meantime, which aborts this one.
    const unused = this.takeIdentity()
    if (unused) await this.#gate.leave({ identity: unused.token })
  }

  #tooMany(context: AuthContext): void {
    this.#turnAway(context, 'too many failed attempts, try again with a new connection')
  }

  #turnAway(context: AuthContext, reason: string): void {
    if (this.#isOver) return
    this.#transport.send(bannerMessage(`sallyport: ${reason}\r\n`))
    context.reject([])
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#transport.end()
    setTimeout(() => this.#transport.destroy(), LINGER_MS).unref()
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
