/** Callers with an access token: `Authorization: Bearer` (RFC 6750). */
import type { FastifyRequest } from 'fastify'
import { passwordProof } from '../../identity/basis.ts'
import { intersection, union } from '../../model/profiles.ts'
import { ApiError } from '../http/errors.ts'
import type { Caller } from './caller.ts'
import type { Context } from './context.ts'
import { addressOf, record } from './events.ts'
import { noteUse } from './key-uses.ts'
import { rightsOf } from './profile-rights.ts'

const BEARER = /^bearer(?: +([A-Za-z0-9._~+/-]+=*))?$/i
const METHOD = { method: 'bearer', protocol: 'HTTPS' }

/** Returns the token, an empty text for a malformed one, or undefined if the request has none. */
export function bearerOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const { authorization = '' } = headers
  return /^bearer\b/i.test(authorization) ? (BEARER.exec(authorization)?.[1] ?? '') : undefined
}

/** Returns the caller of a token. @throws ApiError `authentication_required`, `sign_in_unavailable` */
export async function byBearer(context: Context, request: FastifyRequest, token: string): Promise<Caller> {
  const { deps } = context
  const { headers } = request
  // One request, one way to sign in (RFC 6750 section 2).
  const isAlone = headers['x-auth-key'] === undefined && headers['x-auth-user'] === undefined
  const outcome = isAlone
    ? await deps.bearers.judge(token, addressOf(request))
    : ({ result: 'rejected', reason: 'a token beside an API key or another user' } as const)
  if (outcome.result === 'unavailable') {
    await record(deps.audit, request, 'auth.unavailable', { ...METHOD, reason: outcome.reason })
    throw new ApiError('sign_in_unavailable')
  }
  if (outcome.result === 'rejected') {
    await record(deps.audit, request, 'auth.failure', { ...METHOD, reason: outcome.reason })
    throw new ApiError('authentication_required')
  }
  const { ends, user, by, profiles, hasFactor } = outcome
  const own = await rightsOf(deps.store, user.profile)
  const limits =
    profiles && union(await Promise.all(profiles.map((profile) => rightsOf(deps.store, profile))))
  const caller: Caller = {
    name: user.userName,
    user,
    key: undefined,
    bearer: by,
    ...(hasFactor && { hasFactor }),
    profile: [...new Set([user.profile, ...(profiles ?? [])])].join('+'),
    rights: limits ? intersection(own, limits) : own,
    basis: { userId: user.id, address: addressOf(request), proof: passwordProof(user, [by], { ends }) },
  }
  await noteUse(context, request, `bearer ${by}`, caller, METHOD.method)
  return caller
}
