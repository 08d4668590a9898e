/** The control messages of a server: one urgent byte (RFC 1282) of bits, several of which may be set. */
export const CONTROL = {
  /** Drop received output that is not shown yet. */
  FLUSH: 0x02,
  /** Send Ctrl-S and Ctrl-Q to the server. */
  RAW: 0x10,
  /** Stop and resume the output at Ctrl-S and Ctrl-Q. */
  COOKED: 0x20,
  /** Send the size of the window, now and whenever it changes. */
  WINDOW: 0x80,
} as const

const ALL = CONTROL.FLUSH | CONTROL.RAW | CONTROL.COOKED | CONTROL.WINDOW

/** Returns true if the byte may be a control message; it is one only if it is urgent. */
export function isControl(byte: number): boolean {
  return byte !== 0 && (byte & ~ALL) === 0
}
