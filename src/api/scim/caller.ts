/** Callers of SCIM: a token of one domain, which reaches that domain only. */
import type { FastifyRequest } from 'fastify'
import type { AuthDomain } from '../../model/external-auths.ts'
import { isFrom } from '../../model/networks.ts'
import type { ScimToken } from '../../store/store.ts'
import { hashOfKey } from '../access/authenticate.ts'
import { bearerOf } from '../access/bearer.ts'
import type { Context } from '../access/context.ts'
import { addressOf, record } from '../access/events.ts'
import type { Holder } from '../http/connections.ts'
import { ApiError } from '../http/errors.ts'
import { KEY_USE_INTERVAL, MAX_KEY_USES } from '../http/limits.ts'

export interface ScimCaller {
  domain: AuthDomain
  token: ScimToken
  /** In events. */
  name: string
}

declare module 'fastify' {
  interface FastifyRequest {
    scim: ScimCaller | null
  }
}

const METHOD = { method: 'scim', protocol: 'HTTPS' }
/** Accuracy with which the last use of a token is noted, in milliseconds. */
const NOTED = 60_000

/** Returns the caller of a request. @throws ApiError `authentication_required` */
export async function scimCaller(context: Context, request: FastifyRequest): Promise<ScimCaller> {
  const { store, clock, audit } = context.deps
  const address = addressOf(request)
  const text = bearerOf(request)
  if (text === undefined) throw new ApiError('authentication_required')
  const token = await store.scimTokens.findByHash(hashOfKey(text))
  const domain = token && (await store.authDomains.find(token.authDomainId))
  const now = clock()
  const refuse = async (reason: string): Promise<never> => {
    await record(audit, request, 'auth.failure', {
      ...(token && domain && { user: nameOf(token, domain) }),
      ...METHOD,
      reason,
    })
    throw new ApiError('authentication_required')
  }
  if (!token || !domain) return await refuse('unknown SCIM token')
  if (token.expirationDate !== undefined && token.expirationDate <= now)
    return await refuse('the SCIM token has expired')
  if (!isFrom(address, token.ipSource)) return await refuse('the SCIM token is not for this address')
  if (domain.scimIdentifier === undefined)
    return await refuse(`${domain.domainName} is not provisioned by SCIM`)
  const caller = { domain, token, name: nameOf(token, domain) }
  await noteUse(context, request, caller, now)
  return caller
}

const nameOf = ({ tokenName }: ScimToken, { domainName }: AuthDomain) => `scim:${tokenName}@${domainName}`

async function noteUse(
  { deps, keyUses }: Context,
  request: FastifyRequest,
  { token, name }: ScimCaller,
  now: number,
): Promise<void> {
  const address = addressOf(request)
  const use = `scim ${token.id} ${address}`
  const last = keyUses.get(use)
  if (last === undefined || now - last >= KEY_USE_INTERVAL) {
    await record(deps.audit, request, 'auth.success', { user: name, ...METHOD })
    if (keyUses.size >= MAX_KEY_USES) keyUses.clear()
    keyUses.set(use, now)
  }
  if (token.lastUsed === undefined || now - token.lastUsed >= NOTED || token.lastAddress !== address)
    await deps.store.scimTokens.used(token.id, now, address)
}

/** Returns the holder to which the token's connections are counted. */
export function holderOfToken({ token }: ScimCaller): Holder {
  return { ids: [`scim ${token.id}`], isAdministrator: false }
}

/** Returns the caller of a route that needs a token. */
export function scimCallerOf(request: FastifyRequest): ScimCaller {
  if (!request.scim) throw new ApiError('authentication_required')
  return request.scim
}
