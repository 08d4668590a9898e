/** One client's connection from sign-in to close: the lobby, the target, the relay. */

import type { ApprovalWait, Gate, Identity, LogonQuestion, Source } from '../../src/contract/gate.ts'
import { formatLogin } from '../../src/model/login.ts'
import { isTerminalProtocol, type Protocol, type Right } from '../../src/model/rights.ts'
import { disconnect } from '../net/disconnect.ts'
import type { Connections } from '../session/connections.ts'
import { HELD_MS, MAX_LOGON_REFUSALS } from '../session/limits.ts'
import { type Choice, type Refusal, refusalOf } from '../session/refusal.ts'
import type { SessionResult } from '../session/session.ts'
import type { TerminalBacks } from '../terminal/back.ts'
import { CredentialRefusedError, INTERNAL, TargetError } from '../wording/errors.ts'
import { isOptional, NO_REASON, noticeLines, noticeText } from '../wording/reason.ts'
import { connectTarget } from './back/back.ts'
import type { Question } from './lobby/dialogs.ts'
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

const GIVE_UP = 'Ctrl-C withdraws the request'

/** Where a client reads why it waits, and the channel that continues at the target, if it has one. */
interface Place {
  say: (text: string) => void
  channel: () => LocalChannel | undefined
}

/** The relay, or why there is none; with the choice that was made last. */
interface Outcome {
  reached: Relay | Refusal
  choice: Choice
}

