/**
 * A session channel (RFC 4254 6). The session's rights are checked at the main request. Before it is granted,
 * only preparatory requests are forwarded; afterwards all data passes the recorder.
 */

import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { Right } from '../../../src/model/rights.ts'
import { usesAgent } from '../../../src/model/ssh-options.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { missingRight } from '../../wording/missing-right.ts'
import { Flow } from '../channel/flow.ts'
import { TYPED_WINDOW } from '../channel/limits.ts'
import {
  buildChannelFailure,
  buildChannelRequest,
  buildChannelSuccess,
  buildData,
  buildEof,
  buildExec,
  buildExitStatus,
} from '../codec/build.ts'
import { buildX11Request, parseX11Request } from '../codec/forwarding.ts'
import { type ChannelRequest, MSG, parseChannelRequest } from '../codec/messages.ts'
import {
  type PtyRequest,
  parseEnv,
  parseExitSignal,
  parseExitStatus,
  parsePtyRequest,
  parseWindowChange,
} from '../codec/requests.ts'
import { knownSize } from '../codec/terminal-size.ts'
import { isRight, ruleOf } from '../policy/decisions.ts'
import { mayPass } from '../policy/environment.ts'
import {
  type Asked,
  askedOf,
  asSent,
  MAIN_REQUESTS,
  type MainRequest,
  mainRequest,
  unjudgedScp,
} from '../policy/request.ts'
import { InitVersion } from '../sftp/init-version.ts'
import { MAX_OWED } from '../transport/limits.ts'
import { Channel, type ChannelHost, type Opened } from './channel.ts'
import { type X11Grant, x11Grant } from './x11.ts'

/** Replies that the client still expects, in the order of its requests (RFC 4254 5.4). */
type PendingReply = 'pass' | 'own' | { granted: boolean } | { onFailure: () => void }

/** Bytes of the client's window reserved for the bastion's last line. */
const LAST_LINE = 1024

export class SessionChannel extends Channel {
  /** Set if the client's main request was already answered, by the menu. */
  readonly #isAnswered: boolean
  #terminal: PtyRequest | undefined
  #replies: PendingReply[] = []
  #x11: X11Grant | undefined
  #agent = false
  /** Set while approvers are asked about the program. */
  #giveUp: (() => void) | undefined
  /** The client's last change of its window while input was suspended. */
  #resized: Buffer | undefined

  constructor(
    host: ChannelHost,
    id: number,
    client: Opened,
    /** For a channel already open to the client: its credit, and its first messages. */
    adopted?: { credit: number; messages: Buffer[]; isAnswered: boolean },
  ) {
    const up = new Flow(0, adopted?.credit ?? 0)
    up.limit = TYPED_WINDOW
    // Even a client that is flooded, or does not read, has room for the reason of the session's end.
    const down = new Flow(client.window, 0, Math.min(LAST_LINE, Math.floor(client.window / 4)))
    super(host, id, 'client', client, up, down)
    this.#isAnswered = adopted?.isAnswered ?? false
    if (adopted) this.adopt(adopted.messages)
  }

  /** Omitted if the client has no room for it. */
  override notice(text: string): void {
    const isShown = this.#terminal !== undefined && this.stage === 'passing'
    if (!(isShown || this.isAsking) || !this.client.isOpen || this.client.closedTo) return
    const line = Buffer.from(`\r\nsallyport: ${text}\r\n`)
    if (this.clientWindow >= line.length + LAST_LINE) this.tell(line)
  }

  /** Explains why a program does not begin, on a terminal or not. */
  protected override onKept(payload: Buffer): void {
    if (payload[0] !== MSG.channelRequest || !this.client.isOpen || this.client.closedTo) return
    if (!MAIN_REQUESTS.has(parseChannelRequest(payload).type)) return
    const line = Buffer.from(`sallyport: ${this.host.session.suspension.text}\r\n`)
    if (this.clientWindow >= line.length + LAST_LINE) this.tell(line)
  }

