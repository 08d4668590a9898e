/** Users and groups as SCIM shows them. */
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { badRequest, ScimError } from '../../scim/error.ts'
import { GROUP_SCHEMA, USER_SCHEMA } from '../../scim/schema.ts'
import type { ScimGroup, ScimUser } from '../../store/store.ts'

const PREFIX = /^(?:\/api(?:\/v\d{1,3}\.\d{1,3})?)?\/scim\/v2/

export interface GroupOfUser {
  groupId: string
  displayName: string
}

/** Returns the URL of the service as the client has reached it. */
export function baseOf(request: FastifyRequest): string {
  return `https://${request.headers.host ?? ''}${PREFIX.exec(request.originalUrl)?.[0] ?? '/scim/v2'}`
}

export function userView(base: string, user: ScimUser, groups: readonly GroupOfUser[]) {
  const shown = {
    schemas: [USER_SCHEMA],
    id: user.id,
    ...(user.externalId !== undefined && { externalId: user.externalId }),
    userName: user.userName,
    ...user.more,
    active: user.isActive,
    ...(groups.length > 0 && {
      groups: groups.map(({ groupId, displayName }) => ({
        value: groupId,
        $ref: `${base}/Groups/${groupId}`,
        display: displayName,
        type: 'direct',
      })),
    }),
  }
  const state = [user.revision, groups.map(({ groupId, displayName }) => [groupId, displayName])]
  return { ...shown, meta: metaOf(base, 'User', user, tagOf(state)) }
}

/** `members`: their ids, or undefined if they are not asked for. */
export function groupView(base: string, group: ScimGroup, members: readonly string[] | undefined) {
  return {
    schemas: [GROUP_SCHEMA],
    id: group.id,
    ...(group.externalId !== undefined && { externalId: group.externalId }),
    displayName: group.displayName,
    ...(members && {
      members: members.map((value) => ({ value, $ref: `${base}/Users/${value}`, type: 'User' })),
    }),
    meta: metaOf(base, 'Group', group, groupTag(group)),
  }
}

export const groupTag = ({ revision }: ScimGroup): string => tagOf([revision])

/** Weak: the same user may be shown with other URLs. */
function tagOf(state: unknown): string {
  return `W/"${createHash('sha256').update(JSON.stringify(state)).digest('base64url').slice(0, 22)}"`
}

function metaOf(
  base: string,
  resourceType: 'User' | 'Group',
  { id, created, modified }: ScimUser | ScimGroup,
  version: string,
) {
  return {
    resourceType,
    created: new Date(created).toISOString(),
    lastModified: new Date(modified).toISOString(),
    location: `${base}/${resourceType}s/${id}`,
    version,
  }
}

/** @throws ScimError 412 if the header `If-Match` names tags, but not this one */
export function requireMatch(request: FastifyRequest, tag: string): void {
  const header = request.headers['if-match']
  if (header !== undefined && !names(header, tag))
    throw new ScimError(412, undefined, 'the resource has changed since its version was read: read it again')
}

/** Whether the client has this version already. */
export function isKnown(request: FastifyRequest, tag: string): boolean {
  const header = request.headers['if-none-match']
  return header !== undefined && names(header, tag)
}

/** Weak comparison, as RFC 7644 section 3.14 shows it. */
const names = (header: string, tag: string): boolean =>
  header
    .split(',')
    .map((one) => one.trim())
    .some((one) => one === '*' || one.replace(/^W\//, '') === tag.replace(/^W\//, ''))

/** Returns a number of a query or a body, or undefined. @throws ScimError `invalidValue` */
export function numberOf(name: string, value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value
  if (!Number.isSafeInteger(number)) throw badRequest('invalidValue', `expected a whole number as ${name}`)
  return number as number
}
