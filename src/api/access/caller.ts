/** The one who makes a request, known before its body is read. */
import type { FastifyBaseLogger } from 'fastify'
import type { Basis } from '../../identity/basis.ts'
import type { ApiKey, User } from '../../model/objects.ts'
import type { Feature, Level, ProfileRights } from '../../model/profile-rights.ts'
import { reaches } from '../../model/profiles.ts'
import type { Holder } from '../http/connections.ts'
import { ApiError } from '../http/errors.ts'

export interface Caller {
  /** What events call the caller: the user's name, or the key's as `key:NAME` where no user stands behind it. */
  name: string
  /** The user in whose name the request is made; undefined: an API key alone. */
  user: User | undefined
  /** The key that the request came with. */
  key: ApiKey | undefined
  /** Names of the profiles that make up the rights. */
  profile: string
  rights: ProfileRights
  /** What being the caller rests on; undefined: the command line. */
  basis: Basis | undefined
}

/** What resources read of a request: Fastify's, or the one that the command line makes. */
export interface ApiRequest {
  caller: Caller | null
  params: unknown
  log: Pick<FastifyBaseLogger, 'error'>
  socket: { remoteAddress?: string | undefined; remotePort?: number | undefined }
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
  }
}

/** The caller of a route that needs a sign-in. */
export function callerOf(request: ApiRequest): Caller {
  if (!request.caller) throw new ApiError('authentication_required')
  return request.caller
}

/** Whose connection it is that the caller comes by. */
export function holderOf({ user, key, rights }: Caller): Holder {
  return {
    ids: [...(user ? [`user ${user.id}`] : []), ...(key ? [`key ${key.id}`] : [])],
    // who can stop others, and change what they may
    isAdministrator: reaches(rights.users, 'modify') || reaches(rights.sessions, 'execute'),
  }
}

/** @throws ApiError `forbidden` */
export function requireRight(request: ApiRequest, feature: Feature, level: Level): void {
  if (!reaches(callerOf(request).rights[feature], level)) throw new ApiError('forbidden')
}

/** The user behind the request. @throws ApiError `user_context_required` for a key without `X-Auth-User` */
export function userOf(request: ApiRequest): User {
  const { user } = callerOf(request)
  if (!user) throw new ApiError('user_context_required')
  return user
}

/**
 * What something rests on that the caller makes, beside the right that it takes.
 * @throws ApiError `authentication_required` for the command line
 */
export function basisOf(request: ApiRequest, needs?: Basis['needs']): Basis {
  const { basis } = callerOf(request)
  if (!basis) throw new ApiError('authentication_required')
  return { ...basis, ...(needs && { needs }) }
}
