/**
 * Authenticates the caller of a request: an API key, in a user's name or its own, or a user by access token or
 * sign-in cookie. The user is read from the store each time, so that a disabled user loses access at once.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { mayActFor } from '../../identity/acting.ts'
import { type Basis, earlierProof } from '../../identity/basis.ts'
import { flawOfStanding } from '../../identity/standing.ts'
import { looksLikeId } from '../../model/names.ts'
import { isFrom } from '../../model/networks.ts'
import type { ApiKey, Id } from '../../model/objects.ts'
import { intersection } from '../../model/profiles.ts'
import { ApiError } from '../http/errors.ts'
import { MAX_TEXT } from '../http/limits.ts'
import { bearerOf, byBearer } from './bearer.ts'
import type { Caller } from './caller.ts'
import type { Context } from './context.ts'
import { addressOf, record } from './events.ts'
import { noteUse } from './key-uses.ts'
import { rightsOf } from './profile-rights.ts'

export const SESSION_COOKIE = 'sallyport_session'

/** Returns the caller of a request. @throws ApiError `authentication_required`, `sign_in_unavailable` */
export async function authenticate(context: Context, request: FastifyRequest): Promise<Caller> {
  const bearer = bearerOf(request)
  if (bearer !== undefined) return await byBearer(context, request, bearer)
  const key = request.headers['x-auth-key']
  const user = request.headers['x-auth-user']
  if (typeof key === 'string')
    return byKey(context, request, key, typeof user === 'string' ? textOf(user) : undefined)
  const token = request.cookies[SESSION_COOKIE]
  // A user header without a key means that the client wants to act as another user: the cookie must not
  // decide silently.
  if (token === undefined || user !== undefined) throw new ApiError('authentication_required')
  return byCookie(context, request, token)
}

/**
 * Returns the caller of a page, by the cookie alone: other headers that sign in are for programs.
 * @throws ApiError `authentication_required`
 */
export async function authenticateBrowser(context: Context, request: FastifyRequest): Promise<Caller> {
  const token = request.cookies[SESSION_COOKIE]
  if (token === undefined) throw new ApiError('authentication_required')
  return await byCookie(context, request, token)
}

/** Returns the text of a header's bytes, which Node shows as Latin-1: UTF-8 if they are that, else Latin-1. */
function textOf(header: string): string {
  const bytes = Buffer.from(header, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : header
}

async function byCookie({ deps, signIns }: Context, request: FastifyRequest, token: string): Promise<Caller> {
  const now = deps.clock()
  const signIn = await signIns.use(token, now)
  const user = signIn && (await deps.store.users.find(signIn.userId))
  const providerSession = signIn?.providerSession
  const bounds = providerSession === undefined ? {} : { providerSession }
  const proof = user && earlierProof(user, signIn.secretRevision, bounds)
  const mayStay =
    proof &&
    signIn.secretRevision === (user.secretRevision ?? 0) &&
    !flawOfStanding(user, addressOf(request), now) &&
    (providerSession === undefined ||
      now < ((await deps.store.providerSessions.find(providerSession))?.ends ?? 0))
  if (!mayStay) {
    if (signIn) await signIns.end(token)
    throw new ApiError('authentication_required')
  }
  return {
    name: user.userName,
    user,
    key: undefined,
    profile: user.profile,
    rights: await rightsOf(deps.store, user.profile),
    ...(signIn.hasFactor && { hasFactor: true }),
    signIn: signIn.id,
    basis: {
      userId: user.id,
      address: addressOf(request),
      proof,
    },
  }
}

async function byKey(
  context: Context,
  request: FastifyRequest,
  text: string,
  userName: string | undefined,
): Promise<Caller> {
  const { deps } = context
  const now = deps.clock()
  const refuse = async (reason: string, known?: ApiKey): Promise<never> => {
    await record(deps.audit, request, 'auth.failure', {
      ...(userName === undefined ? {} : { user: userName.slice(0, MAX_TEXT) }),
      ...(known && { api_key: known.keyName }),
      method: 'api_key',
      protocol: 'HTTPS',
      reason,
    })
    throw new ApiError('authentication_required')
  }
  const key = await deps.store.apiKeys.findByHash(hashOfKey(text))
  if (!key) return refuse('unknown key')
  if (key.expirationDate !== undefined && key.expirationDate <= now)
    return refuse(`key ${key.keyName} has expired`, key)
  if (!isFrom(addressOf(request), key.ipSource)) {
    return refuse(`key ${key.keyName} is not for this address`, key)
  }
  const rights = await rightsOf(deps.store, key.profile)
  const basisFor = (userId: Id | undefined): Basis => ({
    userId,
    address: addressOf(request),
    proof: { method: 'api_key', id: key.id, name: key.keyName },
  })
  if (userName === undefined) {
    const caller = {
      name: `key:${key.keyName}`,
      user: undefined,
      key,
      profile: key.profile,
      rights,
      basis: basisFor(undefined),
    }
    await noteUse(context, request, key.id, caller, 'api_key')
    return caller
  }
  const user = looksLikeId(userName) ? undefined : await deps.store.users.find(userName)
  // Persons of authentication domains act by their own sign-ins only: a key asks no directory for their standing.
  if (user?.authDomainId !== undefined) return refuse('person of an authentication domain', key)
  if (!user) return refuse('unknown user', key)
  // The address is the key's machine: the key's networks apply, not the user's own.
  const flaw = flawOfStanding({ ...user, ipSource: [] }, addressOf(request), now)
  if (flaw) return refuse(`${flaw} user`, key)
  const own = await rightsOf(deps.store, user.profile)
  if (!mayActFor(key, user, own)) return refuse(`key ${key.keyName} may not act for this user`, key)
  const caller = {
    name: user.userName,
    user,
    key,
    profile: user.profile === key.profile ? key.profile : `${user.profile}+${key.profile}`,
    rights: intersection(own, rights),
    basis: basisFor(user.id),
  }
  await noteUse(context, request, key.id, caller, 'api_key')
  return caller
}

/** Hashes a key for storage. A plain hash suffices, since keys are random. */
export function hashOfKey(key: string): Uint8Array {
  return createHash('sha256').update(key).digest()
}
