/** Second factors that requests need: proved at the sign-in by cookie, or asked for by a challenge, which `POST /session` answers. */
import type { FastifyRequest } from 'fastify'
import { firstFactorOf } from '../../identity/basis.ts'
import { LOCKOUT_LIMITS } from '../../identity/lockout.ts'
import type { Id } from '../../model/objects.ts'
import { ApiError, challengeError } from '../http/errors.ts'
import { basisOf, callerOf, userOf } from './caller.ts'
import type { Context } from './context.ts'
import { addressOf, record } from './events.ts'

const METHOD = { method: 'second_factor', protocol: 'HTTPS' }

/**
 * Returns if something counts for a second factor by these authorizations, for a caller that has proved none.
 * @throws ApiError `second_factor_required` with the challenge, `forbidden` for a caller that can be asked nothing
 */
export async function requireFactor(
  { deps }: Pick<Context, 'deps'>,
  request: FastifyRequest,
  authorizationIds: readonly Id[],
): Promise<void> {
  const { audit, identities, store } = deps
  const { key, bearer } = callerOf(request)
  const user = userOf(request)
  if (key) throw refusal('an API key has none: sign in by POST /session')
  if (bearer !== undefined) throw refusal('amr of the access token does not say mfa')
  const rules = await store.secondFactors.rulesOf(authorizationIds)
  if (!rules) return
  const source = addressOf(request)
  const { proof } = basisOf(request)
  const where = { source, owner: `HTTPS ${source}`, firstFactor: firstFactorOf(proof) }
  const session = proof.method === 'password' ? proof.providerSession : undefined
  // The sign-in that the answer makes ends with the provider's session, too.
  const proved = { user, ...(session !== undefined && { providerSession: session }) }
  const outcome = await identities.further(proved, where, rules)
  const same = { protocol: 'HTTPS', user: user.userName }
  switch (outcome.result) {
    case 'accepted':
      await record(audit, request, 'factor.remembered', same)
      return
    case 'challenge':
      throw challengeError(outcome)
    case 'rejected': {
      const { reason, locks } = outcome
      const fields = { ...METHOD, user: user.userName, reason }
      await record(audit, request, 'auth.failure', fields)
      if (locks) await record(audit, request, 'auth.locked', { ...fields, duration: LOCKOUT_LIMITS.lockMs })
      throw new ApiError(reason === 'busy' ? 'busy' : 'invalid_credentials')
    }
    default:
      throw new ApiError('invalid_credentials')
  }
}

function refusal(why: string): ApiError {
  return new ApiError('forbidden', [{ message: `the authorization requires a second factor, and ${why}` }])
}
