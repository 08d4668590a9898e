/**
 * The server side toward clients that show a terminal: one protocol, in clear text for some
 * networks or encrypted for all, with the sign-in at the gate.
 */
import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import type { Gate, Identity, Source } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { isFrom } from '../../src/model/networks.ts'
import type { TerminalProtocol } from '../../src/model/rights.ts'
import { Front } from '../net/front.ts'
import { LINGER_MS } from '../net/limits.ts'
import { TerminalClient } from './client.ts'
import type { ClientProtocol } from './client-wire.ts'
import { TerminalSignIn } from './sign-in.ts'

export interface TerminalFrontOptions {
  gate: Gate
  protocol: TerminalProtocol
  wire: ClientProtocol
  urgent: UrgentData
  loginGraceMs: number
  /** Text shown to every client before the sign-in. */
  banner?: string
  security: Security
  /** Returns the bytes that refuse a client with a reason, before the protocol begins. */
  refusal: (text: string) => string
  /**
   * Called when a user has signed in. The client is not read until its `paused` is false. `ahead`: input
   * typed already.
   */
  onSignedIn: (identity: Identity, source: Source, client: TerminalClient, ahead: Uint8Array) => void
}

/** Clear text from these networks only, at least one; or TLS. */
export type Security = { allow: readonly string[] } | { tls: SecureContext }

export class TerminalFront extends Front<Security> {
  readonly #options: TerminalFrontOptions
  banner: string | undefined

  constructor(options: TerminalFrontOptions) {
    super(options)
    this.#options = options
    this.banner = options.banner
  }

  protected welcome(socket: Socket, source: Source): void {
    const { security } = this
    if ('allow' in security && !isFrom(source.address, security.allow)) {
      this.#turnAway(socket)
      return
    }
    const { urgent, wire } = this.#options
    const isClear = 'allow' in security
    const stream = isClear ? socket : new TLSSocket(socket, { isServer: true, secureContext: security.tls })
    const client = new TerminalClient(stream, urgent, wire)
    void this.#signIn(client, source, socket, isClear)
  }

  async #signIn(client: TerminalClient, source: Source, socket: Socket, isClear: boolean): Promise<void> {
    const { gate, protocol, onSignedIn } = this.#options
    const signIn = new TerminalSignIn({
      ...{ gate, protocol, source, client },
      onWaiting: (milliseconds) => this.waits(socket, milliseconds),
    })
    client.start()
    const user = await client.user
    client.show(`${this.banner ?? ''}${isClear ? CLEAR_TEXT : ''}`)
    const signedIn = await signIn.run(user)
    if (!signedIn) return
    this.signedIn(socket)
    client.paused = true
    client.signedIn()
    onSignedIn(signedIn.identity, source, client, signedIn.ahead)
  }

  #turnAway(socket: Socket): void {
    socket.end(this.#options.refusal('sallyport: clear text is not allowed from your address, use SSH'))
    // Closing with unread input resets the connection, and the reason would be lost.
    socket.resume()
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

const CLEAR_TEXT =
  'sallyport: this connection is not encrypted: others on the way can read your password and all that you see\r\n'
