/**
 * The frames of a recording: what happened, when, on which channel. This is the vocabulary that proxies write
 * and that exporters read; how frames are grouped, sealed and chained is the container's business
 * (docs/recording-format.md).
 */

/** Numbers are part of the format: never reuse one. */
export const FRAME = {
  /** A channel begins. JSON ChannelOpen. */
  channelOpen: 1,
  /** Bytes that the target sent for the user's screen (standard output). */
  output: 2,
  /** Bytes of standard error. */
  errorOutput: 3,
  /** Bytes of input: echoed by the target's terminal, or an exec's standard input within the quota. */
  input: 4,
  /** Input that was not kept: varint, the number of bytes. */
  inputWithheld: 5,
  /** The terminal's size: varint columns, varint rows. */
  resize: 6,
  /** A command line. JSON Command. */
  command: 7,
  /** A file operation. JSON FileOperation. */
  file: 8,
  /** The channel's program ended. JSON Exit. */
  exit: 9,
  /** The channel is closed. Empty. */
  channelClose: 10,
  /** A stream that goes on by hash and count only. JSON Unrecorded. */
  unrecorded: 11,
  /** Something was refused. JSON Denied. */
  denied: 12,
  /** The session ended. JSON End. The last frame of a recording that was closed in order. */
  end: 13,
} as const
export type FrameType = (typeof FRAME)[keyof typeof FRAME]

/** Whether a frame carries a piece of a byte stream; every other payload is a whole of its own. */
export function isStream(type: FrameType): boolean {
  return type === FRAME.output || type === FRAME.errorOutput || type === FRAME.input
}

export interface ChannelOpen {
  kind:
    | 'shell'
    | 'exec'
    | 'sftp'
    | 'scp'
    | 'rsync'
    | 'git'
    | 'subsystem'
    | 'direct-tcpip'
    | 'direct-streamlocal'
    | 'forwarded-tcpip'
    | 'forwarded-streamlocal'
    | 'x11'
    | 'auth-agent'
  /** The right under which it was opened. */
  subprotocol: string
  /** Of a forwarded connection: host:port or the path of a socket, where it goes to or was accepted. */
  destination?: string
  /** A subsystem's name, or the exec's command line (UTF-8 with replacement of what is none). */
  command?: string
  /** Present where the channel has a terminal. */
  terminal?: { type: string; columns: number; rows: number }
}
export interface Command {
  line: string
  /** How sure it is that the line was read right, where it was read from a terminal. */
  confidence?: 'certain' | 'likely' | 'uncertain'
  /** The rule of the connection policy that it met. */
  rule?: string
  /** The line was not passed on. */
  denied?: true
}
export interface FileOperation {
  operation: string
  path: string
  /** A rename's or link's second path. */
  target?: string
  direction?: 'up' | 'down'
  size?: number
  sha256?: string
  /** `ok`, or the protocol's error. */
  result: string
}
export interface Exit {
  status?: number
  signal?: string
}
export interface Unrecorded {
  direction: 'in' | 'out'
  reason: 'quota' | 'forwarded'
  /** At the start of the gap absent; at the stream's end: what went by unrecorded, and its hash, if it has one. */
  bytes?: number
  sha256?: string
}
export interface Denied {
  what: string
  reason: string
}
export interface End {
  result: string
  reason?: string
}

/** One frame as a reader gives it. `time` is microseconds since the recording began, never decreasing. */
export interface Frame {
  type: FrameType
  channel: number
  time: number
  payload: Uint8Array
}

/** What a proxy's recorder writes to. `payload` is copied before `write` returns. */
export interface FrameSink {
  write(type: FrameType, channel: number, payload: Uint8Array): void
}
