/** Bytes that do not follow the protocol: the message says what was expected, what came and where. */
export class MalformedError extends Error {
  override name = 'MalformedError'
}
