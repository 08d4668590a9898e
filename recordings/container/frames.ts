/**
 * The frames of a recording: events with their time and channel. Proxies write frames and exporters read
 * them; the container groups, seals and chains them (docs/recording-format.md).
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
  /** Input that was not recorded: varint, the number of bytes. */
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
  /** A stream that is kept only by hash and count. JSON Unrecorded. */
  unrecorded: 11,
  /** A request was denied. JSON Denied. */
  denied: 12,
  /** The session ended. JSON End. The last frame of a recording that was closed in order. */
  end: 13,
  /** Bytes that the target sent to be drawn on a graphic channel, in its protocol's own form. */
  graphics: 14,
  /** Pixel format of the `graphics` that follow: a PIXEL_FORMAT (RFC 6143 7.4). */
  pixelFormat: 15,
  /**
   * The pointer was moved, or a button pressed or released: varints (recordings/decode/graphics/events.ts).
   */
  pointer: 16,
  /** A key was pressed or released: flags and varints (recordings/decode/graphics/events.ts). */
  key: 17,
  /** Text was copied from one side's clipboard to the other's. JSON Clipboard. */
  clipboard: 18,
  /** A change among the participants of a graphic session beside its user. JSON Participant. */
  participant: 19,
  /** The desktop size that the target set on a graphic channel: varint width, varint height. */
  desktopSize: 20,
} as const
export type FrameType = (typeof FRAME)[keyof typeof FRAME]

/** Returns whether a frame carries a piece of a byte stream; any other payload is complete in itself. */
export function isStream(type: FrameType): boolean {
  return (
    type === FRAME.output || type === FRAME.errorOutput || type === FRAME.input || type === FRAME.graphics
  )
}

/** Returns whether a frame carries pixels, which only painters read. */
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
  /** The right under which the channel was opened. */
  subprotocol: string
  /** Host:port or socket path that a forwarded connection goes to or was accepted on. */
  destination?: string
  /** A subsystem's name, or the exec's command line (UTF-8; invalid bytes are replaced). */
  command?: string
  /** Present if the channel has a terminal. */
  terminal?: { type: string; columns: number; rows: number }
  /** Present if the channel is graphic: the desktop as the target announced it, in pixels. */
  desktop?: { width: number; height: number; name?: string }
}
/** Stands for a command line that could not be read. */
export const UNREAD_LINE = '(not read)'

export interface Command {
  /** Empty if the line could not be read from the terminal. */
  line: string
  /** Confidence in a line that was read from a terminal. */
  confidence?: 'certain' | 'likely' | 'uncertain' | 'unread'
  /** Reason why the line could not be read. */
  reason?: string
  /** The connection policy's rule that the line matched. */
  rule?: string
  /** Set if the line was not forwarded. */
  denied?: true
}
export interface FileOperation {
  operation: string
  path: string
  /** Second path of a rename or link. */
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
  /**
   * Absent at the start of the gap. At the stream's end: the bytes that were not recorded, and their hash, if
   * there is one.
   */
  bytes?: number
  sha256?: string
}
export interface Denied {
  what: string
  reason: string
}
export interface Clipboard {
  /** `up` to the target, `down` from the target. */
  direction: 'up' | 'down'
  /** `text`, `html`, `files`, …, or the protocol's own name for it. Absent from older recordings. */
  format?: string
  /** Length of a text in UTF-8. */
  bytes: number
  /** SHA-256 of those bytes, in hexadecimal. Absent if not all of them are known. */
  sha256?: string
  /** Beginning of the text. Absent if it may not be kept. */
  text?: string
  /** The participant whose clipboard went up. Absent for the session's user. */
  participant?: number
}
export interface Participant {
  /** 0 is the session's user; guests are counted from 1. */
  participant: number
  name: string
  what: 'joined' | 'left' | 'thrown_out' | 'took_control' | 'gave_control'
  /** Mode of a participant that joins. */
  mode?: 'view' | 'control'
  /** The user that removed the guest, or took or gave control. Absent if it was the participant. */
  by?: string
}
export interface End {
  result: string
  reason?: string
}

/** A frame as a reader returns it. `time` is microseconds since the recording began, never decreasing. */
export interface Frame {
  type: FrameType
  channel: number
  time: number
  payload: Uint8Array
}

/** Receives the frames of a proxy's recorder. `payload` is copied before `write` returns. */
export interface FrameSink {
  write(type: FrameType, channel: number, payload: Uint8Array): void
}
