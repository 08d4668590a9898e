/**
 * One session of the gate as the proxy holds it: its rights, its recording, its events, its end. Everything
 * that ends a session comes together here: the broker's word, a recording that cannot be written, the audit.
 */

import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { type End, FRAME, type FrameSink, type FrameType } from '../../recordings/frames.ts'
import { BACKLOG_LIMIT, type RecordingResult, RecordingWriter } from '../../recordings/writer.ts'
import type { EventCode, EventFields } from '../../src/audit/catalogue.ts'
import type { Gate, OpenSession } from '../../src/gate/messages.ts'
import { FileJudge } from '../../src/model/file-judge.ts'
import { type FileDirection, parseFileRule } from '../../src/model/file-rules.ts'
import type { Right } from '../../src/model/rights.ts'
import type { SshOptions } from '../../src/model/ssh-options.ts'
import type { PtyRequest } from './codec/requests.ts'
import { CommandLog } from './commands/log.ts'
import { TargetError } from './errors.ts'
import {
  CLOSE_ATTEMPTS,
  CLOSE_RETRY_MS,
  MAX_DENIALS,
  MAX_PENDING_EVENTS,
  RECORDING_CLOSE_MS,
} from './limits.ts'
import { recorderFor } from './recorder/factory.ts'
import { type Forwarded, ForwardRecorder } from './recorder/forward.ts'
import { HashAccount, hasher } from './recorder/hash/hasher.ts'
import { Quota } from './recorder/quota.ts'
import type { ChannelRecorder } from './recorder/recorder.ts'
import { commandText, type MainRequest } from './request.ts'
import type { FileDenial } from './sftp/filter.ts'

/** The sink of a session that its authorization says is not recorded. */
const NOWHERE: FrameSink = { write: () => undefined }

const now = () => performance.now()

export type SessionResult = 'success' | 'failure' | 'killed'

export class SshSession {
  readonly id: string
  readonly target: OpenSession['target']
  readonly rights: ReadonlySet<Right>
  readonly options: SshOptions
  readonly fileRules: FileJudge
  /** Channel data passed on: from the client toward the target, and back. */
  bytesIn = 0
  bytesOut = 0
  /** Signs of the user: what was typed, and whatever moves where there is no terminal. */
  signs = 0
  /** The relay's: the session has to end now. */
  onStop: ((result: SessionResult, reason: string) => void) | undefined
  /** The relay's: the recording takes more again. */
  onDrain: (() => void) | undefined

  readonly #gate: Gate
  readonly #used = new Set<Right>()
  readonly #quota = new Quota()
  readonly #commands: CommandLog
  #writer: RecordingWriter | undefined
  #stopped: { result: SessionResult; reason: string } | undefined
  #ending: Promise<void> | undefined
  #waiting = false
  readonly #hashes = new HashAccount(hasher, () => this.onDrain?.())
  /** Recorders whose last frame is not written, and who waits for that. */
  #recorders = 0
  #onRecorded: (() => void) | undefined
  #denials = 0
  /** Events that wait for the audit log: one at a time, so that no session fills the log's queue. */
  #telling: Promise<void> = Promise.resolve()
  #pending = 0

