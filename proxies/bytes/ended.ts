/** The peer has gone in the middle of a handshake. */
export class EndedError extends Error {
  override name = 'EndedError'
}
