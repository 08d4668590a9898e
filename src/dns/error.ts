/** The DNS gave no answer that is of use. The message is for a person, in lower case. */
export class DnsError extends Error {
  override readonly name = 'DnsError'
}
