/** One client's connection from sign-in to close: the lobby, the target, the relay. */

import type { Gate, Identity, Logon, LogonQuestion, OpenRequest, Source } from '../../src/contract/gate.ts'
import { formatLogin } from '../../src/model/login.ts'
import { isTerminalProtocol, type Protocol, type Right } from '../../src/model/rights.ts'
import { disconnect } from '../net/disconnect.ts'
import type { Connections } from '../session/connections.ts'
import { MAX_LOGON_REFUSALS } from '../session/limits.ts'
import type { SessionResult } from '../session/session.ts'
import { refusalOf } from '../session/unasked.ts'
import type { TerminalBacks } from '../terminal/back.ts'
import { CredentialRefusedError, INTERNAL, TargetError } from '../wording/errors.ts'
import { connectTarget } from './back/back.ts'
import { Lobby } from './lobby/lobby.ts'
import type { LocalChannel } from './lobby/local.ts'
import { SshSession } from './policy/session.ts'
import { Relay } from './relay/relay.ts'
import { TerminalLeg } from './terminal/target-leg.ts'
import type { ClientLeg } from './transport/leg.ts'

export interface ConnectionOptions {
  gate: Gate
  /** Registers the session once it has begun, so that the gate's notices reach it. */
  connections: Connections
  identity: Identity
  source: Source
  /** The protocol of the front. */
  protocol: Protocol
  client: ClientLeg
  /** Software version sent to the target, without `SSH-2.0-`. */
  ident: string
  backs: TerminalBacks
  /** Shown to a terminal once, before the shell or the menu. */
  motd: string | undefined
  /** Called when the connection is fully closed. */
  onClosed: () => void
}

/** Reply to a login without target where there is no terminal for a menu. */
const SYNTAX =
  'no target in the login: use USER+ACCOUNT@DEVICE, for example ssh ops1+root@srv1@bastion, or a terminal for the menu'

/** The fields of an open request that the client may choose. */
type Choice = Pick<OpenRequest, 'target' | 'logon'>

/** Why there is no session. `question` is set if the user may try again with another login. */
interface Refusal {
  message: string
  question?: LogonQuestion
}

