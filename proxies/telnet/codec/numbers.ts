/** Telnet's numbers: commands (RFC 854, 855, 885, 1184), and the options that the bastion handles. */

/** Codes after IAC. */
export const COMMAND = {
  EOF: 236,
  SUSP: 237,
  ABORT: 238,
  EOR: 239,
  SE: 240,
  NOP: 241,
  /** Data Mark: where the urgent data of a Synch ends. */
  DM: 242,
  BRK: 243,
  /** Interrupt Process */
  IP: 244,
  /** Abort Output */
  AO: 245,
  /** Are You There */
  AYT: 246,
  /** Erase Character */
  EC: 247,
  /** Erase Line */
  EL: 248,
  /** Go Ahead */
  GA: 249,
  SB: 250,
  WILL: 251,
  WONT: 252,
  DO: 253,
  DONT: 254,
  IAC: 255,
} as const

export type Verb = typeof COMMAND.WILL | typeof COMMAND.WONT | typeof COMMAND.DO | typeof COMMAND.DONT

export const OPTION = {
  /** RFC 856 */
  BINARY: 0,
  /** RFC 857 */
  ECHO: 1,
  /** Suppress Go Ahead, RFC 858 */
  SGA: 3,
  /** Terminal type, RFC 1091 */
  TTYPE: 24,
  /** Negotiate About Window Size, RFC 1073 */
  NAWS: 31,
  /** RFC 1184: always refused, because lines edited by the client cannot be recorded as they are typed. */
  LINEMODE: 34,
  /** RFC 1572 */
  NEW_ENVIRON: 39,
} as const
