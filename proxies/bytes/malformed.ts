/** Bytes that violate the protocol. The message names the expected value, the received one, and the place. */
export class MalformedError extends Error {
  override name = 'MalformedError'
}
