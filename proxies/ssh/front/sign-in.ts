/**
 * The sign-in of one client (RFC 4252): sends its proofs to the gate, and the gate's replies to the client.
 * All decisions are the gate's: the front only holds the identity that the gate returns.
 */
import { Buffer } from 'node:buffer'
import type { AuthContext, AuthenticationType, KeyboardAuthContext, PublicKeyAuthContext } from 'ssh2'
import {
  type AnswersProof,
  type AuthenticateAnswer,
  type AuthenticateRequest,
  type Challenge,
  type Gate,
  type Identity,
  type PasswordProof,
  type Source,
  WAIT_MS,
} from '../../../src/contract/gate.ts'
import { LINGER_MS } from '../../net/limits.ts'
import { MAX_AUTH_TRIES } from '../../session/limits.ts'
import { instructionLines } from '../../wording/round.ts'
import { GSSAPI_METHOD, namesKerberos } from '../codec/gssapi.ts'
import { MAX_AUTH_REQUESTS, MAX_KEY_OFFERS } from '../transport/limits.ts'
import type { Transport } from '../transport/transport.ts'
import { Gssapi, type GssapiContext, isGssapi } from './gssapi.ts'

export interface SignInOptions {
  gate: Gate
  source: Source
  transport: Transport
  /** Shown before the first prompt. */
  banner: string | undefined
  /** Called when the connection may stay that many milliseconds longer without a sign-in. */
  onWaiting: (milliseconds: number) => void
}

type Method = 'publickey' | typeof GSSAPI_METHOD | 'keyboard-interactive' | 'password'

const METHODS: readonly Method[] = ['publickey', GSSAPI_METHOD, 'keyboard-interactive', 'password']

const PASSWORD_ROUND = { title: '', instructions: '', prompts: [{ text: 'Password: ', echo: false }] }

/** The sign-in of one connection. Attempts are counted here, and decided by the gate. */
export class SignIn {
  readonly #gate: Gate
  readonly #source: Source
  readonly #transport: Transport
  readonly #onWaiting: SignInOptions['onWaiting']
  #banner: string | undefined
  /** The request that came last. */
  #newest: AuthContext | undefined
  #identity: Identity | undefined
  #requests = 0
  #tries = 0
  #offers = 0
  #isOver = false
  #isGone = false
  /** A challenge sent to a client that has proved its identity; not answered yet. */
  #pending: Challenge | undefined
  /** Whether tickets of Kerberos are taken; undefined until the gate has been asked. */
  #takesTickets: boolean | undefined
  /** The exchange of gssapi-with-mic under way. */
  #gssapi: Gssapi | undefined

  constructor(options: SignInOptions) {
    this.#gate = options.gate
    this.#source = options.source
    this.#transport = options.transport
    this.#onWaiting = options.onWaiting
    this.#banner = options.banner
    this.#transport.onMethodMessage = (payload) => this.#onMethodMessage(payload)
  }

  /** Returns the identity just signed in, and clears it. */
  takeIdentity(): Identity | undefined {
    const identity = this.#identity
    this.#identity = undefined
    return identity
  }

  /** Releases the gate's state for a client that has disconnected. */
  destroy(): void {
    this.#isGone = true
    this.#drop()
    this.#endGssapi()
  }