export class SshConnection {
  readonly #options: ConnectionOptions
  readonly #lobby: Lobby
  readonly #abandon = new AbortController()
  readonly #takeMotd: () => string | undefined
  #session: SshSession | undefined
  /** Set while the target is being connected. */
  #connecting: Promise<void> | undefined
  /**
   * The target chosen in the menu, by the channel that prompts for a login there. Without an entry, the login
   * string names the target.
   */
  readonly #chosen = new WeakMap<LocalChannel, string>()
  /** Number of refused logins at targets. */
  #refusals = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { client, identity, gate, protocol } = options
    let { motd } = options
    const takeMotd = () => {
      const text = motd
      motd = undefined
      return text
    }
    this.#takeMotd = takeMotd
    client.onClosed = () => {
      this.#abandon.abort('the client has gone')
      this.#lobby.close()
      void this.#leave()
    }
    this.#lobby = new Lobby(
      {
        client,
        onFirstChannel: () => {
          this.#connecting = this.#toTarget()
        },
        takeMotd,
        targets: () => gate.targets({ identity: identity.token, protocol }),
        onChoice: ({ target }, channel) => {
          this.#chosen.set(channel, target)
          this.#connecting = this.#toChosen(channel, { target })
        },
        onLogon: (logon, channel) => {
          const target = this.#chosen.get(channel)
          this.#connecting = this.#toChosen(channel, { logon, ...(target !== undefined && { target }) })
        },
        onDenied: (what) => {
          const request = {
            identity: identity.token,
            protocol,
            what,
            reason: 'not allowed here',
          }
          // A denial that cannot be audited ends the connection.
          gate.denied(request).catch(() => client.destroy())
        },
        jumpHint: (device) =>
          `the bastion is no jump host (-J, ProxyJump, -W): leave that out and name the target in the user name, ssh ${formatLogin({ user: identity.user, target: { account: 'ACCOUNT', device } }, '+')}@BASTION`,
        onBreach: () => client.breach(),
        onIdle: () => this.stop('failure', 'nothing was asked for in time'),
      },
      identity.hasTarget ? { name: 'waiting' } : { name: 'local', text: SYNTAX, menu: true },
    )
  }

  /** Called when the broker stops. */
  stop(result: SessionResult, reason: string): void {
    if (this.#session) {
      this.#session.stop(result, reason)
      return
    }
    this.#abandon.abort(reason)
    this.#lobby.endChannels(reason)
    disconnect(this.#options.client)
  }

  /** Connects the target of the login string. */
  async #toTarget(): Promise<void> {
    const relay = await this.#connect({}, this.#abandon.signal, undefined)
    if (!(relay instanceof Relay)) {
      if (!this.#isTooOften(relay)) this.#lobby.goLocal(relay.message, false, relay.question)
      return
    }
    const held = this.#lobby.releaseHeld()
    if (held) relay.guarded(() => relay.adopt(held))
    this.#handOver(relay)
  }

  /**
   * Connects a target that was chosen on a terminal, or that prompted for a login there. The channel then
   * continues at the target.
   */
  async #toChosen(channel: LocalChannel, choice: Choice): Promise<void> {
    const interrupt = new AbortController()
    const where = choice.target === undefined ? '' : ` to ${choice.target}`
    channel.wait(`Connecting${where} ...\r\n`, () => interrupt.abort('interrupted'))
    const relay = await this.#connect(
      choice,
      AbortSignal.any([interrupt.signal, this.#abandon.signal]),
      channel,
    )
    if (relay instanceof Relay) {
      const adopted = channel.handOver()
      if (adopted) relay.guarded(() => relay.adopt(adopted))
      this.#handOver(relay)
      return
    }
    if (this.#isTooOften(relay)) return
    const { message, question } = relay
    if (this.#options.identity.hasTarget) this.#lobby.goLocal(message, false, question)
    else this.#lobby.goLocal(SYNTAX, true)
    if (question) channel.ask(question, `sallyport: ${message}`)
    else channel.resume(`sallyport: ${message}`)
  }

  /** Ends the connection after too many refused logins at targets. */
  #isTooOften({ message }: Refusal): boolean {
    if (this.#refusals < MAX_LOGON_REFUSALS) return false
    this.stop('failure', message)
    return true
  }

  #handOver(relay: Relay): void {
    for (const message of this.#lobby.takeWaiting()) relay.replay(message)
  }

  /** Returns the relay to the target, or the reason why there is none. Never rejects. */
  async #connect(
    choice: Choice,
    signal: AbortSignal,
    chosen: LocalChannel | undefined,
  ): Promise<Relay | Refusal> {
    const { gate, identity, source, protocol, client, ident, backs, connections } = this.#options
    let session: SshSession | undefined
    let question: LogonQuestion | undefined
    try {
      const answer = await gate.open({ identity: identity.token, protocol, source, ...choice })
      if (answer.result === 'denied') return { message: answer.message }
      if (answer.result === 'logon_needed') return this.#toAsk(answer.question, choice.logon)
      if (answer.result !== 'opened') return { message: refusalOf(answer) }
      question = answer.session.question
      session = await SshSession.of(answer.session, gate)
      this.#session = session
      session.onStop = (_result, reason) => this.#abandon.abort(reason)
      // The session may already have been stopped.
      connections.begun(session)
      const { rights, limits } = session
      const may = { has: (right: Right) => rights.has(right), terminal: limits?.noTerminal !== true }
      const agent = () => this.#lobby.agent(chosen, may)
      const { protocol: spoken } = answer.session.target
      const target = isTerminalProtocol(spoken)
        ? new TerminalLeg(await backs[spoken](answer.session, signal))
        : await connectTarget(answer.session, gate, ident, signal, agent)
      if (session.stopped) {
        target.destroy()
        throw new Error(session.stopped.reason)
      }
      this.#lobby.close()
      this.#lobby.leaveBehind(chosen)
      return new Relay(client, target, session, {
        firstId: this.#lobby.nextId,
        takeMotd: this.#takeMotd,
        onClosed: () => void this.#leave(),
      })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (session) {
        connections.onClosed(session)
        this.#session = undefined
        await session.close('failure', reason)
      }
      const message = error instanceof TargetError || session?.stopped ? reason : INTERNAL
      if (!question || !(error instanceof CredentialRefusedError)) return { message }
      this.#refusals++
      return { message, question }
    }
  }

  /** Counts invalid typed credentials like refused ones. */
  #toAsk(question: LogonQuestion, typed: Logon | undefined): Refusal {
    if (typed) this.#refusals++
    const what = question.login === undefined ? 'login and password' : `password of ${question.login}`
    return { message: question.flaw ?? `${question.target} asks for the ${what}`, question }
  }

  /** Call when the client has left or the relay has ended. Never rejects. */
  async #leave(): Promise<void> {
    const { gate, identity, connections, onClosed } = this.#options
    try {
      await this.#connecting
      if (this.#session) {
        await this.#session.close('success')
        connections.onClosed(this.#session)
      }
      await gate.leave({ identity: identity.token })
    } catch {
      // The broker is gone: there is no receiver for an error.
    } finally {
      onClosed()
    }
  }
}
