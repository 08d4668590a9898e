/**
 * The sign-in at a session's target (RFC 4252): the methods of its connection policy in order, each with the
 * credentials that the gate returned for it. The user's own agent is opened only when its method is reached.
 */
import type { Buffer } from 'node:buffer'
import { createPrivateKey, sign } from 'node:crypto'
import type { AnyAuthMethod } from 'ssh2'
import type { OpenSession, SessionCredential } from '../../../src/contract/gate.ts'
import type { AgentKey } from '../codec/agent.ts'
import { GSSAPI_METHOD } from '../codec/gssapi.ts'
import { Writer } from '../codec/writer.ts'
import { AgentError, type ClientAgent } from '../lobby/client-agent.ts'
import type { Transport } from '../transport/transport.ts'
import { type GssapiAttempt, TargetGssapi, type TicketSource } from './target-gssapi.ts'

/** Opens the user's agent. Returns undefined if the agent is not forwarded. */
export type AgentSource = () => Promise<ClientAgent | undefined>

/** Signs in place of a private key (patches/). Calls back with the signature field, or without one. */
interface Signer {
  algorithm: string
  blob: Uint8Array
  sign(data: Buffer, callback: (signature?: Uint8Array) => void): void
}

/** The next attempt for ssh2, whose own types lack signers and tickets. */
export type Attempt = AnyAuthMethod | { type: 'publickey'; username: string; signer: Signer } | GssapiAttempt

const CERTIFICATE_TYPE = 'ssh-ed25519-cert-v01@openssh.com'

export class TargetSignIn {
  readonly #session: OpenSession
  readonly #agentSource: AgentSource
  readonly #ticketSource: TicketSource
  readonly #attempts: AsyncGenerator<Attempt>
  #methodsLeft: readonly string[] | null = null
  #agent: ClientAgent | undefined
  /** The exchange of gssapi-with-mic under way. */
  #gssapi: TargetGssapi | undefined
  /** Hints for the user, shown if no credential was accepted. */
  readonly #notes = new Set<string>()
  #agentKeys = 0
  /** The gate hands out those of a stored account when the host key is accepted. */
  credentials: readonly SessionCredential[]

  constructor(session: OpenSession, agentSource: AgentSource, ticketSource: TicketSource) {
    this.#session = session
    this.#ticketSource = ticketSource
    this.credentials = session.credentials
    this.#agentSource = agentSource
    this.#attempts = this.#all()
  }

  /**
   * Returns the next attempt that the target still allows, or `false` if none is left. `methodsLeft` is null
   * until the target has replied to an attempt. Never rejects.
   */
  async next(methodsLeft: readonly string[] | null): Promise<Attempt | false> {
    this.#methodsLeft = methodsLeft
    this.#gssapi = undefined
    for (;;) {
      const { value, done } = await this.#attempts.next()
      if (done || !value) return false
      if (this.#takes(value.type)) return value
    }
  }

  /** Returns false for a message of the target that is not of gssapi-with-mic. */
  onMethodMessage(payload: Buffer, transport: Transport): boolean {
    if (!this.#gssapi) return false
    void this.#gssapi.receive(payload, transport)
    return true
  }

  /** Releases the credentials, which need not stay as long as the session. Call after the sign-in, successful or not. */
  close(): void {
    this.#agent?.close()
    this.credentials = []
    this.#gssapi = undefined
    void this.#attempts.return(undefined)
  }

  /** Returns the user's message for a refused sign-in at `name`. */
  refusal(name: string): string {
    const { question, target } = this.#session
    const what = question ? 'password' : 'credential'
    const notes = this.#notes.size === 0 ? '' : `: ${[...this.#notes].join('; ')}`
    return `${name} refused the ${what} of ${target.login}${notes}`
  }

  /** Text to append if the target closed the connection during the sign-in. */
  get hint(): string {
    if (this.#agentKeys === 0) return ''
    return `, after ${this.#agentKeys} ${this.#agentKeys === 1 ? 'key' : 'keys'} of your agent: it may take no more tries, so load fewer keys`
  }

  #takes(type: string): boolean {
    return this.#methodsLeft === null || this.#methodsLeft.includes(type)
  }

  async *#all(): AsyncGenerator<Attempt> {
    const { options, question, target } = this.#session
    const { credentials } = this
    const username = target.login
    for (const method of options.authenticationMethods) {
      switch (method) {
        case 'PUBKEY_VAULT':
          for (const one of credentials) if ('privateKey' in one) yield this.#withKey(username, one)
          break
        case 'PASSWORD_VAULT':
        case 'PASSWORD_MAPPING':
        case 'PASSWORD_INTERACTIVE':
          for (const one of credentials) {
            if (one.type !== 'password') continue
            yield { type: 'password', username, password: one.password }
            // A password that a user typed may be wrong, and targets lock accounts: do not send it twice.
            if (question && this.#methodsLeft?.includes('password')) continue
            yield { type: 'keyboard-interactive', username, prompt: onePassword(one.password) }
          }
          break
        case 'PUBKEY_AGENT_FORWARDING':
          yield* this.#withAgent(username)
          break
        case 'KERBEROS_FORWARDING':
          yield* this.#withTicket(username)
          break
      }
    }
  }

  #withKey(username: string, credential: Extract<SessionCredential, { privateKey: string }>): Attempt {
    if (credential.type === 'ssh_key') {
      const { privateKey: key, passphrase } = credential
      return { type: 'publickey', username, key, ...(passphrase !== undefined && { passphrase }) }
    }
    this.#notes.add(
      "it took no certificate of the domain's authority (it has to trust that key, as by TrustedUserCAKeys, and to know OpenSSH's certificates, which dropbear does not)",
    )
    const key = createPrivateKey(credential.privateKey)
    const signer: Signer = {
      algorithm: CERTIFICATE_TYPE,
      blob: credential.certificate,
      // The signature names the key's algorithm: the certificate's is no signature algorithm
      // (PROTOCOL.certkeys).
      sign: (data, callback) =>
        callback(
          new Writer(96)
            .string('ssh-ed25519')
            .string(sign(null, data, key))
            .finish(),
        ),
    }
    return { type: 'publickey', username, signer }
  }

