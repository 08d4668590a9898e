/**
 * One session channel through the bastion. The bastion numbers channels itself, with one number on both legs,
 * and rewrites the recipient of every message: neither peer can address a channel that is not in the relay's
 * table. The rights of the session are asked at the channel's main request; until that is granted, nothing but
 * preparations passes, and afterwards everything passes by the recorder.
 */
import { Buffer } from 'node:buffer'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelOpenFailure,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildExitStatus,
  buildExtendedData,
  buildWindowAdjust,
} from './codec/build.ts'
import {
  type ChannelOpenConfirmation,
  type ChannelRequest,
  dataOf,
  extendedDataOf,
  MSG,
  OPEN_FAILURE,
  parseChannelRequest,
  setRecipient,
  windowAdjustOf,
} from './codec/messages.ts'
import { MalformedError } from './codec/reader.ts'
import {
  type PtyRequest,
  parseEnv,
  parseExitSignal,
  parseExitStatus,
  parsePtyRequest,
  parseWindowChange,
} from './codec/requests.ts'
import { mayPass } from './environment.ts'
import { Flow } from './flow.ts'
import { MAX_CHANNEL_PACKET, MAX_OWED, MAX_QUEUED, MAX_WINDOW } from './limits.ts'
import type { ChannelRecorder } from './recorder/recorder.ts'
import { asSent, MAIN_REQUESTS, type MainRequest, mainRequest, missingRight } from './request.ts'
import type { SshSession } from './session.ts'
import type { Transport } from './transport.ts'

/** What a channel needs of the relay that it belongs to. */
export interface ChannelHost {
  readonly client: Transport
  readonly target: Transport
  readonly session: SshSession
  /** Both sides have closed on both legs: the number is free again. */
  gone(channel: Channel): void
  /** The client is not read until the decision of a channel is there. */
  setDeciding(deciding: boolean): void
  /** Runs what goes on after a wait; what it throws ends the session as it would in the middle of a message. */
  guarded(work: () => void): void
}

/** Answers that the client still expects, in the order of its requests (RFC 4254 5.4). */
type PendingReply = 'pass' | 'own' | { granted: boolean }

/** `none` until the main request, `deciding` while it waits for the audit log, `refused` once ended here. */
type Purpose = 'none' | 'deciding' | 'granted' | 'refused'

/** Bytes of the client's window that are kept for the bastion's last line. */
const LAST_LINE = 1024
const WINDOW_GRANT_AT_LEAST = MAX_WINDOW / 2

export class Channel {
  /** The bastion's number, on both legs. */
  readonly id: number
  readonly #host: ChannelHost
  readonly #clientId: number
  readonly #clientMaxPacket: number
  #targetId: number | undefined
  /** Client to target; its window is 0 until the target has confirmed. */
  readonly #up: Flow
  /** Target to client. */
  readonly #down: Flow
  /** Already confirmed to the client, by the menu it was opened for. */
  readonly #adopted: boolean
  #purpose: Purpose = 'none'
  #terminal: PtyRequest | undefined
  #recorder: ChannelRecorder | undefined
  #replies: PendingReply[] = []
  /** Messages of the client that wait for a decision or for window, in order, and their bytes. */
  #queue: Buffer[] = []
  #queued = 0
  readonly #closedBy = { client: false, target: false }
  readonly #closedTo = { client: false, target: false }

  constructor(
    host: ChannelHost,
    id: number,
    client: { id: number; window: number; maxPacket: number },
    /** Of a channel that was the menu's: what the client may still send, and the messages to begin with. */
    adopted?: { credit: number; messages: Buffer[] },
  ) {
    this.#host = host
    this.id = id
    this.#clientId = client.id
    this.#clientMaxPacket = client.maxPacket
    this.#up = new Flow(0, adopted?.credit ?? 0)
    // A client that is flooded, or does not read, still has room for the line that says why its session ends.
    this.#down = new Flow(client.window, 0, Math.min(LAST_LINE, Math.floor(client.window / 4)))
    this.#adopted = adopted !== undefined
    if (adopted) this.#queue = adopted.messages
  }

