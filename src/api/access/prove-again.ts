/** The password of a user that is signed in, once more: for what a stolen session must not do. */
import type { FastifyRequest } from 'fastify'
import { LOCKOUT_LIMITS } from '../../identity/lockout.ts'
import type { User } from '../../model/objects.ts'
import { ApiError } from '../http/errors.ts'
import type { Context } from './context.ts'
import { addressOf, record } from './events.ts'

/**
 * Judges the password. Returns `more_asked` if the user's servers ask for more than it. A wrong one counts as at a sign-in.
 * @throws ApiError `sign_in_unavailable`, `busy`
 */
export async function proveAgain(
  { deps: { audit, identities } }: Context,
  request: FastifyRequest,
  user: User,
  password: string,
  method: string,
): Promise<'proved' | 'wrong' | 'more_asked'> {
  const source = addressOf(request)
  const name = user.userName
  const proof = { method: 'password', password } as const
  const owner = `HTTPS ${source}`
  const outcome = await identities.authenticate({ user: name, login: name, source, owner, proof })
  if (outcome.result === 'accepted' && outcome.user.id === user.id) return 'proved'
  if (outcome.result === 'challenge') {
    identities.abandon(outcome.challenge)
    // Factors of our own are asked for last: all else is proved.
    if (outcome.failure === undefined) return outcome.form ? 'proved' : 'more_asked'
  }
  if (outcome.result === 'unavailable') throw new ApiError('sign_in_unavailable')
  const reason = outcome.result === 'rejected' ? outcome.reason : 'wrong_password'
  const fields = { method, protocol: 'HTTPS', user: name, reason }
  await record(audit, request, 'auth.failure', fields)
  if (outcome.result === 'rejected' && outcome.locks)
    await record(audit, request, 'auth.locked', { ...fields, duration: LOCKOUT_LIMITS.lockMs })
  if (reason === 'busy') throw new ApiError('busy')
  return 'wrong'
}
