/** What a server says to a client by one urgent byte (RFC 1282): bits, of which several may be set. */
export const CONTROL = {
  /** Drop the output that has come and is not shown yet. */
  FLUSH: 0x02,
  /** Pass Ctrl-S and Ctrl-Q on. */
  RAW: 0x10,
  /** Stop and go on with the output at Ctrl-S and Ctrl-Q. */
  COOKED: 0x20,
  /** Send the size of the window, now and whenever it changes. */
  WINDOW: 0x80,
} as const

const ALL = CONTROL.FLUSH | CONTROL.RAW | CONTROL.COOKED | CONTROL.WINDOW

/** Whether a byte can be one; only that it is urgent makes it one. */
export function isControl(byte: number): boolean {
  return byte !== 0 && (byte & ~ALL) === 0
}
