/**
 * What the recorders of SSH channels have in common: passive inspectors that see one channel's stream and turn
 * it into frames. They never alter the stream and never wait; the relay shows them the data before it sends
 * it on, or in the same turn after that. What the sink throws (a recording that cannot be written) passes through to the relay.
 */
import type { Exit, Unrecorded } from '../../../recordings/container/frames.ts'
import type { Direction } from '../codec/classify.ts'
import type { Command } from '../commands/watch.ts'
import type { FileDenial } from '../files/denial.ts'

export interface ChannelRecorder {
  /**
   * Data may go on first, and be shown afterwards: nothing that it says would keep them back. So what recording a key
   * costs is spent while the target is at work on it.
   */
  readonly mayFollow?: true
  /**
   * How many of these bytes of the client may go to the target now; they are shown to fromClient next. The rest has
   * to wait until RecorderEvents.onAdmit. Absent: all may.
   */
  admit?(data: Uint8Array): number
  /** It has held back input for so long that somebody may want to get out of it. */
  readonly isHolding?: boolean
  /** Data of the user's client. */
  fromClient(data: Uint8Array): void
  /** Data of the target; `stderr`: extended data of that type. */
  fromTarget(data: Uint8Array, stderr: boolean): void
  /**
   * What has to be typed so that a terminal goes on which the client has stopped; asked at its end. Absent, or undefined:
   * nothing.
   */
  awaken?(): Uint8Array | undefined
  /** The terminal's new size, in characters. */
  resize(columns: number, rows: number): void
  /** How the channel's program ended, when the target says so. */
  exit(exit: Exit): void
  /** The channel is closed: writes what is still open. Called once; nothing may follow. */
  close(): void
}

/** A file, or the stream of an rsync or git, that went by: the fields of one `file.transfer` event. */
export interface Transfer {
  path: string
  direction: Direction
  /** Bytes that went by. */
  size: number
  /** Hexadecimal; absent when the bytes did not pass whole and in order (`result` says so). */
  sha256?: string
  /** `ok`, or what went wrong. */
  result: string
}

/** What the relay is told. Called from within fromClient, fromTarget and end. */
export interface RecorderEvents {
  onTransfer(transfer: Transfer): void
  /** At the start of a gap without `bytes` and `sha256`, at its end with them: `channel.unrecorded`. */
  onUnrecorded(gap: Unrecorded): void
  /** A command line was read from the terminal. The session may end over it. */
  onCommand(command: Command): void
  /** A line of input without a terminal has met a rule for commands. The session ends over it when it `kills`. */
  onPiped(rule: string, kills: boolean): void
  /** What `admit` has held back can be shown to it again. Not called after `end`. */
  onAdmit(): void
  /** A rule forbids a file: what is just being shown must not be sent on, and the channel must be cut. */
  onForbidden(denial: FileDenial): void
  /**
   * The stream broke its protocol in a way that would hide something from the recording. The data that is just
   * being shown must not be sent on, and the channel must be cut. At most once.
   */
  onViolation(reason: string): void
}
