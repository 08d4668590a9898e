/** The peer has closed the connection during a handshake. */
export class EndedError extends Error {
  override name = 'EndedError'
}
