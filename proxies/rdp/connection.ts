/**
 * One client's connection from its Client Info to the end: the sign-in, unless NLA has done it; the target
 * named in the login, or chosen from a list; the notice that the session is recorded; then the relay.
 */

import type { Gate, Identity } from '../../src/contract/gate.ts'
import type { DesktopOpeningOptions } from '../desktop/opening.ts'
import { NOTICE_SECONDS, OWN_SCREENS_MS } from '../desktop/screens/limits.ts'
import { dayMessage, failureMessage, recordedNotice } from '../desktop/screens/message.ts'
import { WaitingScreen } from '../desktop/screens/waiting.ts'
import { type Choice, isRefusal, type Refusal, TargetChoice } from '../desktop/target-choice.ts'
import { end } from '../net/disconnect.ts'
import type { Connections, ProxyConnection } from '../session/connections.ts'
import { Patience } from '../session/patience.ts'
import type { SessionResult } from '../session/session.ts'
import { INTERNAL } from '../wording/errors.ts'
import type { Desktop } from './codec/capabilities.ts'
import { ERROR_INFO } from './codec/session-pdus.ts'
import type { RdpArrival } from './front/front.ts'
import { LocalDisplay } from './local/display.ts'
import { type Opened, openSession } from './opening.ts'
import { RdpRelay } from './relay/relay.ts'
import { RdpSignIn } from './sign-in.ts'

export interface ConnectionOptions extends Omit<RdpArrival, 'signedIn'> {
  /** A user has signed in; `identity` is its token. */
  signedIn: (identity: string) => void
  gate: Gate
  connections: Connections
  /** The bastion's name on its screens. */
  bastion: string
  /** The message of the day. */
  motd?: string
  /** The connection has ended completely. */
  onClosed: () => void
}

/** Part of the time for the sign-in, so that some is left to show the client the error. */
const GRACE_PART = 0.9
/** Milliseconds in which the client is shown that its user has not come back. */
const FAILURE_MS = 20_000