export class SshConnection {
  readonly #options: ConnectionOptions
  readonly #lobby: Lobby
  readonly #abandon = new AbortController()
  readonly #takeMotd: () => string | undefined
  #session: SshSession | undefined
  /** Set while the target is being connected. */
  #connecting: Promise<void> | undefined
  /** Choice so far on a channel that asks a question about it. */
  readonly #chosen = new WeakMap<LocalChannel, Choice>()
  /** The same for the target that the login string names. */
  #named: Choice = {}
  /** Number of refused logins at targets, reasons and second factors. */
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
          this.#connecting = this.#toChosen(channel, { target })
        },
        onGiven: (given, channel) => {
          const { factor: _, ...choice } = this.#chosen.get(channel) ?? this.#named
          this.#connecting = this.#toChosen(channel, { ...choice, ...given })
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

  onTargets(text: string): void {
    this.#lobby.refresh(text)
  }

  /** Connects the target of the login string. */
  async #toTarget(): Promise<void> {
    const interrupt = new AbortController()
    const lobby = this.#lobby
    const place: Place = {
      say: (text) => lobby.announce(text, () => interrupt.abort('interrupted')),
      channel: () => lobby.shown,
    }
    const { reached, choice } = await this.#reach({}, this.#either(interrupt), place)
    const channel = lobby.shown
    if (reached instanceof Relay) {
      const adopted = channel ? channel.handOver() : lobby.releaseHeld()
      if (adopted) reached.guarded(() => reached.adopt(adopted))
      this.#handOver(reached)
      return
    }
    if (this.#isTooOften(reached)) return
    this.#named = choice
    const question = questionOf(reached)
    lobby.goLocal(reached.message, false, question)
    if (channel) this.#goOn(channel, reached, question)
  }

  /**
   * Connects a target that was chosen on a terminal, or that asked there for a login or a reason. The channel
   * then continues at the target.
   */
  async #toChosen(channel: LocalChannel, chosen: Choice): Promise<void> {
    const interrupt = new AbortController()
    const where = chosen.target === undefined ? '' : ` to ${chosen.target}`
    channel.wait(channel.canAsk ? `Connecting${where} ...\r\n` : '', () => interrupt.abort('interrupted'))
    const place: Place = { say: (text) => channel.say(text), channel: () => channel }
    const { reached, choice } = await this.#reach(chosen, this.#either(interrupt), place)
    if (reached instanceof Relay) {
      const adopted = channel.handOver()
      if (adopted) reached.guarded(() => reached.adopt(adopted))
      this.#handOver(reached)
      return
    }
    if (this.#isTooOften(reached)) return
    this.#chosen.set(channel, choice)
    const question = questionOf(reached)
    if (this.#options.identity.hasTarget) this.#lobby.goLocal(reached.message, false, question)
    else this.#lobby.goLocal(SYNTAX, true)
    this.#goOn(channel, reached, question)
  }

  #either(interrupt: AbortController): AbortSignal {
    return AbortSignal.any([interrupt.signal, this.#abandon.signal])
  }

  /** Asks the question on this channel, or shows there why there is no session. */
  #goOn(channel: LocalChannel, { message }: Refusal, question: Question | undefined): void {
    if (question) channel.ask(question, `sallyport: ${message}`)
    else channel.resume(`sallyport: ${message}`)
  }

  /** Connects, and waits for an approval first if the gate has asked for one. Never rejects. */
  async #reach(choice: Choice, signal: AbortSignal, place: Place): Promise<Outcome> {
    for (;;) {
      const reached = await this.#connect(choice, signal, place)
      if (reached instanceof Relay) return { reached, choice }
      const { wait, reason } = reached
      if (reason && !choice.reason && isOptional(reason) && !place.channel() && !this.#lobby.hasSession) {
        // There is no channel to ask on: the client wants forwarded connections only.
        choice = { ...choice, reason: NO_REASON }
        continue
      }
      if (!wait) return { reached, choice }
      const refusal = await this.#approved(wait, signal, place)
      if (refusal !== undefined) return { reached: { message: refusal }, choice }
      const { factor: _, ...rest } = choice
      choice = { ...rest, approval: wait.approval }
    }
  }

  /** Waits for the approval. Returns why there is none, or undefined if there is one. */
  async #approved(wait: ApprovalWait, signal: AbortSignal, place: Place): Promise<string | undefined> {
    const { connections, identity } = this.#options
    place.say(noticeText(['this session waits for an approval', ...wait.lines, GIVE_UP].join('\n')))
    this.#lobby.extend(wait.expires - Date.now())
    const { state, text } = await connections.approvals.end({
      identity: identity.token,
      wait,
      onNews: (news) => place.say(noticeText(news)),
      signal,
    })
    this.#lobby.extend(0)
    if (state !== 'accepted') return noticeLines(text).join('; ')
    place.say(noticeText(text))
    this.#lobby.hush()
    return undefined
  }

  /** Waits before the target is dialled until input is accepted: until a watcher is there. */
  async #released({ suspension }: SshSession, signal: AbortSignal, place: Place): Promise<void> {
    place.say(noticeText(`${suspension.reason}\n${GIVE_UP}`))
    this.#lobby.extend(HELD_MS)
    try {
      await suspension.released(AbortSignal.any([signal, this.#abandon.signal]))
    } finally {
      this.#lobby.extend(0)
    }
    place.say(noticeText(suspension.text))
    this.#lobby.hush()
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
  async #connect(choice: Choice, signal: AbortSignal, place: Place): Promise<Relay | Refusal> {
    const { gate, identity, source, protocol, client, ident, backs, connections } = this.#options
    let session: SshSession | undefined
    let question: LogonQuestion | undefined
    try {
      const answer = await gate.open({ identity: identity.token, protocol, source, ...choice })
      if (answer.result !== 'opened') {
        // Invalid typed credentials, reasons and codes count like refused ones.
        const isTried = answer.result === 'logon_needed' ? choice.logon : choice.reason
        const isWrong = answer.result === 'denied' && choice.factor
        if (('question' in answer && isTried) || isWrong) this.#refusals++
        return refusalOf(answer, choice)
      }
      question = answer.session.question
      session = await SshSession.of(answer.session, gate)
      this.#session = session
      session.onStop = (_result, reason) => this.#abandon.abort(reason)
      // The session may already have been stopped.
      connections.begun(session)
      if (session.suspension.isOn) await this.#released(session, signal, place)
      const chosen = place.channel()
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
      this.#lobby.leaveBehind(place.channel())
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

function questionOf({ factor, question, reason }: Refusal): Question | undefined {
  if (factor) return { factor }
  if (question) return { logon: question }
  return reason && { reason }
}
