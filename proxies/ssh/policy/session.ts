/** A session with SSH channels: its rights and limits, and its recorders. */
import { FRAME } from '../../../recordings/container/frames.ts'
import type { Gate, OpenSession } from '../../../src/contract/gate.ts'
import { FileJudge } from '../../../src/model/file-judge.ts'
import type { FileDirection } from '../../../src/model/file-rule.ts'
import { parseFileRule } from '../../../src/model/file-rules.ts'
import type { Right } from '../../../src/model/rights.ts'
import type { SshOptions } from '../../../src/model/ssh-options.ts'
import { Quota } from '../../session/quota.ts'
import { ProxySession } from '../../session/session.ts'
import type { PtyRequest } from '../codec/requests.ts'
import { CommandLog } from '../commands/log.ts'
import { type Answered, cut, type Question } from '../commands/watch.ts'
import { Changes } from '../files/changes.ts'
import type { FileDenial } from '../files/denial.ts'
import { OpenSizes } from '../files/open-sizes.ts'
import { recorderFor } from '../recorder/factory.ts'
import { type Forwarded, ForwardRecorder } from '../recorder/forward.ts'
import type { ChannelRecorder } from '../recorder/recorder.ts'
import { WITHOUT_HASH } from '../recorder/sftp-file.ts'
import { Turns } from '../sftp/turns.ts'
import { Asks } from './asks.ts'
import { asSent, commandText, type MainRequest } from './request.ts'

const now = () => performance.now()

export class SshSession extends ProxySession {
  /** The limits of the certificate used for the sign-in. */
  readonly limits: OpenSession['limits']
  readonly options: SshOptions
  readonly fileRules: FileJudge
  /** Sizes of files that the session's channels have open, if file rules need them. */
  readonly openSizes = new OpenSizes()
  readonly turns = new Turns()
  /** Set if nothing more may be recorded: the session ends at once. */
  isQuotaUsedUp = false
  readonly #changes = new Changes()
  readonly #quota: Quota
  readonly #terminalQuota: Quota
  readonly #commands: CommandLog
  readonly asks: Asks

