/**
 * One session of the gate as the proxy holds it: its rights, its recording, its events, its end. Everything
 * that ends a session comes together here: the broker's word, a recording that cannot be written, the audit.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { FRAME } from '../../recordings/frames.ts'
import { NoSpaceError } from '../../recordings/free-space.ts'
import type { Gate, OpenSession } from '../../src/gate/messages.ts'
import { FileJudge } from '../../src/model/file-judge.ts'
import { type FileDirection, parseFileRule } from '../../src/model/file-rules.ts'
import type { Right } from '../../src/model/rights.ts'
import type { SshOptions } from '../../src/model/ssh-options.ts'
import { TargetError } from '../errors.ts'
import type { PtyRequest } from './codec/requests.ts'
import { CommandLog } from './commands/log.ts'
import { EventQueue } from './event-queue.ts'
import { CLOSE_ATTEMPTS, CLOSE_RETRY_MS, MAX_DENIALS } from './limits.ts'
import { recorderFor } from './recorder/factory.ts'
import { type Forwarded, ForwardRecorder } from './recorder/forward.ts'
import { Quota } from './recorder/quota.ts'
import type { ChannelRecorder } from './recorder/recorder.ts'
import { commandText, type MainRequest } from './request.ts'
import { SessionRecording } from './session-recording.ts'
import type { FileDenial } from './sftp/filter.ts'

const now = () => performance.now()

export type SessionResult = 'success' | 'failure' | 'killed'

export class SshSession {
  readonly id: string
  readonly target: OpenSession['target']
  readonly rights: ReadonlySet<Right>
  /** What the certificate of the sign-in holds it to. */
  readonly limits: OpenSession['limits']
  readonly options: SshOptions
  /** Output waits for its recording. */
  readonly isStrict: boolean
  readonly fileRules: FileJudge
  /** Channel data passed on: from the client toward the target, and back. */
  bytesIn = 0
  bytesOut = 0
  /** Signs of the user: what was typed, and whatever moves where there is no terminal. */
  signs = 0
  /** The relay's: the session has to end now. */
  onStop: ((result: SessionResult, reason: string) => void) | undefined
  /** The relay's: a line for the user. */
  onTell: ((text: string) => void) | undefined
  /** The relay's: the recording takes more again. */
  onDrain: (() => void) | undefined

  readonly #gate: Gate
  readonly #used = new Set<Right>()
  readonly #quota: Quota
  readonly #terminalQuota: Quota
  readonly recording: SessionRecording
  readonly #events: EventQueue
  readonly #commands: CommandLog
  #stopped: { result: SessionResult; reason: string } | undefined
  #ending: Promise<void> | undefined
  #denials = 0

  private constructor(session: OpenSession, gate: Gate) {
    this.id = session.id
    this.target = session.target
    this.rights = new Set(session.rights)
    this.limits = session.limits
    this.options = session.options
    this.isStrict = session.isStrict ?? false
    this.fileRules = new FileJudge(session.options.fileRules.map(parseFileRule))
    const { recordingQuota, pastRecordingQuota, terminalQuota, pastTerminalQuota } = session.options
    // Not in the middle of what uses the quota up.
    const full = () =>
      queueMicrotask(() => this.stop('failure', 'the recording quota of the session is used up'))
    this.#quota = Quota.ofStreams(recordingQuota, pastRecordingQuota === 'end' ? full : undefined)
    this.#terminalQuota = Quota.ofTerminals(terminalQuota, pastTerminalQuota === 'end' ? full : undefined)
    this.#gate = gate
    this.recording = new SessionRecording({
      sign: (statement) => gate.sign({ session: session.id, statement }),
      onFailure: (error) => this.#recordingFailed(error),
      onFull: () => this.stop('failure', 'the recording of this session is full'),
      live: (request) => gate.live({ session: session.id, ...request }),
      onDrain: () => this.onDrain?.(),
    })
    this.#events = new EventQueue({
      send: (code, fields) => gate.event({ session: session.id, code, fields }),
      onFailure: () => this.stop('failure', 'the audit log cannot be written'),
      onDrain: () => this.onDrain?.(),
    })
    this.#commands = new CommandLog({
      rules: session.options.commandRules,
      now,
      tell: (code, fields) => this.#events.tell(code, fields),
      kill: (reason) => this.stop('killed', reason),
    })
  }

  /**
   * Takes over what the gate has opened and begins its recording. When that fails, so does the session
   * (invariant 2): it is accounted at the gate and this throws.
   */
  static async begin(opened: OpenSession, gate: Gate): Promise<SshSession> {
    const session = new SshSession(opened, gate)
    if (opened.recording) {
      try {
        await session.recording.begin(opened.recording)
      } catch (error) {
        await session.end(
          'failure',
          `the recording cannot begin: ${error instanceof Error ? error.message : String(error)}`,
        )
        throw new TargetError('the session cannot be recorded, so it is not opened: tell an administrator')
      }
    }
    return session
  }

  #recordingFailed(error: Error): void {
    const reason = `the recording cannot be written: ${error.message}`
    if (!(error instanceof NoSpaceError) || this.isStrict || this.options.pastMinFree === 'end') {
      this.stop('failure', reason)
      return
    }
    this.recording.abandon(reason)
    this.#events.tell('channel.unrecorded', { reason: `${reason}; the session goes on, as its policy says` })
    this.onTell?.('this session is not recorded from here on')
  }

  /** Has to end, and why; before the relay listens the reason is kept for it. */
  stop(result: SessionResult, reason: string): void {
    if (this.#stopped) return
    this.#stopped = { result, reason }
    this.onStop?.(result, reason)
  }

  /** Why the session had to end before the relay took over. */
  get stopped(): { result: SessionResult; reason: string } | undefined {
    return this.#stopped
  }

  /** True while the recording has not taken what it was given: nothing more should be read. */
  get isFull(): boolean {
    return this.#events.isFull || this.recording.isFull
  }

  /**
   * A channel's main request is allowed: resolves when the audit log has it. A command that a rule forbids ends the
   * session before.
   */
  granted(request: MainRequest): Promise<void> {
    const { right: subprotocol } = request
    const line = commandText(request)
    const isJudged = line !== undefined && subprotocol === 'SSH_REMOTE_COMMAND'
    const rule = isJudged ? this.#commands.rules.find(line) : undefined
    const fields = {
      subprotocol,
      ...(line !== undefined && { object: line, confidence: 'certain' }),
      ...(rule && { rule: rule.text }),
    }
    if (rule?.action === 'kill') {
      this.recording.writeJson(FRAME.denied, 0, {
        what: subprotocol,
        reason: `rule ${JSON.stringify(rule.text)}`,
      })
      const told = this.#events.write('command', { ...fields, result: 'denied' })
      this.#commands.kill(rule.text)
      return told
    }
    this.#used.add(subprotocol)
    const opened = this.#events.write('channel.open', { subprotocol })
    return line === undefined ? opened : this.#events.write('command', fields)
  }

  /** A connection, or a listener on the target, is allowed: resolves when the audit log has it. */
  forwards(right: Right, destination: string | undefined): Promise<void> {
    this.#used.add(right)
    return this.#events.write('channel.open', {
      subprotocol: right,
      ...(destination !== undefined && { destination }),
    })
  }

  /**
   * Something was refused. Refusing does not wait for the audit log, but a log that fails ends the session, and so
   * do refusals without end: the log is everybody's.
   */
  denied(what: string, reason: string, destination?: string): void {
    if (this.#isTooMuch()) return
    this.#events.tell('channel.denied', {
      subprotocol: what,
      reason,
      ...(destination !== undefined && { destination }),
    })
    this.recording.writeJson(FRAME.denied, 0, { what, reason })
  }

  /** The same for an operation on a file, within a channel that was granted. */
  deniedFile(channel: number, subprotocol: Right, { operation, path, direction, reason }: FileDenial): void {
    if (this.#isTooMuch()) return
    this.#events.tell('file.denied', {
      subprotocol,
      path,
      ...(direction !== undefined && { direction }),
      reason: `${operation}: ${reason}`,
    })
    this.recording.writeJson(FRAME.denied, channel, { what: `${operation} ${path}`, reason })
  }

  /** SFTP is passed on as it comes to who has the whole right and no rules beside. */
  get filtersSftp(): boolean {
    return !this.rights.has('SFTP_SESSION') || !this.fileRules.isEmpty
  }

  /** Counts a refusal. */
  #isTooMuch(): boolean {
    if (this.#denials++ === MAX_DENIALS) this.stop('failure', 'too many requests that are not allowed')
    return this.#denials > MAX_DENIALS
  }

  /**
   * What records one channel, and tells the audit of its files and commands. `cut` ends the channel; `admit`: input
   * that the recorder has held back may be shown to it again.
   */
  recorder(
    channel: number,
    { program, right }: MainRequest,
    terminal: PtyRequest | undefined,
    cut: (reason: string) => void,
    admit: () => void,
  ): ChannelRecorder {
    return recorderFor(program, {
      hashing: this.recording.newHashing(),
      right,
      maySftp: this.rights.has('SFTP_SESSION'),
      fileRules: this.fileRules,
      commandRules: this.#commands.rules,
      now,
      sink: this.recording,
      channel,
      quota: this.#quota,
      terminalQuota: this.#terminalQuota,
      events: {
        onTransfer: ({ path, direction, size, sha256, result }) =>
          this.#events.tell('file.transfer', {
            subprotocol: this.#rightTo(direction, right),
            path,
            direction,
            size,
            ...(sha256 !== undefined && { sha256 }),
            ...(result === 'ok' ? { result: 'success' } : { result: 'failure', reason: result }),
          }),
        onUnrecorded: ({ direction, bytes, sha256, reason }) =>
          this.#events.tell('channel.unrecorded', {
            subprotocol: right,
            direction,
            reason,
            ...(bytes !== undefined && { size: bytes }),
            ...(sha256 !== undefined && { sha256 }),
          }),
        onCommand: (command) => this.#commands.heard(right, command),
        onPiped: (rule, kills) => this.#commands.piped(right, rule, kills),
        onAdmit: admit,
        onForbidden: (denial) => {
          this.deniedFile(channel, right, denial)
          cut(`${denial.path}: ${denial.reason}`)
        },
        onViolation: (reason) => {
          this.denied(right, reason)
          cut(`the transfer was cut: ${reason}`)
        },
      },
      ...(terminal && {
        terminal: { type: terminal.terminal, columns: terminal.columns, rows: terminal.rows },
      }),
    })
  }

  /** Of somebody who has both SCP rights a channel is opened by one, and each file goes by its own. */
  #rightTo(direction: FileDirection, right: Right): Right {
    const own = direction === 'up' ? 'SSH_SCP_UP' : 'SSH_SCP_DOWN'
    if ((right !== 'SSH_SCP_UP' && right !== 'SSH_SCP_DOWN') || !this.rights.has(own)) return right
    this.#used.add(own)
    return own
  }

  /** What records a forwarded connection. */
  forwardRecorder(channel: number, forwarded: Forwarded): ChannelRecorder {
    return new ForwardRecorder(this.recording, channel, forwarded)
  }

  /** Seals the recording and accounts for the session. Safe to call again: the first call counts. */
  end(result: SessionResult, reason?: string): Promise<void> {
    this.#ending ??= this.#close(this.#stopped?.result ?? result, this.#stopped?.reason ?? reason)
    return this.#ending
  }

  /** Never rejects: a session whose end cannot be accounted for is found by the broker's next start. */
  async #close(result: SessionResult, reason: string | undefined): Promise<void> {
    const end = { result, ...(reason !== undefined && { reason }) }
    await this.recording.settled()
    const recording = await this.recording.seal(end)
    this.#commands.flush()
    await this.#events.settled()
    for (let attempt = 1; attempt <= CLOSE_ATTEMPTS; attempt++) {
      try {
        await this.#gate.close({
          session: this.id,
          ...end,
          bytesIn: this.bytesIn,
          bytesOut: this.bytesOut,
          rightsUsed: [...this.#used],
          ...(recording && { recording }),
        })
        return
      } catch {
        await sleep(attempt * CLOSE_RETRY_MS)
      }
    }
  }
}