export class RdpConnection implements ProxyConnection {
  readonly #options: ConnectionOptions
  readonly #abandon = new AbortController()
  #signIn: RdpSignIn | undefined
  #identity: Identity | undefined
  #display: LocalDisplay | undefined
  #opened: Opened | undefined
  #choice: TargetChoice<Opened> | undefined
  /** The attempt to connect to the target, while it runs. */
  #opening: Promise<unknown> | undefined
  /** The relay handles the client, and closes the session itself. */
  #isRelayed = false
  /** Runs until the relay begins; from then on the policy's limits apply. */
  readonly #idle: Patience
  /** Runs until a user has signed in. */
  #late: NodeJS.Timeout
  #isLeaving = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { client, graceMs } = options
    client.onClosed = () => void this.#leave('success')
    client.onDrain = () => this.#display?.drained()
    client.onBroken = (error) => void this.#leave('failure', error.message)
    const leave = (reason: string, error: number) => () => void this.#leave('failure', reason, error)
    this.#idle = new Patience(OWN_SCREENS_MS, leave('nothing was done in time', ERROR_INFO.idleTimeout))
    this.#late = setTimeout(() => this.#tooLate(), graceMs * GRACE_PART)
  }

  #tooLate(): void {
    void this.#leave('failure', 'the user has not signed in in time', ERROR_INFO.logonTimeout)
  }

  /** The user is in a browser, and comes back within these milliseconds. */
  #awaits(milliseconds: number): void {
    this.#options.waits(milliseconds + FAILURE_MS)
    this.#idle.extend(milliseconds)
    clearTimeout(this.#late)
    this.#late = setTimeout(() => this.#tooLate(), milliseconds)
  }

  /** Called once, when `signedIn` and `onClosed` have their receiver. */
  begin(): void {
    this.#run().catch(() => this.#leave('failure', INTERNAL))
  }

  /** Closes the connection, because the broker stops. */
  stop(result: SessionResult, reason: string): void {
    if (this.#isRelayed) this.#opened?.session.stop(result, reason)
    else void this.#leave(result, reason, ERROR_INFO.administratorDisconnect)
  }

  onTargets(text: string): void {
    this.#choice?.refresh(text)
  }

  async #run(): Promise<void> {
    const identity = this.#options.identity ?? (await this.#signedIn())
    // Drops the password, which after NLA is a ticket.
    this.#options.client.takePassword()
    if (!identity) return
    this.#identity = identity
    if (this.#isLeaving) {
      await this.#forget()
      return
    }
    clearTimeout(this.#late)
    this.#options.signedIn(identity.token)
    const { gate, bastion, motd } = this.#options
    if (motd !== undefined) {
      const display = this.#own()
      await display.ask(dayMessage({ bastion, user: identity.user, text: motd }, display.size))
    }
    const choice = new TargetChoice<Opened>({
      gate,
      identity,
      protocol: 'RDP',
      bastion,
      display: () => this.#own(),
      open: (choice, signal) => this.#open(choice, signal),
      approvals: this.#options.connections.approvals,
      onPatience: (milliseconds) => this.#idle.extend(milliseconds),
      signal: this.#abandon.signal,
    })
    this.#choice = choice
    const opened = await this.#choose(choice, identity)
    if (this.#isLeaving) return
    if (opened === 'left') await this.#leave('success')
    else if (isRefusal(opened)) await this.#fail('No session', opened.message)
    else await this.#handOver(opened, identity)
  }

  /** Returns undefined if no user signed in; the connection is then closing. */
  async #signedIn(): Promise<Identity | undefined> {
    const { gate, source, client, bastion } = this.#options
    const signIn = new RdpSignIn({
      ...{ gate, source, client, bastion, display: () => this.#own() },
      onWaiting: (milliseconds) => this.#awaits(milliseconds),
    })
    this.#signIn = signIn
    const outcome = await signIn.run()
    if (outcome === 'left') await this.#leave('success')
    else if ('identity' in outcome) return outcome.identity
    else await this.#fail('No sign-in', outcome.refused)
    return undefined
  }

  /** Lets a user choose another target if the named one is refused. A ticket is for one target only. */
  async #choose(choice: TargetChoice<Opened>, { token, hasTarget }: Identity) {
    if (!hasTarget) return await choice.fromList()
    const opened = await choice.reach({})
    if (!isRefusal(opened) || this.#isLeaving) return opened
    const { total } = await this.#options.gate.targets({ identity: token, protocol: 'RDP' })
    if (total === 0) return opened
    await this.#tell('No session', opened.message)
    return await choice.fromList()
  }

  /** Returns the bastion's own desktop. */
  #own(): LocalDisplay {
    return this.#display ?? this.#begin()
  }

  /** `desktop`: size and depth of the client's previous desktop, the bastion's or a target's. */
  #begin(desktop?: Desktop): LocalDisplay {
    const { client } = this.#options
    const display = new LocalDisplay({ client, ...(desktop && { size: desktop, depth: desktop.depth }) })
    this.#display = display
    client.handler = display
    display.onInput = () => this.#idle.refresh()
    display.onShutdown = () => void this.#leave('success')
    return display
  }

  /** Never rejects. */
  async #open(choice: Choice, signal: AbortSignal): Promise<Opened | Refusal> {
    const { gate, connections, source, client } = this.#options
    const identity = this.#identity!
    const held: Pick<DesktopOpeningOptions, 'onHeld' | 'onPatience'> = {
      onHeld: (text, cancel) => {
        const display = this.#own()
        const words = { bastion: this.#options.bastion, user: identity.user, heading: 'Waiting', text }
        display.show(new WaitingScreen(words, display.size), cancel)
      },
      onPatience: (milliseconds) => this.#idle.extend(milliseconds),
    }
    const opening = openSession({ gate, connections, identity, source, client, ...held }, choice, signal)
    this.#opening = opening
    const opened = await opening
    if (!isRefusal(opened)) this.#opened = opened
    return opened
  }

  /** Shows the notice, then starts the relay. */
  async #handOver(opened: Opened, { user }: Identity): Promise<void> {
    const { session, target } = opened
    const { client, bastion } = this.#options
    session.onStop = (result, reason) => void this.#leave(result, reason, ERROR_INFO.administratorDisconnect)
    target.stream.onClosed = () => void this.#leave('failure', 'the target closed the connection')
    if (session.stopped) {
      await this.#leave('failure')
      return
    }
    if (session.rdp.sessionNotice && session.isRecorded) {
      const display = this.#own()
      const of = { bastion, user, target: session.target.canonical, seconds: NOTICE_SECONDS }
      await display.ask(recordedNotice(of, display.size))
    }
    await session.opens('RDP')
    try {
      await this.#display?.release()
    } catch (error) {
      await this.#leave('failure', (error as Error).message)
    }
    if (this.#isLeaving) return
    this.#idle.stop()
    this.#display = undefined
    // Set first: the relay may end as soon as it begins.
    this.#isRelayed = true
    new RdpRelay({
      client,
      ...opened,
      onLastWords: (desktop, reason, code) => this.#lastWords(desktop, reason, code),
      onClosed: () => void this.#leave('success'),
    })
  }

  /** Shows the user why there is no session, then closes. */
  async #fail(heading: string, text: string): Promise<void> {
    await this.#tell(heading, text)
    await this.#leave('failure', text, ERROR_INFO.serverDenied)
  }

  async #tell(heading: string, text: string): Promise<void> {
    const display = this.#own()
    await display.ask(failureMessage({ ...this.#named(), heading, text }, display.size))
  }

  #named(): { bastion: string; user?: string } {
    const user = this.#identity?.user
    return { bastion: this.#options.bastion, ...(user !== undefined && { user }) }
  }

  /** Shows the reason of the session's end until the user leaves. */
  #lastWords(desktop: Desktop | undefined, reason: string, errorCode: number): void {
    const { client } = this.#options
    this.#isRelayed = false
    const display = this.#begin(desktop)
    const close = (): void => this.#close(errorCode)
    client.onRead = undefined
    client.onDrain = () => display.drained()
    client.onBroken = close
    display.onShutdown = close
    const words = { ...this.#named(), heading: 'The session has ended', text: reason, isSudden: true }
    display.show(failureMessage(words, display.size), close)
  }

  /** `error`: a code of ERROR_INFO, for clients that have a text for it. */
  #close(error?: number): void {
    const { client } = this.#options
    if (error !== undefined) this.#display?.tellError(error)
    client.sendDisconnect()
    end(client.stream)
  }

  /** Closes everything. Never rejects. */
  async #leave(result: SessionResult, reason?: string, error?: number): Promise<void> {
    if (this.#isLeaving) return
    this.#isLeaving = true
    const { connections, onClosed } = this.#options
    this.#abandon.abort(reason ?? 'the client has gone')
    this.#idle.stop()
    clearTimeout(this.#late)
    this.#signIn?.onClosed()
    this.#close(error)
    this.#display?.close()
    try {
      await this.#opening
      const opened = this.#opened
      if (opened) {
        opened.target.stream.onClosed = undefined
        opened.target.stream.destroy()
        connections.onClosed(opened.session)
        await opened.session.close(result, reason)
      }
      await this.#forget()
    } finally {
      onClosed()
    }
  }

  /** Never rejects: if the broker is gone, the identity is gone too. */
  async #forget(): Promise<void> {
    const identity = this.#identity ?? this.#options.identity
    if (identity) await this.#options.gate.leave({ identity: identity.token }).catch(() => undefined)
  }
}
