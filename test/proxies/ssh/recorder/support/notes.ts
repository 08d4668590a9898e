/** Collects a recorder's frames and events. */
import { Buffer } from 'node:buffer'
import { Quota } from '../../../../../proxies/session/quota.ts'
import type { Command } from '../../../../../proxies/ssh/commands/watch.ts'
import { Changes } from '../../../../../proxies/ssh/files/changes.ts'
import type { FileDenial } from '../../../../../proxies/ssh/files/denial.ts'
import { OpenSizes } from '../../../../../proxies/ssh/files/open-sizes.ts'
import type { RecorderOptions } from '../../../../../proxies/ssh/recorder/options.ts'
import type { Transfer } from '../../../../../proxies/ssh/recorder/recorder.ts'
import {
  type ChannelOpen,
  type FileOperation,
  FRAME,
  type FrameSink,
  type FrameType,
  type Unrecorded,
} from '../../../../../recordings/container/frames.ts'
import { CommandRules } from '../../../../../src/model/command-rules.ts'
import { FileJudge } from '../../../../../src/model/file-judge.ts'
import { parseFileRule } from '../../../../../src/model/file-rules.ts'
import { SSH_OPTIONS } from '../../../../../src/model/ssh-options.ts'

export class Notes implements FrameSink {
  readonly frames: { type: FrameType; payload: Buffer }[] = []
  readonly transfers: Transfer[] = []
  readonly gaps: Unrecorded[] = []
  readonly denials: FileDenial[] = []
  readonly refusals: FileDenial[] = []
  readonly violations: string[] = []
  readonly commands: Command[] = []
  readonly piped: string[] = []
  /** The session's changes; recorders that share them are its channels. */
  changes = new Changes()
  admissions = 0
  /** The recorder's clock, in milliseconds. */
  now = 0

  write(type: FrameType, _channel: number, payload: Uint8Array): void {
    this.frames.push({ type, payload: Buffer.from(payload) })
  }

  options(quota = Quota.ofStreams(SSH_OPTIONS.recordingQuota), rules: string[] = []): RecorderOptions {
    return {
      right: 'SFTP_SESSION',
      maySftp: true,
      fileRules: new FileJudge(rules.map(parseFileRule)),
      commandRules: new CommandRules([]),
      now: () => this.now,
      sink: this,
      channel: 7,
      changes: this.changes,
      sizes: new OpenSizes(),
      quota,
      terminalQuota: quota,
      events: {
        onTransfer: (transfer) => this.transfers.push(transfer),
        onUnrecorded: (gap) => this.gaps.push(gap),
        onCommand: (command) => this.commands.push(command),
        onPiped: (rule) => this.piped.push(rule),
        onAdmit: () => this.admissions++,
        ask: () => () => undefined,
        onAnswered: () => undefined,
        onRefused: (denial) => this.refusals.push(denial),
        onForbidden: (denial) => this.denials.push(denial),
        onViolation: (reason) => this.violations.push(reason),
      },
    }
  }

  /** Returns the bytes of all frames of one type. */
  bytes(type: FrameType): Buffer {
    return Buffer.concat(this.frames.filter((frame) => frame.type === type).map((frame) => frame.payload))
  }

  get open(): ChannelOpen {
    return JSON.parse(this.bytes(FRAME.channelOpen).toString())
  }

  get files(): FileOperation[] {
    return this.frames
      .filter((frame) => frame.type === FRAME.file)
      .map((frame): FileOperation => JSON.parse(frame.payload.toString()))
  }

  get transferFrames(): FileOperation[] {
    return this.files.filter((file) => file.operation === 'transfer')
  }
}
