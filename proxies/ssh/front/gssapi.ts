/**
 * One exchange of gssapi-with-mic with a client (RFC 4462 3): one token each way, as Kerberos has it, and the client's
 * signature. The gate judges both; what comes out of order is refused.
 */
import type { Buffer } from 'node:buffer'
import type { AuthContext } from 'ssh2'
import type { AuthenticateAnswer, GssapiMicProof, GssapiTokenProof } from '../../../src/contract/gate.ts'
import {
  buildGssapiResponse,
  buildGssapiToken,
  GSSAPI,
  GSSAPI_METHOD,
  parseGssapiMic,
  parseGssapiToken,
  signedGssapiData,
} from '../codec/gssapi.ts'
import type { Transport } from '../transport/transport.ts'

/** A request for the method, as the patched ssh2 hands it on. */
export type GssapiContext = AuthContext & {
  mechanisms: Uint8Array
  begin(): void
}

export function isGssapi(context: AuthContext): context is GssapiContext {
  return (context.method as string) === GSSAPI_METHOD
}

export interface GssapiOptions {
  context: GssapiContext
  transport: Pick<Transport, 'send' | 'sessionId'>
  prove: (proof: GssapiTokenProof | GssapiMicProof) => Promise<AuthenticateAnswer>
  /** Ends a context of the gate's that will not be used. */
  leave: (id: string) => void
}

const REFUSED: AuthenticateAnswer = { result: 'rejected' }

export class Gssapi {
  readonly context: GssapiContext
  readonly #options: GssapiOptions
  #awaits: 'token' | 'mic' | 'nothing' = 'token'
  /** Id of the gate's context, until it is used. */
  #id: string | undefined
  #isOver = false

  /** Begins the exchange: chooses Kerberos. */
  constructor(options: GssapiOptions) {
    this.#options = options
    this.context = options.context
    this.context.begin()
    options.transport.send(buildGssapiResponse())
  }

  /** Whether the message is a token that will be judged. */
  isToken(payload: Uint8Array): boolean {
    return this.#awaits === 'token' && payload[0] === GSSAPI.token
  }

  /** Handles a message of the client. Returns the verdict, or undefined while there is none. */
  async step(payload: Buffer): Promise<AuthenticateAnswer | undefined> {
    const awaited = this.#awaits
    this.#awaits = 'nothing'
    if (awaited === 'token' && payload[0] === GSSAPI.token)
      return await this.#onToken(parseGssapiToken(payload))
    if (awaited === 'mic' && payload[0] === GSSAPI.mic) return await this.#onMic(parseGssapiMic(payload))
    // EXCHANGE_COMPLETE among them: Kerberos always has signatures, and without one nothing binds the ticket to us.
    return REFUSED
  }

  /** Ends the exchange: nothing comes of it any more. */
  end(): void {
    this.#isOver = true
    this.#awaits = 'nothing'
    const id = this.#id
    this.#id = undefined
    if (id !== undefined) this.#options.leave(id)
  }

  async #onToken(token: Uint8Array): Promise<AuthenticateAnswer | undefined> {
    const { prove, leave, transport } = this.#options
    const answer = await prove({ method: GSSAPI_METHOD, token })
    if (answer.result !== 'context') return answer
    if (this.#isOver) {
      leave(answer.context)
      return undefined
    }
    this.#id = answer.context
    this.#awaits = 'mic'
    if (answer.token) transport.send(buildGssapiToken(answer.token))
    return undefined
  }

  #onMic(mic: Uint8Array): Promise<AuthenticateAnswer> {
    const { context, prove, transport } = this.#options
    const id = this.#id!
    this.#id = undefined
    const data = signedGssapiData(transport.sessionId, context.username)
    return prove({ method: GSSAPI_METHOD, context: id, data, mic })
  }
}
