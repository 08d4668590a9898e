/**
 * The interface of SSH channel recorders: passive inspectors that turn one channel's stream into frames. They
 * never alter the stream and never wait; the relay passes them the data before it is sent, or in the same
 * turn afterwards. Errors of the sink (a recording that cannot be written) propagate to the relay.
 */
import type { Exit, Unrecorded } from '../../../recordings/container/frames.ts'
import type { Direction } from '../codec/classify.ts'
import type { Answered, Command, Question } from '../commands/watch.ts'
import type { FileDenial } from '../files/denial.ts'

export interface ChannelRecorder {
  /**
   * Set if data may be sent before it is recorded, because it is never held back. The cost of recording a key
   * then runs while the target processes the key.
   */
  readonly mayFollow?: true
  /**
   * Returns how many of these bytes of the client may be sent to the target now; fromClient receives them
   * next. The rest must wait for RecorderEvents.onAdmit. Absent if all bytes may be sent.
   */
  admit?(data: Uint8Array): number
  /** Set if input has been held for so long that the user may want to interrupt it. */
  readonly isHolding?: boolean
  /** Set while approvers are asked about a held line: typed bytes other than ^C are dropped. */
  readonly isAsking?: boolean
  /** Gives up the question about the held line, for this reason. */
  giveUp?(reason: string): void
  /** Receives data of the user's client. */
  fromClient(data: Uint8Array): void
  /** Receives data of the target. `stderr`: extended data of that type. */
  fromTarget(data: Uint8Array, stderr: boolean): void
  /**
   * Returns input that lets a terminal continue which the client has stopped; called when the client leaves.
   * Absent or undefined if none is needed.
   */
  awaken?(): Uint8Array | undefined
  /** Notes the terminal's new size, in characters. */
  resize(columns: number, rows: number): void
  /** Notes the program's exit, if the target reports it. */
  exit(exit: Exit): void
  /** Writes all open frames when the channel is closed. Called once; no other call may follow. */
  close(): void
}

/** A transferred file, or the stream of an rsync or git: the fields of one `file.transfer` event. */
export interface Transfer {
  path: string
  direction: Direction
  /** Number of bytes transferred. */
  size: number
  /** Hexadecimal. Absent if the bytes did not arrive whole and in order; `result` gives the reason. */
  sha256?: string
  /** `ok`, or an error. */
  result: string
}

/** Events for the relay. Called from within fromClient, fromTarget and close. */
export interface RecorderEvents {
  onTransfer(transfer: Transfer): void
  /** `channel.unrecorded`: called at the start of a gap, and with `bytes` and `sha256` at its end. */
  onUnrecorded(gap: Unrecorded): void
  /** Called for a command line read from the terminal. The session may end over it. */
  onCommand(command: Command): void
  /** Called if a line of input without a terminal matches a rule. The session ends if it `kills`. */
  onPiped(rule: string, kills: boolean): void
  /** Called when bytes held back by `admit` may be offered again. Not called after `close`. */
  onAdmit(): void
  /** Asks approvers about a held line; `answered` is called later. Returns a function that gives up. */
  ask(question: Question, answered: Answered): () => void
  /** The held line was judged: of the bytes held back only its Return may be offered again, if it is accepted. */
  onAnswered: Answered
  /** The target has refused an operation that is no transfer; `reason` has its words. */
  onRefused(denial: FileDenial): void
  /** A rule forbids a file: the data just passed must not be sent, and the channel must be cut. */
  onForbidden(denial: FileDenial): void
  /**
   * The stream broke its protocol in a way that would hide something from the recording. The data just passed
   * must not be sent, and the channel must be cut. Called at most once.
   */
  onViolation(reason: string): void
}
