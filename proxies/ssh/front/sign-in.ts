/**
 * The sign-in of one client (RFC 4252): takes what it proves to the gate, and says what the gate answers. It never
 * decides who somebody is: it holds the identity that the gate answers with.
 */
import { Buffer } from 'node:buffer'
import type { AuthContext, KeyboardAuthContext, PublicKeyAuthContext } from 'ssh2'
import type {
  AnswersProof,
  AuthenticateRequest,
  Challenge,
  Gate,
  Identity,
  PasswordProof,
  Source,
} from '../../../src/contract/gate.ts'
import { LINGER_MS } from '../../net/limits.ts'
import { MAX_AUTH_TRIES } from '../../session/limits.ts'
import { MAX_AUTH_REQUESTS, MAX_KEY_OFFERS } from '../transport/limits.ts'
import type { Transport } from '../transport/transport.ts'

export interface SignInOptions {
  gate: Gate
  source: Source
  transport: Transport
  /** Shown before anything is asked. */
  banner: string | undefined
}

const METHODS: ('publickey' | 'keyboard-interactive' | 'password')[] = [
  'publickey',
  'keyboard-interactive',
  'password',
]

const PASSWORD_ROUND = { title: '', instructions: '', prompts: [{ text: 'Password: ', echo: false }] }

/** The sign-in of one connection: its attempts are counted, and each is the gate's to answer. */
export class SignIn {
  readonly #gate: Gate
  readonly #source: Source
  readonly #transport: Transport
  #banner: string | undefined
  #identity: Identity | undefined
  #requests = 0
  #tries = 0
  #offers = 0
  #isOver = false
  #isGone = false
  /** Put to the client, who has proved who they are, and not answered yet. */
  #pending: Challenge | undefined

  constructor(options: SignInOptions) {
    this.#gate = options.gate
    this.#source = options.source
    this.#transport = options.transport
    this.#banner = options.banner
  }

  /** Who has just been signed in, once. */
  takeIdentity(): Identity | undefined {
    const identity = this.#identity
    this.#identity = undefined
    return identity
  }

  /** The client has gone: what the gate keeps for it is not needed any more. */
  destroy(): void {
    this.#isGone = true
    this.#drop()
  }

  answer(context: AuthContext): void {
    if (this.#banner !== undefined) this.#transport.send(bannerMessage(this.#banner))
    this.#banner = undefined
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
        if (this.#pending) {
          this.#ask(context, this.#pending)
          return
        }
        this.#prompt(context, PASSWORD_ROUND, (answers) => {
          const [password = ''] = answers
          return this.#password(context, { method: 'keyboard-interactive', password })
        })
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

  /** One round of questions (RFC 4256 3.2). */
  #prompt(
    context: KeyboardAuthContext,
    { title, instructions, prompts }: Omit<Challenge, 'id'>,
    next: (answers: string[]) => Promise<void>,
  ): void {
    const questions = prompts.map(({ text, echo }) => ({ prompt: text, echo }))
    context.prompt(questions, title, instructions, (answers: unknown) => {
      // ssh2 hands an Error here when the client starts another method instead of answering.
      if (!Array.isArray(answers)) return
      const texts = answers.filter((answer) => typeof answer === 'string')
      this.#run(context, async () => {
        if (texts.length === prompts.length) {
          await next(texts)
          return
        }
        this.#drop()
        context.reject(METHODS)
      })
    })
  }

  /** A password, or the answers of a further round: guessing either is bounded. */
  async #password(context: AuthContext, proof: PasswordProof | AnswersProof): Promise<void> {
    if (++this.#tries > MAX_AUTH_TRIES) this.#tooMany(context)
    else await this.#judge(context, proof)
  }

  async #publicKey(context: PublicKeyAuthContext): Promise<void> {
    const { key, signatureField, blob } = context as PublicKeyAuthContext & { signatureField?: Buffer }
    // ssh2 hands on what is missing when the request was cut short; it counts, and is answered, like any other.
    const offered: Uint8Array = key.data ?? new Uint8Array(0)
    const signed = signatureField && blob ? { data: blob, signature: signatureField } : undefined
    const isTooMuch = signed ? ++this.#tries > MAX_AUTH_TRIES : ++this.#offers > MAX_KEY_OFFERS
    if (isTooMuch) this.#tooMany(context)
    else await this.#judge(context, { method: 'publickey', key: offered, ...(signed && { signed }) })
  }

  async #judge(context: AuthContext, proof: AuthenticateRequest['proof']): Promise<void> {
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
      case 'challenge':
        this.#challenge(context, answer.challenge)
        return
      case 'rejected':
        if (this.#tries >= MAX_AUTH_TRIES) this.#tooMany(context)
        else if (!this.#isOver) context.reject(METHODS)
    }
  }

  /**
   * The gate asks on: only keyboard-interactive can carry that, so who came by another method has succeeded in part
   * (RFC 4252 5.1), and goes on with this one.
   */
  #challenge(context: AuthContext, challenge: Challenge): void {
    this.#drop()
    this.#pending = challenge
    if (this.#isOver || this.#isGone) this.#drop()
    else if (context.method === 'keyboard-interactive') this.#ask(context, challenge)
    else context.reject(['keyboard-interactive'], true)
  }

  #ask(context: KeyboardAuthContext, challenge: Challenge): void {
    this.#prompt(context, challenge, (answers) => {
      // Of two rounds that were begun the first answer counts.
      if (this.#pending === challenge) this.#pending = undefined
      return this.#password(context, { method: 'keyboard-interactive', challenge: challenge.id, answers })
    })
  }

  #drop(): void {
    const challenge = this.#pending
    this.#pending = undefined
    // What cannot be told is forgotten with the broker.
    if (challenge) this.#gate.leave({ identity: challenge.id }).catch(() => undefined)
  }

  async #accept(context: AuthContext, identity: Identity): Promise<void> {
    this.#drop()
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
