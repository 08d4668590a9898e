/** The DNS gave no usable response. The message is for a person, in lower case. */
export class DnsError extends Error {
  override readonly name = 'DnsError'
}