  private constructor(opened: OpenSession, gate: Gate) {
    super(opened, gate)
    const { options } = opened
    this.limits = opened.limits
    this.options = options
    this.fileRules = new FileJudge(options.fileRules.map(parseFileRule))
    const { recordingQuota, pastRecordingQuota, terminalQuota, pastTerminalQuota } = options
    // Stop later, not within the write that used up the quota.
    const end = () => {
      this.isQuotaUsedUp = true
      queueMicrotask(() => this.stop('failure', 'the recording quota of the session is used up'))
    }
    const { recording } = this
    this.#quota = Quota.ofStreams(recordingQuota, { past: pastRecordingQuota, end, recording })
    this.#terminalQuota = Quota.ofScreens(terminalQuota, { past: pastTerminalQuota, end, recording })
    this.asks = new Asks(gate, this.id)
    this.#commands = new CommandLog({
      rules: options.commandRules,
      now,
      tell: (code, fields) => this.tell(code, fields),
      kill: (reason) => this.stop('killed', reason),
    })
  }

  /** Takes over a session that the gate has opened. @throws TargetError if it cannot be recorded */
  static async of(opened: OpenSession, gate: Gate): Promise<SshSession> {
    const session = new SshSession(opened, gate)
    await session.begin(opened)
    return session
  }

  /** Returns the question about a command that approvers have to be asked about, or undefined for all others. */
  questionFor(request: MainRequest): Question | undefined {
    const rule = this.#ruleFor(request)
    if (rule?.action !== 'ask') return undefined
    return { line: cut(commandText(request) ?? ''), rule: rule.text, screen: [] }
  }

  /** Returns the rule for the client's command, or for the one sent in its place. */
  #ruleFor(request: MainRequest) {
    const lines = [commandText(request), commandText(asSent(request))].filter((text) => text !== undefined)
    return this.#commands.rules.findIn(lines)
  }

  /** Logs a command that approvers have refused. */
  refusedCommand({ right: subprotocol }: MainRequest, { line, rule }: Question, reason: string): void {
    this.#commands.heard(subprotocol, { line, confidence: 'certain', rule, reason, isRefused: true })
    this.recording.writeJson(FRAME.denied, 0, { what: subprotocol, reason })
  }

  /**
   * Logs an allowed main request of a channel; `answer` is that of the approvers, if they were asked; resolves when the audit log has stored it. A command that a
   * rule forbids ends the session instead.
   */
  granted(request: MainRequest, answer?: string): Promise<void> {
    const { right: subprotocol } = request
    const line = commandText(request)
    const rule = this.#ruleFor(request)
    const fields = {
      subprotocol,
      ...(line !== undefined && { object: line, confidence: 'certain' }),
      ...(rule && { rule: rule.text }),
      ...(answer !== undefined && { reason: answer }),
    }
    if (rule?.action === 'kill') {
      this.recording.writeJson(FRAME.denied, 0, {
        what: subprotocol,
        reason: `rule ${JSON.stringify(rule.text)}`,
      })
      const told = this.audit('command', { ...fields, result: 'denied' })
      this.#commands.kill(rule.text)
      return told
    }
    // The caller has to ask first.
    if (rule?.action === 'ask' && answer === undefined)
      return Promise.reject(new Error('no approver was asked'))
    const opened = this.opens(subprotocol)
    return line === undefined ? opened : this.audit('command', fields)
  }

  /** Logs an allowed connection, or listener on the target; resolves when the audit log has stored it. */
  forwards(right: Right, destination: string | undefined): Promise<void> {
    return this.opens(right, { ...(destination !== undefined && { destination }) })
  }

  /** Like `denied`, for an operation on a file within an allowed channel. */
  deniedFile(channel: number, subprotocol: Right, { operation, path, direction, reason }: FileDenial): void {
    if (!this.mayDeny()) return
    this.tell('file.denied', {
      subprotocol,
      path,
      ...(direction !== undefined && { direction }),
      reason: `${operation}: ${reason}`,
    })
    this.recording.writeJson(FRAME.denied, channel, { what: `${operation} ${path}`, reason })
  }

  /** Logs an operation on a file that the target has refused. */
  failedFile(subprotocol: Right, { operation, path, direction, reason }: FileDenial): void {
    this.tell('file.failed', {
      subprotocol,
      ...(path !== '' && { path }),
      ...(direction !== undefined && { direction }),
      reason: `${operation}: ${reason}`,
    })
  }

  /** SFTP is filtered unless the user has the full SFTP right and no file rules apply. */
  get filtersSftp(): boolean {
    return !this.rights.has('SFTP_SESSION') || !this.fileRules.isEmpty
  }

  /**
   * Returns the recorder of one channel, which also logs the channel's files and commands. `cut` ends the
   * channel. `admit` is called when input that the recorder has held back may be offered again.
   */
  recorder(
    channel: number,
    { program, right }: MainRequest,
    terminal: PtyRequest | undefined,
    cut: (reason: string) => void,
    admit: () => void,
    answered: Answered,
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
      changes: this.#changes,
      sizes: this.openSizes,
      quota: this.#quota,
      terminalQuota: this.#terminalQuota,
      events: {
        onTransfer: ({ path, direction, size, sha256, result }) =>
          this.tell('file.transfer', {
            subprotocol: this.#rightTo(direction, right),
            path,
            direction,
            size,
            ...(sha256 !== undefined && { sha256 }),
            ...outcomeOf(result),
          }),
        onUnrecorded: ({ direction, bytes, sha256, reason }) =>
          this.tell('channel.unrecorded', {
            subprotocol: right,
            direction,
            reason,
            ...(bytes !== undefined && { size: bytes }),
            ...(sha256 !== undefined && { sha256 }),
          }),
        onCommand: (command) => this.#commands.heard(right, command),
        onPiped: (rule, kills) => this.#commands.piped(right, rule, kills),
        onAdmit: admit,
        ask: (question, then) => this.asks.ask(question, then),
        onAnswered: answered,
        onRefused: (denial) => this.failedFile(this.#rightTo(denial.direction, right), denial),
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

  /** With both SCP rights, a channel is opened under one of them, but each file is logged under its own. */
  #rightTo(direction: FileDirection | undefined, right: Right): Right {
    if (direction === undefined) return right
    const own = direction === 'up' ? 'SSH_SCP_UP' : 'SSH_SCP_DOWN'
    if ((right !== 'SSH_SCP_UP' && right !== 'SSH_SCP_DOWN') || !this.rights.has(own)) return right
    this.uses(own)
    return own
  }

  /** Returns the recorder of a forwarded connection. */
  forwardRecorder(channel: number, forwarded: Forwarded): ChannelRecorder {
    return new ForwardRecorder(this.recording, channel, forwarded)
  }

  protected override tellRest(): void {
    this.#commands.flush()
  }
}

/** Returns the result of a transfer for the audit log, with the reason if it succeeded but has no hash. */
function outcomeOf(result: string): { result: 'success' | 'failure'; reason?: string } {
  if (result === 'ok') return { result: 'success' }
  // Other results may be the target's own words.
  if (WITHOUT_HASH.has(result)) return { result: 'success', reason: result.slice('ok, '.length) }
  return { result: 'failure', reason: result }
}