  async *#withTicket(username: string): AsyncGenerator<Attempt> {
    // A ticket is got only for a target that takes one: ask what it takes.
    if (this.#methodsLeft === null) yield { type: 'none', username }
    if (!this.#takes(GSSAPI_METHOD)) {
      this.#notes.add('it takes no tickets of Kerberos (GSSAPIAuthentication of its sshd)')
      return
    }
    const note = (text: string) => void this.#notes.add(text)
    const answer = await this.#ticketSource()
    if (answer.result === 'token') {
      const { token } = answer
      this.#gssapi = new TargetGssapi({ username, token, source: this.#ticketSource, note })
      yield this.#gssapi.attempt
      note(
        'it did not take your ticket: its principal has to be allowed for this login, as by a line of .k5login',
      )
    } else if (answer.result === 'unusable') note(answer.message)
  }

  async *#withAgent(username: string): AsyncGenerator<Attempt> {
    if (!this.#takes('publickey')) return
    const keys = await this.#keysOfAgent()
    for (const key of keys) {
      this.#agentKeys++
      yield { type: 'publickey', username, signer: this.#signerOf(key) }
    }
    if (keys.length > 0) this.#notes.add(`none of the ${keys.length} keys of your agent was accepted`)
  }

  async #keysOfAgent(): Promise<AgentKey[]> {
    try {
      this.#agent = await this.#agentSource()
      if (!this.#agent) {
        this.#notes.add(
          'your agent was not forwarded: connect with ssh -A, or allow agent forwarding in your client',
        )
        return []
      }
      const keys = await this.#agent.keys()
      if (keys.length === 0)
        this.#notes.add('your agent holds no key that can be used: load one, as with ssh-add')
      return keys
    } catch (error) {
      if (!(error instanceof AgentError)) throw error
      this.#notes.add(error.message)
      return []
    }
  }

  #signerOf(key: AgentKey): Signer {
    return {
      algorithm: key.algorithm,
      blob: key.blob,
      sign: (data, callback) => {
        const failed = (error: unknown) => {
          this.#notes.add(error instanceof AgentError ? error.message : 'your agent could not be asked')
          callback()
        }
        this.#agent?.sign(key, data).then((signature) => {
          if (!signature) this.#notes.add('your agent refused to sign with a key that the target takes')
          callback(signature)
        }, failed)
      },
    }
  }
}

type Prompt = Extract<AnyAuthMethod, { type: 'keyboard-interactive' }>['prompt']

/**
 * Answers the first single prompt without echo, once. All other prompts (a change of password, a code) get an
 * empty answer, so that the secret is not typed where it does not belong.
 */
function onePassword(password: string): Prompt {
  let given = false
  return (_name, _instructions, _language, prompts, finish) => {
    const [only] = prompts
    if (prompts.length === 1 && only?.echo === false && !given) {
      given = true
      finish([password])
    } else {
      finish(prompts.map(() => ''))
    }
  }
}