  private constructor(session: OpenSession, gate: Gate) {
    this.id = session.id
    this.target = session.target
    this.rights = new Set(session.rights)
    this.options = session.options
    this.fileRules = new FileJudge(session.options.fileRules.map(parseFileRule))
    this.#gate = gate
    this.#commands = new CommandLog({
      rules: session.options.commandRules,
      now,
      tell: (code, fields) => this.#tell(code, fields),
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
        session.#writer = await RecordingWriter.open(opened.recording, {
          sign: (statement) => gate.sign({ session: opened.id, statement }),
          clock: { now: Date.now, monotonic: () => Math.round(performance.now() * 1000) },
          onFailure: (error) => session.stop('failure', `the recording cannot be written: ${error.message}`),
        })
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
    if (this.#pending > MAX_PENDING_EVENTS || this.#hashes.isBehind) return true
    if (!this.#writer || this.#writer.backlog < BACKLOG_LIMIT) return false
    if (!this.#waiting) {
      this.#waiting = true
      this.#writer.onDrain(() => {
        this.#waiting = false
        this.onDrain?.()
      })
    }
    return true
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
      this.#write(FRAME.denied, 0, { what: subprotocol, reason: `rule ${JSON.stringify(rule.text)}` })
      const told = this.#event('command', { ...fields, result: 'denied' })
      this.#commands.kill(rule.text)
      return told
    }
    this.#used.add(subprotocol)
    const opened = this.#event('channel.open', { subprotocol })
    return line === undefined ? opened : this.#event('command', fields)
  }

  /** A connection, or a listener on the target, is allowed: resolves when the audit log has it. */
  forwards(right: Right, destination: string | undefined): Promise<void> {
    this.#used.add(right)
    return this.#event('channel.open', {
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
    this.#tell('channel.denied', {
      subprotocol: what,
      reason,
      ...(destination !== undefined && { destination }),
    })
    this.#write(FRAME.denied, 0, { what, reason })
  }

  /** The same for an operation on a file, within a channel that was granted. */
  deniedFile(channel: number, subprotocol: Right, { operation, path, direction, reason }: FileDenial): void {
    if (this.#isTooMuch()) return
    this.#tell('file.denied', {
      subprotocol,
      path,
      ...(direction !== undefined && { direction }),
      reason: `${operation}: ${reason}`,
    })
    this.#write(FRAME.denied, channel, { what: `${operation} ${path}`, reason })
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
    this.#recorders++
    return recorderFor(program, {
      hashing: {
        newHash: () => this.#hashes.newHash(),
        onClosed: () => {
          this.#recorders--
          if (this.#recorders === 0) this.#onRecorded?.()
        },
      },
      right,
      maySftp: this.rights.has('SFTP_SESSION'),
      fileRules: this.fileRules,
      commandRules: this.#commands.rules,
      now,
      sink: this.#writer ?? NOWHERE,
      channel,
      quota: this.#quota,
      events: {
        onTransfer: ({ path, direction, size, sha256, result }) =>
          this.#tell('file.transfer', {
            subprotocol: this.#rightTo(direction, right),
            path,
            direction,
            size,
            ...(sha256 !== undefined && { sha256 }),
            ...(result === 'ok' ? { result: 'success' } : { result: 'failure', reason: result }),
          }),
        onUnrecorded: ({ direction, bytes, sha256, reason }) =>
          this.#tell('channel.unrecorded', {
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
    return new ForwardRecorder(this.#writer ?? NOWHERE, channel, forwarded)
  }

  /** Seals the recording and accounts for the session. Safe to call again: the first call counts. */
  end(result: SessionResult, reason?: string): Promise<void> {
    this.#ending ??= this.#close(this.#stopped?.result ?? result, this.#stopped?.reason ?? reason)
    return this.#ending
  }

  /** Never rejects: a session whose end cannot be accounted for is found by the broker's next start. */
  async #close(result: SessionResult, reason: string | undefined): Promise<void> {
    const end = { result, ...(reason !== undefined && { reason }) }
    await this.#recorded()
    const recording = await this.#seal(end)
    this.#commands.flush()
    await this.#telling.catch(() => undefined)
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

  /** Resolves when what waits for its hash is written, or has taken too long. */
  async #recorded(): Promise<void> {
    if (this.#recorders === 0) return
    const inTime = new AbortController()
    const all = new Promise<void>((resolve) => {
      this.#onRecorded = resolve
    })
    const late = sleep(RECORDING_CLOSE_MS, undefined, { signal: inTime.signal }).catch(() => undefined)
    await Promise.race([all, late])
    inTime.abort()
  }

  /** Closes the recording; a disk that hangs counts as one that failed. */
  async #seal(end: End): Promise<RecordingResult | undefined> {
    if (!this.#writer) return undefined
    const failed: RecordingResult = { state: 'failed', size: 0, frames: 0, digest: '' }
    const inTime = new AbortController()
    const late = sleep(RECORDING_CLOSE_MS, failed, { signal: inTime.signal }).catch(() => failed)
    try {
      return await Promise.race([this.#writer.close(end), late])
    } finally {
      inTime.abort()
    }
  }

  #write(type: FrameType, channel: number, value: object): void {
    this.#writer?.write(type, channel, Buffer.from(JSON.stringify(value)))
  }

  #tell(code: EventCode, fields: EventFields): void {
    this.#event(code, fields).catch(() => this.stop('failure', 'the audit log cannot be written'))
  }

  /** Resolves when this event, and all before it, stand in the audit log. */
  #event(code: EventCode, fields: EventFields): Promise<void> {
    this.#pending++
    const told = this.#telling.then(() => this.#gate.event({ session: this.id, code, fields }))
    const settled = () => {
      if (this.#pending-- > MAX_PENDING_EVENTS) this.onDrain?.()
    }
    told.then(settled, settled)
    this.#telling = told
    return told
  }
}