  /** The window and packet size to name in the CHANNEL_OPEN toward the target. */
  offer(): { window: number; maxPacket: number } {
    return { window: this.#down.grant(), maxPacket: Math.min(this.#clientMaxPacket, MAX_CHANNEL_PACKET) }
  }

  confirmed(message: ChannelOpenConfirmation): void {
    if (this.#targetId !== undefined) throw new MalformedError('the channel was confirmed already')
    this.#targetId = message.sender
    this.#up.widen(message.window)
    if (this.#isOver) {
      this.#closeTarget()
      return
    }
    this.#grantTarget(1)
    if (this.#adopted) {
      this.#grantClient(1)
      this.#drain()
      return
    }
    this.#host.client.send(
      buildChannelOpenConfirmation({
        recipient: this.#clientId,
        sender: this.id,
        window: this.#up.grant(),
        maxPacket: Math.min(message.maxPacket, MAX_CHANNEL_PACKET),
      }),
    )
  }

  /** The target refused to open it. */
  failed(reason: number, description: string): void {
    if (this.#targetId !== undefined) throw new MalformedError('the channel was confirmed already')
    if (this.#adopted) {
      this.refuse(`the target refused to open a session: ${description}`)
    } else if (!this.#closedTo.client) {
      const known = reason >= 1 && reason <= 4 ? (reason as 1 | 2 | 3 | 4) : OPEN_FAILURE.connectFailed
      this.#host.client.send(buildChannelOpenFailure(this.#clientId, known, description))
      this.#closedTo.client = this.#closedBy.client = true
    }
    this.#closedTo.target = this.#closedBy.target = true
    this.#settle()
  }

  fromClient(payload: Buffer): void {
    if (this.#closedBy.client) return
    switch (payload[0]) {
      case MSG.channelData:
        if (!this.#up.received(dataOf(payload).length)) {
          throw new MalformedError('more data than the window allows')
        }
        break
      case MSG.channelWindowAdjust:
        if (!this.#down.widen(windowAdjustOf(payload))) throw new MalformedError('the window is over 2^32-1')
        this.#grantTarget(1)
        return
    }
    if (this.#isOver) {
      if (payload[0] === MSG.channelClose) {
        this.#closedBy.client = true
        this.#settle()
      }
    } else {
      const rest = this.#queue.length > 0 ? payload : this.#step(payload)
      if (rest === undefined) return
      this.#queued += rest.length
      if (this.#queued > MAX_QUEUED) throw new MalformedError('too many messages before an answer')
      this.#queue.push(Buffer.from(rest))
    }
  }

  fromTarget(payload: Buffer): void {
    if (this.#targetId === undefined) throw new MalformedError('a message before the confirmation')
    // Of a channel that was ended here only the end is of interest.
    if (this.#isOver && payload[0] !== MSG.channelClose) return
    switch (payload[0]) {
      case MSG.channelData:
        this.#data(payload, dataOf(payload), false)
        return
      case MSG.channelExtendedData:
        this.#data(payload, extendedDataOf(payload), true)
        return
      case MSG.channelWindowAdjust:
        if (!this.#up.widen(windowAdjustOf(payload))) throw new MalformedError('the window is over 2^32-1')
        this.#grantClient(1)
        this.#drain()
        return
      case MSG.channelSuccess:
      case MSG.channelFailure:
        this.#replied(payload[0] === MSG.channelSuccess)
        return
      case MSG.channelRequest:
        this.#requestOfTarget(payload)
        return
      case MSG.channelEof:
        if (this.#purpose === 'granted') this.#toClient(payload)
        return
      case MSG.channelClose:
        this.#closedBy.target = true
        this.#closeTarget()
        if (!this.#closedTo.client) {
          this.#closedTo.client = true
          this.#send(this.#host.client, this.#clientId, payload)
        }
        this.#purpose = 'refused'
        this.#queue = []
        this.#settle()
        return
      default:
        throw new MalformedError(`message ${payload[0]} is none of a channel`)
    }
  }

  /**
   * Ends the channel from here, with a line for the user on standard error and exit status 255; also what the
   * target has still to say is dropped.
   */
  refuse(reason: string): void {
    if (this.#isOver) return
    const begun = this.#purpose === 'granted'
    this.#purpose = 'refused'
    this.#queue = []
    this.#closeTarget()
    if (this.#closedTo.client) return
    this.#closedTo.client = true
    const { client } = this.#host
    if (this.#targetId === undefined && !this.#adopted) {
      client.send(buildChannelOpenFailure(this.#clientId, OPEN_FAILURE.connectFailed, `sallyport: ${reason}`))
      this.#closedBy.client = true
      return
    }
    // The client waits for answers before it reads: give it those.
    for (const reply of this.#replies) {
      if (reply !== 'own') client.send(buildChannelSuccess(this.#clientId))
    }
    this.#replies = []
    const line = Buffer.from(`${begun ? '\r\n' : ''}sallyport: ${reason}\r\n`).subarray(
      0,
      Math.max(0, this.#down.window),
    )
    if (line.length > 0) client.send(buildExtendedData(this.#clientId, line))
    client.send(buildExitStatus(this.#clientId, 255))
    client.send(buildEof(this.#clientId))
    client.send(buildClose(this.#clientId))
    this.#settle()
  }

  /** A line of the bastion's own on a terminal; a client without room for it goes without. */
  notice(text: string): void {
    if (!this.#terminal || this.#purpose !== 'granted' || this.#closedTo.client) return
    const line = Buffer.from(`\r\nsallyport: ${text}\r\n`)
    if (this.#down.window < line.length + LAST_LINE) return
    this.#down.forwarded(line.length)
    this.#host.client.send(buildExtendedData(this.#clientId, line))
  }

  get #isOver(): boolean {
    return this.#purpose === 'refused'
  }

  /** The recording of the channel ends; called when the channel, or the whole session, is over. */
  end(): void {
    this.#purpose = 'refused'
    this.#recorder?.end()
    this.#recorder = undefined
  }

  // From the client --------------------------------------------------------------------------------------

  /** Handles one message of the client in order. Returns what of it has to wait. */
  #step(payload: Buffer): Buffer | undefined {
    if (this.#purpose === 'deciding' || this.#targetId === undefined) return payload
    switch (payload[0]) {
      case MSG.channelData: {
        const data = dataOf(payload)
        if (this.#purpose === 'none') throw new MalformedError('data before a shell, command or subsystem')
        if (data.length > this.#up.window) return payload
        return this.#input(payload, data)
      }
      case MSG.channelRequest:
        this.#requestOfClient(parseChannelRequest(payload), payload)
        return undefined
      case MSG.channelEof:
        if (this.#purpose === 'none') throw new MalformedError('an end before a shell, command or subsystem')
        this.#toTarget(payload)
        return undefined
      case MSG.channelClose:
        this.#closedBy.client = true
        if (!this.#closedTo.target) {
          this.#closedTo.target = true
          this.#toTarget(payload)
        }
        this.#settle()
        return undefined
      case MSG.channelExtendedData:
        // RFC 4254 5.2 gives it a meaning from the server only.
        throw new MalformedError('extended data from the client')
      default:
        // SUCCESS and FAILURE answer requests that the bastion never passes on.
        return undefined
    }
  }

  /** Passes data of the client on as far as the recorder admits it now. Returns the rest, as a message. */
  #input(payload: Buffer, data: Uint8Array): Buffer | undefined {
    for (let rest = data; rest.length > 0; ) {
      const count = this.#recorder?.admit?.(rest) ?? rest.length
      if (this.#isOver) return undefined
      if (count === 0) return rest === data ? payload : buildData(this.id, rest)
      const part = rest.subarray(0, count)
      rest = rest.subarray(count)
      this.#up.forwarded(count)
      this.#host.session.bytesIn += count
      this.#host.session.signs++
      this.#recorder?.fromClient(part)
      if (this.#isOver) return undefined
      if (count === data.length) this.#toTarget(payload)
      else this.#host.target.send(buildData(this.#targetId!, part))
      this.#grantClient(WINDOW_GRANT_AT_LEAST)
    }
    return undefined
  }

  #drain(): void {
    while (this.#queue.length > 0 && !this.#isOver) {
      const [first] = this.#queue
      if (!first) return
      const rest = this.#step(first)
      // What it did may have ended the channel, and so emptied the queue.
      if (this.#queue[0] !== first) return
      if (rest !== undefined) {
        this.#queued += rest.length - first.length
        this.#queue[0] = rest
        return
      }
      this.#queue.shift()
      this.#queued -= first.length
    }
  }

  #requestOfClient(request: ChannelRequest, payload: Buffer): void {
    if (MAIN_REQUESTS.has(request.type)) {
      if (this.#purpose !== 'none') this.#answer(request, false)
      else {
        // It is kept until the audit log has it.
        const kept = Buffer.from(payload)
        this.#decide(parseChannelRequest(kept), kept)
      }
      return
    }
    switch (request.type) {
      case 'pty-req':
        if (this.#purpose !== 'none' || this.#terminal) {
          this.#answer(request, false)
          return
        }
        this.#terminal = { ...parsePtyRequest(request.data), modes: new Uint8Array(0) }
        break
      case 'window-change': {
        const size = parseWindowChange(request.data)
        if (this.#terminal) this.#terminal = { ...this.#terminal, columns: size.columns, rows: size.rows }
        this.#recorder?.resize(size.columns, size.rows)
        break
      }
      case 'env': {
        const variable = parseEnv(request.data)
        if (mayPass(variable.name, variable.value)) break
        this.#answer(request, false)
        return
      }
      case 'signal':
      case 'break':
      case 'xon-xoff':
      case 'eow@openssh.com':
        break
      case 'simple@putty.projects.tartarus.org':
        this.#answer(request, true)
        return
      case 'x11-req':
      case 'auth-agent-req@openssh.com':
        this.#host.session.denied(request.type, 'not allowed here')
        this.#answer(request, false)
        return
      default:
        this.#answer(request, false)
        return
    }
    if (request.wantReply) this.#owe('pass')
    this.#toTarget(payload)
  }

  /** Asks the rights, waits until the audit log has it, and only then lets the request go to the target. */
  #decide(request: ChannelRequest, payload: Buffer): void {
    const { session } = this.#host
    const main = mainRequest(request, this.#terminal !== undefined)
    if ('refused' in main) {
      this.#refuseRequest(request, main.refused, `${main.refused} is not allowed here`)
      return
    }
    if (!session.rights.has(main.right)) {
      this.#refuseRequest(request, main.right, missingRight(main.right, session.target.device))
      return
    }
    this.#purpose = 'deciding'
    this.#host.setDeciding(true)
    session.granted(main).then(
      () =>
        this.#host.guarded(() => {
          this.#host.setDeciding(false)
          if (this.#purpose === 'deciding') this.#begin(request, main, payload)
        }),
      () => session.stop('failure', 'the audit log cannot be written'),
    )
  }

  #refuseRequest(request: ChannelRequest, what: string, reason: string): void {
    if (request.wantReply) this.#owe('pass')
    this.#host.session.denied(what, reason)
    this.refuse(reason)
  }

  #begin(request: ChannelRequest, main: MainRequest, payload: Buffer): void {
    const { session, target } = this.#host
    this.#purpose = 'granted'
    const sent = asSent(main, session.rights)
    this.#recorder = session.recorder(
      this.id,
      sent,
      this.#terminal,
      (reason) => this.refuse(reason),
      () => this.#host.guarded(() => this.#drain()),
    )
    if (request.wantReply) this.#owe(this.#adopted ? 'own' : 'pass')
    if (sent !== main && sent.program.kind === 'exec') {
      target.send(buildExec(this.#targetId!, request.wantReply, sent.program.command))
    } else {
      this.#toTarget(payload)
    }
    this.#drain()
  }

  /** The bastion's own answer, in its turn behind those that the target still owes. */
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
    for (let reply = this.#replies[0]; typeof reply === 'object'; reply = this.#replies[0]) {
      this.#replies.shift()
      this.#host.client.send((reply.granted ? buildChannelSuccess : buildChannelFailure)(this.#clientId))
    }
  }

  // From the target --------------------------------------------------------------------------------------

  #data(payload: Buffer, data: Uint8Array, isError: boolean): void {
    if (!this.#down.received(data.length)) throw new MalformedError('more data than the window allows')
    if (this.#purpose !== 'granted') return
    this.#down.forwarded(data.length)
    this.#host.session.bytesOut += data.length
    if (!this.#terminal) this.#host.session.signs++
    this.#recorder?.fromTarget(data, isError)
    // The recorder may have cut the channel over this very message.
    if (this.#isOver) return
    this.#toClient(payload)
    this.#grantTarget(WINDOW_GRANT_AT_LEAST)
  }

  #replied(granted: boolean): void {
    const reply = this.#replies.shift()
    if (reply === undefined) throw new MalformedError('an answer to no request')
    if (reply === 'pass') {
      this.#host.client.send((granted ? buildChannelSuccess : buildChannelFailure)(this.#clientId))
    } else if (!granted) {
      this.refuse('the target refused the request')
    }
    this.#answerOwn()
  }

  #requestOfTarget(payload: Buffer): void {
    const request = parseChannelRequest(payload)
    switch (request.type) {
      case 'exit-status':
        this.#recorder?.exit({ status: parseExitStatus(request.data) })
        break
      case 'exit-signal':
        this.#recorder?.exit({ signal: parseExitSignal(request.data).signal })
        break
      case 'xon-xoff':
      case 'eow@openssh.com':
        break
      default:
        if (request.wantReply) this.#host.target.send(buildChannelFailure(this.#targetId!))
        return
    }
    // None of these asks for an answer (RFC 4254 6.8, 6.10); one that does would wait for ever.
    if (request.wantReply) this.#host.target.send(buildChannelFailure(this.#targetId!))
    else if (this.#purpose === 'granted') this.#toClient(payload)
  }

  // Both ways --------------------------------------------------------------------------------------------

  #grantClient(atLeast: number): void {
    const bytes = this.#up.grant(atLeast)
    if (bytes > 0 && !this.#closedTo.client) this.#host.client.send(buildWindowAdjust(this.#clientId, bytes))
  }

  #grantTarget(atLeast: number): void {
    // Until the target has confirmed there is nobody to tell; confirmed() makes up for it.
    if (this.#targetId === undefined) return
    const bytes = this.#down.grant(atLeast)
    if (bytes > 0 && !this.#closedTo.target) this.#host.target.send(buildWindowAdjust(this.#targetId, bytes))
  }

  #toClient(payload: Buffer): void {
    if (!this.#closedTo.client) this.#send(this.#host.client, this.#clientId, payload)
  }

  #toTarget(payload: Buffer): void {
    this.#send(this.#host.target, this.#targetId!, payload)
  }

  #send(leg: Transport, recipient: number, payload: Buffer): void {
    setRecipient(payload, recipient)
    leg.send(payload)
  }

  #closeTarget(): void {
    if (this.#targetId === undefined || this.#closedTo.target) return
    this.#closedTo.target = true
    this.#host.target.send(buildClose(this.#targetId))
  }

  #settle(): void {
    const { client, target } = this.#closedBy
    if (client && target && this.#closedTo.client && this.#closedTo.target) {
      this.end()
      this.#host.gone(this)
    }
  }
}
