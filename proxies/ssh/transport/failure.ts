/** Why a connection ended by an error, in words for the audit log. */
import { MalformedError } from '../../bytes/malformed.ts'

/** Returns how the peer broke the protocol, or undefined for an error of the network. */
export function failureOf(error: unknown, peer: 'client' | 'target'): string | undefined {
  const { message, level } = error as Error & { level?: string }
  const isBreach = error instanceof MalformedError || level === 'protocol'
  return isBreach ? `the ${peer} broke the SSH protocol: ${message}` : undefined
}