  /** Keeps the terminal's size for later; signals and breaks are input. */
  protected override requestWhileSuspended(payload: Buffer): void {
    const request = parseChannelRequest(payload)
    const isSize = request.type === 'window-change' && this.#terminal !== undefined
    if (isSize) this.#resized = Buffer.from(payload)
    this.#answer(request, isSize)
  }

  override release(): void {
    const resized = this.#resized
    this.#resized = undefined
    if (resized && this.stage === 'passing') this.requestOfClient(resized)
    super.release()
  }

  // From the client --------------------------------------------------------------------------------------

  protected override requestOfClient(payload: Buffer): void {
    const request = parseChannelRequest(payload)
    const { session } = this.host
    const rule = ruleOf('client', 'channel request', request.type)
    if (rule === undefined) {
      this.#answer(request, false)
      return
    }
    if (rule === 'main') {
      if (this.stage !== 'waiting') this.#answer(request, false)
      else {
        // Copied: the request is kept until the audit log has stored it.
        this.#decide(askedOf(Buffer.from(payload), session.limits?.forcedCommand))
      }
      return
    }
    if (isRight(rule) && !session.rights.has(rule)) {
      if (request.type === 'auth-agent-req@openssh.com' && usesAgent(session.options)) {
        // The policy wants the agent for the bastion's own use: accept the request, but do not forward it.
        this.#answer(request, true)
        return
      }
      session.denied(rule, missingRight(rule, session.target.device))
      this.#answer(request, false)
      return
    }
    switch (request.type) {
      case 'pty-req': {
        if (this.stage !== 'waiting' || this.#terminal || session.limits?.noTerminal) {
          // After the menu, a client without terminal would not see its input: end the channel.
          if (this.#isAnswered && this.stage === 'waiting')
            this.refuse('your certificate allows no terminal: name the target, and a command, instead')
          this.#answer(request, false)
          return
        }
        const asked = parsePtyRequest(request.data)
        this.#terminal = { ...asked, ...knownSize(asked), modes: new Uint8Array(0) }
        this.beTerminal()
        break
      }
      case 'window-change': {
        const size = knownSize(parseWindowChange(request.data))
        if (this.#terminal) this.#terminal = { ...this.#terminal, ...size }
        this.recorder?.resize(size.columns, size.rows)
        break
      }
      case 'env': {
        const variable = parseEnv(request.data)
        if (mayPass(variable.name, variable.value)) break
        this.#answer(request, false)
        return
      }
      case 'simple@putty.projects.tartarus.org':
        this.#answer(request, true)
        return
      case 'x11-req':
        this.#requestX11(request)
        return
      case 'auth-agent-req@openssh.com':
        this.#requestAgent(request, payload)
        return
    }
    if (request.wantReply) this.#owe('pass')
    this.target.pass(payload)
  }

  /** Sends the target a request with a cookie of the bastion. */
  #requestX11(request: ChannelRequest): void {
    const asked = parseX11Request(request.data)
    const grant = this.stage === 'waiting' && !this.#x11 ? x11Grant(asked, randomBytes) : undefined
    if (!grant) {
      this.host.session.denied(
        'SSH_X11',
        'the request names no cookie that can be exchanged, or is the second',
      )
      this.#answer(request, false)
      return
    }
    this.#x11 = grant
    const sent = buildX11Request({ ...asked, cookie: grant.fake.toString('hex') })
    if (request.wantReply) {
      const onFailure = () => {
        this.#x11 = undefined
      }
      this.#owe({ onFailure })
    }
    this.target.pass(buildChannelRequest(0, 'x11-req', request.wantReply, sent))
  }

  #requestAgent(request: ChannelRequest, payload: Buffer): void {
    if (this.stage !== 'waiting' || this.#agent) {
      this.#answer(request, false)
      return
    }
    this.#agent = true
    if (request.wantReply) {
      const onFailure = () => {
        this.#agent = false
      }
      this.#owe({ onFailure })
    }
    this.target.pass(payload)
  }

  /** The grant for connections to the client's display, while a program runs. */
  get x11(): X11Grant | undefined {
    return this.stage === 'passing' ? this.#x11 : undefined
  }

