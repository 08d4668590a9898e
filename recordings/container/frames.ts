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
  /** Bytes that the target sent to be drawn on a graphic channel, in its protocol's own form. */
  graphics: 14,
  /** How pixels look in the `graphics` that follow: a PIXEL_FORMAT (RFC 6143 7.4). */
  pixelFormat: 15,
  /** The pointer was moved, or a button pressed or let go: varints (recordings/decode/graphics/events.ts). */
  pointer: 16,
  /** A key was pressed or let go: flags and varints (recordings/decode/graphics/events.ts). */
  key: 17,
  /** Text was copied from one side's clipboard to the other's. JSON Clipboard. */
  clipboard: 18,
  /** Who takes part in a graphic session beside its user. JSON Participant. */
  participant: 19,
  /** The size that the target gave a graphic channel's desktop: varint width, varint height. */
  desktopSize: 20,
} as const
export type FrameType = (typeof FRAME)[keyof typeof FRAME]

/** Whether a frame carries a piece of a byte stream; every other payload is a whole of its own. */
export function isStream(type: FrameType): boolean {
  return (
    type === FRAME.output || type === FRAME.errorOutput || type === FRAME.input || type === FRAME.graphics
  )
}

/** Whether a frame is about pixels, which are for painters only. */
export function isGraphics(type: FrameType): boolean {
  return type === FRAME.graphics || type === FRAME.pixelFormat
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
    | 'vnc'
    | 'rdp'
  /** The right under which it was opened. */
  subprotocol: string
  /** Of a forwarded connection: host:port or the path of a socket, where it goes to or was accepted. */
  destination?: string
  /** A subsystem's name, or the exec's command line (UTF-8 with replacement of what is none). */
  command?: string
  /** Present where the channel has a terminal. */
  terminal?: { type: string; columns: number; rows: number }
  /** Present where the channel is graphic: the desktop as the target announced it, in pixels. */
  desktop?: { width: number; height: number; name?: string }
}
/** What stands for a command line that could not be read. */
export const UNREAD_LINE = '(not read)'

export interface Command {
  /** Empty where the line could not be read from the terminal. */
  line: string
  /** How sure it is that the line was read right, where it was read from a terminal. */
  confidence?: 'certain' | 'likely' | 'uncertain' | 'unread'
  /** Why it could not be read. */
  reason?: string
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
export interface Clipboard {
  /** `up` to the target, `down` from it. */
  direction: 'up' | 'down'
  /** `text`, `html`, `files`, …, or what the protocol calls it; absent from older recordings. */
  format?: string
  /** Of a text in UTF-8. */
  bytes: number
  /** Of those bytes, in hexadecimal; absent where not all of them are known. */
  sha256?: string
  /** Its beginning; absent where it may not be kept. */
  text?: string
  /** Whose clipboard, up; absent: the session's user. */
  participant?: number
}
export interface Participant {
  /** 0 is the session's user; guests are counted from 1. */
  participant: number
  name: string
  what: 'joined' | 'left' | 'thrown_out' | 'took_control' | 'gave_control'
  /** Of somebody who joins. */
  mode?: 'view' | 'control'
  /** Who threw out, or took or gave control, where it was somebody else. */
  by?: string
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
