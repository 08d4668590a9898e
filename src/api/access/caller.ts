/** The caller of a request, known before the body is read. */
import type { FastifyBaseLogger } from 'fastify'
import type { Basis } from '../../identity/basis.ts'
import type { ApiKey, Id, User } from '../../model/objects.ts'
import type { Feature, Level, ProfileRights } from '../../model/profile-rights.ts'
import { reaches } from '../../model/profiles.ts'
import type { Holder } from '../http/connections.ts'
import { ApiError } from '../http/errors.ts'

export interface Caller {
  /** Name of the caller in events: the user's name, or `key:NAME` for a key without a user. */
  name: string
  /** The user in whose name the request is made, or undefined for an API key alone. */
  user: User | undefined
  /** The API key of the request, if any. */
  key: ApiKey | undefined
  /** Name of the external authentication that has judged the request's access token, if it has one. */
  bearer?: string
  /** Name of the profile, or names of the profiles, that the rights come from. */
  profile: string
  rights: ProfileRights
  /** Set if a second factor was proved at the sign-in, or the access token says so. */
  hasFactor?: true
  /** Id of the sign-in by cookie, if it is one. */
  signIn?: Id
  /** Basis of the caller's sign-in, or undefined for the command line. */
  basis: Basis | undefined
}

/** Where a request came from. The command line has neither; behind a proxy no port is known. */
export interface RequestSource {
  address?: string
  port?: number
}

/** The part of a request that resources read: Fastify's, or one made by the command line. */
export interface ApiRequest {
  caller: Caller | null
  params: unknown
  log: Pick<FastifyBaseLogger, 'error'>
  source: RequestSource
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
    source: RequestSource
  }
}

/** Returns the caller of a route that needs a sign-in. */
export function callerOf(request: ApiRequest): Caller {
  if (!request.caller) throw new ApiError('authentication_required')
  return request.caller
}

/** Returns the holder to which the caller's connection is counted. */
export function holderOf({ user, key, rights }: Caller): Holder {
  return {
    ids: [...(user ? [`user ${user.id}`] : []), ...(key ? [`key ${key.id}`] : [])],
    // May stop others, or change their rights.
    isAdministrator: reaches(rights.users, 'modify') || reaches(rights.sessions, 'execute'),
  }
}

/** @throws ApiError `forbidden` */
export function requireRight(request: ApiRequest, feature: Feature, level: Level): void {
  if (!reaches(callerOf(request).rights[feature], level)) throw new ApiError('forbidden')
}

/**
 * Returns the user of the request.
 * @throws ApiError `user_context_required` for a key without `X-Auth-User`
 */
export function userOf(request: ApiRequest): User {
  const { user } = callerOf(request)
  if (!user) throw new ApiError('user_context_required')
  return user
}

/**
 * Returns the basis for an object that the caller makes, with the right that it needs.
 * @throws ApiError `authentication_required` for the command line
 */
export function basisOf(request: ApiRequest, needs?: Basis['needs']): Basis {
  const { basis } = callerOf(request)
  if (!basis) throw new ApiError('authentication_required')
  return { ...basis, ...(needs && { needs }) }
}
