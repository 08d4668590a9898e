/** Reads a person, or a job, from the claims of a token. */
import type { AuthDomainAttributes, OidcOptions } from '../../../model/external-auths.ts'
import type { Person } from '../method.ts'
import { type Claims, claimAt } from './signed.ts'

const MAX_GROUPS = 1000
const MAX_GROUP = 512

/**
 * The stable id is the issuer's `sub`, with the issuer: names and addresses can be given to somebody else. Characters that no
 * user name may hold are percent-encoded, as in `repo%3Aacme%2Fapp`.
 * @throws Error for a name that is none
 */
export function personOf(
  claims: Claims,
  { issuer, userClaim }: Pick<OidcOptions, 'issuer' | 'userClaim'>,
  attributes: AuthDomainAttributes,
): Person {
  const name = claimAt(claims, userClaim)
  if (typeof name !== 'string' || name === '')
    throw new Error(`the claim ${userClaim}, which has the name, is missing or no text`)
  const text = (claim: string) => {
    const value = claimAt(claims, claim)
    return typeof value === 'string' && value.length <= MAX_GROUP ? value : undefined
  }
  const displayName = text(attributes.displayName ?? 'name')
  const email = text(attributes.email ?? 'email')
  const language = text(attributes.language ?? 'locale')
  return {
    stableId: `${issuer} ${claims['sub']}`,
    userName: name.replaceAll(/[%:/\\]/g, encodeURIComponent),
    ...(displayName !== undefined && { displayName }),
    ...(email !== undefined && { email }),
    ...(language !== undefined && { language }),
    groups: textsOf(claimAt(claims, attributes.group ?? 'groups')),
  }
}

/** Returns the scopes that the token was given: `scope` of RFC 9068, or `scp` as Microsoft and Okta write it. */
export function scopesOf(claims: Claims): string[] {
  const given = claims['scope'] ?? claims['scp']
  return typeof given === 'string' ? given.split(' ') : textsOf(given)
}

/** Whether the issuer says that more than one factor was proved (RFC 8176). */
export function isMultiFactor(claims: Claims): boolean {
  return textsOf(claims['amr']).includes('mfa')
}

/** @throws Error if there are too many: none may be missed */
function textsOf(value: unknown): string[] {
  const all: unknown[] = Array.isArray(value) ? value : [value]
  if (MAX_GROUPS < all.length) throw new Error(`expected at most ${MAX_GROUPS} values, got ${all.length}`)
  return all.filter((one) => typeof one === 'string' && one !== '' && one.length <= MAX_GROUP) as string[]
}