  /** Whether connections to the client's agent are allowed. */
  get hasAgent(): boolean {
    return this.stage === 'passing' && this.#agent
  }

  /** Checks the rights, waits until the audit log has stored the request, and then sends it to the target. */
  #decide(asked: Asked): void {
    const { session } = this.host
    const { request } = asked
    const main = mainRequest(request, this.#terminal !== undefined, session)
    if ('refused' in main) {
      this.#refuseRequest(request, main.refused, main.reason ?? `${main.refused} is not allowed here`)
      return
    }
    if (!session.rights.has(main.right)) {
      this.#refuseRequest(request, main.right, missingRight(main.right, session.target.device))
      return
    }
    const unjudged = unjudgedScp(main, session.fileRules)
    if (unjudged !== undefined) {
      this.#refuseRequest(request, main.right, unjudged)
      return
    }
    this.stage = 'deciding'
    const question = session.questionFor(main)
    if (!question) {
      this.#grant(asked, main)
      return
    }
    this.#giveUp = session.asks.ask(question, (isAccepted, message) =>
      this.host.guarded(() => {
        this.#giveUp = undefined
        if (this.stage !== 'deciding') return
        if (isAccepted) {
          this.#grant(asked, main, message)
          return
        }
        session.refusedCommand(main, question, message)
        if (request.wantReply) this.#owe('pass')
        this.refuse(message)
      }),
    )
  }

  #grant(asked: Asked, main: MainRequest, answer?: string): void {
    const { session } = this.host
    this.host.setDeciding(true)
    session.granted(main, answer).then(
      () =>
        this.host.guarded(() => {
          this.host.setDeciding(false)
          if (this.stage === 'deciding') this.#begin(asked, main)
        }),
      () => session.stop('failure', 'the audit log cannot be written'),
    )
  }

  protected override get isAsking(): boolean {
    return this.#giveUp !== undefined
  }

  protected override giveUp(reason: string): void {
    super.giveUp(reason)
    const giveUp = this.#giveUp
    this.#giveUp = undefined
    giveUp?.()
    if (giveUp && this.stage === 'deciding') this.refuse(reason)
  }

  /** Shows the answer about a held line, and goes on. */
  #answeredLine(isAccepted: boolean, message: string): void {
    if (this.stage !== 'passing') return
    this.notice(isAccepted ? message : `the command did not run: ${message}`)
    this.answered(isAccepted)
  }

  override close(): void {
    this.#giveUp?.()
    this.#giveUp = undefined
    super.close()
  }

  #refuseRequest(request: ChannelRequest, what: string, reason: string): void {
    if (request.wantReply) this.#owe(this.#isAnswered ? 'own' : 'pass')
    this.host.session.denied(what, reason)
    this.refuse(reason)
  }

  #begin({ request, payload, before }: Asked, main: MainRequest): void {
    const { session } = this.host
    this.stage = 'passing'
    const sent = asSent(main)
    this.recorder = session.recorder(
      this.id,
      sent,
      this.#terminal,
      (reason) => this.refuse(reason),
      () => this.host.guarded(() => this.drain()),
      (isAccepted, message) => this.host.guarded(() => this.#answeredLine(isAccepted, message)),
    )
    if (!this.#terminal || sent.program.kind === 'sftp') this.beStream()
    if (sent.program.kind === 'sftp') {
      if (session.filtersSftp) this.#filterSftp(sent.right)
      else this.#lowerSftp()
    }
    if (request.wantReply) this.#owe(this.#isAnswered ? 'own' : this.#replyTo(sent))
    if (main.program.kind === 'shell') this.#greet()
    if (before) this.target.pass(before)
    if (sent !== main && sent.program.kind === 'exec') {
      this.target.pass(buildExec(0, request.wantReply, sent.program.command))
    } else {
      this.target.pass(payload)
    }
    this.drain()
  }

  /** Returns the reply owed for a main request to the target; a refusal of SFTP or SCP is an event. */
  #replyTo({ program, right }: MainRequest): PendingReply {
    const copy = program.kind === 'exec' && program.classified.kind === 'scp' ? program.classified : undefined
    if (program.kind !== 'sftp' && copy === undefined) return 'pass'
    const denial = {
      operation: copy?.kind ?? 'sftp',
      path: copy?.path ?? '',
      ...(copy && { direction: copy.direction }),
      reason: 'the request was refused',
    }
    return { onFailure: () => this.host.session.failedFile(right, denial) }
  }

  /** Lowers the SFTP version. A filter does this itself. */
  #lowerSftp(): void {
    const version = new InitVersion()
    this.input.edit = (data) => {
      if (!version.lower(data)) this.input.edit = undefined
    }
  }

  /** The bastion's own text, which is in no recording. Omitted if the client has no room for it. */
  #greet(): void {
    const motd = this.#terminal && this.host.takeMotd()
    if (motd === undefined) return
    const text = Buffer.from(motd)
    const fits = this.clientWindow >= text.length + LAST_LINE && this.client.maxPacket >= text.length
    if (fits) this.tell(text, buildData)
  }

  #filterSftp(right: Right): void {
    const { session } = this.host
    this.filter(
      {
        rights: session.rights,
        rules: session.fileRules,
        sizes: session.openSizes,
        turns: session.turns,
        explain: (missing) => missingRight(missing, session.target.device),
      },
      {
        denied: (denial) => session.deniedFile(this.id, right, denial),
        broken: (reason) => {
          session.denied(right, reason)
          this.refuse(`the transfer was cut: ${reason}`)
        },
      },
    )
  }

  /** Answers a request by the bastion itself, in its turn behind the target's pending replies. */
  #answer(request: ChannelRequest, granted: boolean): void {
    if (!request.wantReply) return
    this.#owe({ granted })
    this.#answerOwn()
  }

  #owe(reply: PendingReply): void {
    if (this.#replies.length >= MAX_OWED) throw new MalformedError('too many requests before an answer')
    this.#replies.push(reply)
  }

  #answerOwn(): void {
    for (;;) {
      const [reply] = this.#replies
      if (typeof reply !== 'object' || !('granted' in reply)) return
      this.#replies.shift()
      this.#reply(reply.granted)
    }
  }

  #reply(granted: boolean): void {
    this.client.leg.send((granted ? buildChannelSuccess : buildChannelFailure)(this.client.id!))
  }

  // From the target --------------------------------------------------------------------------------------

  protected override replied(granted: boolean): void {
    const reply = this.#replies.shift()
    if (reply === undefined) throw new MalformedError('an answer to no request')
    if (typeof reply === 'object' && 'onFailure' in reply && !granted) reply.onFailure()
    if (reply !== 'own') this.#reply(granted)
    else if (!granted) this.refuse('the target refused the request')
    this.#answerOwn()
  }

  protected override requestOfTarget(payload: Buffer): void {
    const request = parseChannelRequest(payload)
    if (ruleOf('target', 'channel request', request.type) === undefined) {
      this.target.turnDown(request.wantReply)
      return
    }
    if (request.type === 'exit-status') this.recorder?.exit({ status: parseExitStatus(request.data) })
    if (request.type === 'exit-signal') this.recorder?.exit({ signal: parseExitSignal(request.data).signal })
    // None of these wants a reply (RFC 4254 6.8, 6.10); one that does would wait for ever.
    if (request.wantReply) this.target.turnDown(true)
    else if (this.stage === 'passing') this.follow(payload)
  }

  /** Shows a line on standard error, with exit status 255. */
  protected override explain(reason: string, begun: boolean): void {
    const { leg, id } = this.client
    const to = id!
    // The client waits for replies before it reads.
    for (const reply of this.#replies) {
      if (reply !== 'own') this.#reply(true)
    }
    this.#replies = []
    const line = Buffer.from(`${begun ? '\r\n' : ''}sallyport: ${reason}\r\n`).subarray(
      0,
      Math.max(0, this.clientWindow),
    )
    if (line.length > 0) this.tell(line)
    leg.send(buildExitStatus(to, 255))
    leg.send(buildEof(to))
  }
}
