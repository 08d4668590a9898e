/** Proofs by tickets of Kerberos over SSH, in the words of the contract. */
import type {
  AuthenticateAnswer,
  AuthenticateRequest,
  GssapiMicProof,
  GssapiTokenProof,
} from '../contract/gate.ts'
import type { Begun, Outcome } from '../identity/sign-in.ts'
import type { SshTickets } from '../identity/ssh-tickets.ts'
import type { Protocol } from '../model/rights.ts'
import { ownerOf } from './sign-in-fields.ts'

/** The sign-in as it was begun, and its outcome. `detail` is for the audit log. */
export interface JudgedTicket {
  begun: Begun
  outcome: Outcome
  detail?: string
}

/** Rejects the proof `none`. Which methods there are depends on no user. */
export async function rejectNone(
  tickets: SshTickets | undefined,
  protocol: Protocol,
): Promise<AuthenticateAnswer> {
  const isOffered = protocol === 'SSH' && (await tickets?.areTaken())
  return { result: 'rejected', ...(isOffered && { takesTickets: true }) }
}

/** Judges a token, or the signature after it. `user`: the name in the login string. */
export async function judgeTicket(
  tickets: SshTickets | undefined,
  request: AuthenticateRequest,
  user: string,
  proof: GssapiTokenProof | GssapiMicProof,
): Promise<AuthenticateAnswer | JudgedTicket> {
  const { login, protocol, source } = request
  if (!tickets || protocol !== 'SSH') return { result: 'rejected' }
  const { method } = proof
  const signIn = { user, login, source: source.address, owner: ownerOf(request) }
  const own: Begun = { ...signIn, proof: { method } }
  if ('mic' in proof) return { begun: own, ...(await tickets.finish(signIn, proof)) }
  const begun = await tickets.begin(proof.token, signIn)
  if ('outcome' in begun) return { begun: own, ...begun }
  const { context, answer } = begun
  return { result: 'context', context, ...(answer && { token: answer }) }
}