  answer(context: AuthContext): void {
    if (this.#banner !== undefined) this.#transport.send(bannerMessage(this.#banner))
    this.#banner = undefined
    this.#newest = context
    this.#run(context, () => this.#decide(context))
  }

  /** Counts before the step runs: a client may send many requests without waiting for a reply. */
  #run(context: AuthContext, step: () => Promise<void>): void {
    // The socket of a rejected client is read until it is closed.
    if (this.#isOver) return
    const work =
      ++this.#requests > MAX_AUTH_REQUESTS ? Promise.resolve().then(() => this.#tooMany(context)) : step()
    work.catch(() => this.#end())
  }

  async #decide(context: AuthContext): Promise<void> {
    // A new request ends the exchange before it (RFC 4252 5).
    this.#endGssapi()
    if (isGssapi(context)) {
      await this.#begin(context)
      return
    }
    switch (context.method) {
      case 'keyboard-interactive':
        if (this.#pending) {
          this.#ask(context, this.#pending)
          return
        }
        await this.#beginRounds(context)
        return
      case 'password':
        await this.#password(context, { method: 'password', password: context.password })
        return
      case 'publickey':
        await this.#publicKey(context)
        return
      default:
        await this.#judge(context, { method: 'none' })
    }
  }

  /** Asks for the password, or sends the client's person to a browser, where the name's domain wants that. */
  async #beginRounds(context: KeyboardAuthContext): Promise<void> {
    const answer = await this.#prove(context.username, { method: 'browser' })
    // The client has begun another request meanwhile.
    if (this.#newest !== context) {
      if (answer.result === 'challenge') this.#leave(answer.challenge.id)
      return
    }
    if (answer.result === 'challenge') {
      this.#challenge(context, answer.challenge)
      return
    }
    this.#prompt(context, PASSWORD_ROUND, (answers) => {
      const [password = ''] = answers
      return this.#password(context, { method: 'keyboard-interactive', password })
    })
  }

  /** Sends one round of prompts (RFC 4256 3.2). */
  #prompt(
    context: KeyboardAuthContext,
    { title, prompts, ...shown }: Omit<Challenge, 'id'>,
    next: (answers: string[]) => Promise<void>,
  ): void {
    const questions = prompts.map(({ text, echo }) => ({ prompt: text, echo }))
    const lines = instructionLines(shown)
    // OpenSSH logs instructions, 1024 bytes of ASCII at most, or nothing with -q. It shows a prompt as it is.
    const first = lines.length > 1 ? questions[0] : undefined
    if (first) first.prompt = ['', ...lines, first.prompt].join('\n')
    context.prompt(questions, title, first ? '' : lines.join('\n'), (answers: unknown) => {
      // ssh2 passes an Error here if the client starts another method instead of answering.
      if (!Array.isArray(answers)) return
      const texts = answers.filter((answer) => typeof answer === 'string')
      this.#run(context, async () => {
        if (texts.length === prompts.length) {
          await next(texts)
          return
        }
        this.#drop()
        this.#reject(context)
      })
    })
  }

  /** Answers a request for gssapi-with-mic (RFC 4462 3.2). */
  async #begin(context: GssapiContext): Promise<void> {
    const { username: login } = context
    if (this.#takesTickets === undefined) {
      const answer = await this.#prove(login, { method: 'none' })
      this.#takesTickets = answer.result === 'rejected' && answer.takesTickets === true
    }
    if (!this.#takesTickets || !namesKerberos(context.mechanisms)) {
      if (!this.#isOver) this.#reject(context)
      return
    }
    this.#gssapi = new Gssapi({
      context,
      transport: this.#transport,
      prove: (proof) => this.#prove(login, proof),
      leave: (id) => this.#leave(id),
    })
  }

  /** Returns false for a message that is not of gssapi-with-mic. */
  #onMethodMessage(payload: Buffer): boolean {
    const exchange = this.#gssapi
    if (!exchange) return false
    const { context } = exchange
    this.#run(context, async () => {
      if (exchange.isToken(payload) && ++this.#tries > MAX_AUTH_TRIES) {
        this.#tooMany(context)
        return
      }
      const answer = await exchange.step(payload)
      if (answer === undefined) return
      if (this.#gssapi === exchange) this.#endGssapi()
      await this.#answered(context, answer)
    })
    return true
  }

  #endGssapi(): void {
    this.#gssapi?.end()
    this.#gssapi = undefined
  }

  /** Checks a password, or the answers of a further round: guesses at either are limited. */
  async #password(
    context: AuthContext,
    proof: PasswordProof | AnswersProof,
    onJudged?: () => void,
  ): Promise<void> {
    if (++this.#tries > MAX_AUTH_TRIES) this.#tooMany(context)
    else await this.#judge(context, proof, onJudged)
  }

  async #publicKey(context: PublicKeyAuthContext): Promise<void> {
    const { key, signatureField, blob } = context as PublicKeyAuthContext & { signatureField?: Buffer }
    // ssh2 passes an undefined key if the request was truncated; it counts and is answered all the same.
    const offered: Uint8Array = key.data ?? new Uint8Array(0)
    const signed = signatureField && blob ? { data: blob, signature: signatureField } : undefined
    const isTooMuch = signed ? ++this.#tries > MAX_AUTH_TRIES : ++this.#offers > MAX_KEY_OFFERS
    if (isTooMuch) this.#tooMany(context)
    else await this.#judge(context, { method: 'publickey', key: offered, ...(signed && { signed }) })
  }

  async #judge(
    context: AuthContext,
    proof: AuthenticateRequest['proof'],
    onJudged?: () => void,
  ): Promise<void> {
    const answer = await this.#prove(context.username, proof)
    onJudged?.()
    if (proof.method === 'none' && answer.result === 'rejected')
      this.#takesTickets = answer.takesTickets === true
    if (answer.result !== 'key_acceptable') await this.#answered(context, answer)
    // ssh2 sends PK_OK for an accepted query, and success for an accepted signature.
    else if (proof.method === 'publickey' && !proof.signed && !this.#isOver) context.accept()
  }

  #prove(login: string, proof: AuthenticateRequest['proof']): Promise<AuthenticateAnswer> {
    return this.#gate.authenticate({ protocol: 'SSH', source: this.#source, login, proof })
  }

  async #answered(context: AuthContext, answer: AuthenticateAnswer): Promise<void> {
    switch (answer.result) {
      case 'accepted':
        await this.#accept(context, answer.identity)
        return
      case 'unavailable':
        if (isGssapi(context) && !this.#isOver) {
          // The user may have a password or a key, too.
          this.#takesTickets = false
          this.#transport.send(bannerMessage(`sallyport: ${answer.message}\r\n`))
          this.#reject(context)
          return
        }
        this.#turnAway(context, answer.message)
        return
      case 'malformed':
        this.#turnAway(context, answer.message)
        return
      case 'challenge':
        this.#challenge(context, answer.challenge)
        return
      case 'rejected':
        if (this.#tries >= MAX_AUTH_TRIES) this.#tooMany(context)
        else if (!this.#isOver) this.#reject(context)
    }
  }

  /** Names the methods that may follow: the same for every user. */
  #reject(context: AuthContext): void {
    context.reject(
      METHODS.filter((one) => one !== GSSAPI_METHOD || this.#takesTickets) as AuthenticationType[],
    )
  }

  /**
   * Continues with a challenge of the gate. Only keyboard-interactive can carry it, so a client that used
   * another method gets a partial success (RFC 4252 5.1).
   */
  #challenge(context: AuthContext, challenge: Challenge): void {
    this.#drop()
    this.#pending = challenge
    if (this.#isOver || this.#isGone) this.#drop()
    else if (context.method === 'keyboard-interactive') this.#ask(context, challenge)
    else {
      if (challenge.hint !== undefined)
        this.#transport.send(bannerMessage(`sallyport: ${challenge.hint}\r\n`))
      context.reject(['keyboard-interactive'], true)
    }
  }

  #ask(context: KeyboardAuthContext, challenge: Challenge): void {
    const isWaiting = challenge.link !== undefined
    if (isWaiting) this.#onWaiting(WAIT_MS)
    this.#prompt(context, challenge, async (answers) => {
      const proof = { method: 'keyboard-interactive', challenge: challenge.id, answers } as const
      // If two rounds were begun, the first answer counts. One that waits for a person ends with the client.
      const done = () => {
        if (this.#pending === challenge) this.#pending = undefined
      }
      if (isWaiting) await this.#password(context, proof, done)
      else {
        done()
        await this.#password(context, proof)
      }
    })
  }

  #drop(): void {
    const challenge = this.#pending
    this.#pending = undefined
    if (challenge) this.#leave(challenge.id)
  }

  #leave(identity: string): void {
    // If the message fails, the gate's state ends with the broker.
    this.#gate.leave({ identity }).catch(() => undefined)
  }

  async #accept(context: AuthContext, identity: Identity): Promise<void> {
    this.#drop()
    this.#identity = identity
    if (!this.#isOver && !this.#transport.closed) context.accept()
    // The identity is unused if the client has disconnected, or has meanwhile sent another request, which
    // aborts this one.
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
    this.#transport.close()
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
