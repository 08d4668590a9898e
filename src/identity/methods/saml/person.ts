/** Reads a person from a verified assertion. */
import type { AuthDomainAttributes } from '../../../model/external-auths.ts'
import type { Person } from '../method.ts'
import type { Assertion, NameId } from './assertion.ts'
import { quoted, SamlError } from './error.ts'
import { NAME_ID_FORMATS } from './names.ts'

const MAX_GROUPS = 1000
const MAX_GROUP = 512

export interface NameRules {
  /** Attribute with the name; absent: the NameID. */
  userAttribute?: string
  /** Attribute that is never given to another person; absent: a persistent NameID. */
  idAttribute?: string
}

/**
 * The stable id is that of `idAttribute`, else a persistent NameID: mail addresses and names can be given to another person.
 * Characters that no user name may hold are percent-encoded.
 * @throws SamlError
 */
export function personOf(
  { nameId, attributes: found }: Pick<Assertion, 'nameId' | 'attributes'>,
  issuer: string,
  { userAttribute, idAttribute }: NameRules,
  attributes: AuthDomainAttributes,
): Person {
  const name = userAttribute === undefined ? nameOf(nameId) : only(found, userAttribute)
  const stableId = idAttribute === undefined ? persistentId(nameId) : only(found, idAttribute)
  const text = (attribute: string | undefined) => {
    const [value] = (attribute === undefined ? undefined : found.get(attribute)) ?? []
    return value !== undefined && value !== '' && value.length <= MAX_GROUP ? value : undefined
  }
  const displayName = text(attributes.displayName ?? 'displayName')
  const email = text(attributes.email ?? 'mail')
  const language = text(attributes.language ?? 'preferredLanguage')
  const groups = found.get(attributes.group ?? 'groups') ?? []
  if (MAX_GROUPS < groups.length)
    throw new SamlError('attribute', `expected at most ${MAX_GROUPS} groups, got ${groups.length}`)
  return {
    ...(stableId !== undefined && { stableId: `${issuer} ${stableId}` }),
    userName: name.replaceAll(/[%:/\\]/g, encodeURIComponent),
    ...(displayName !== undefined && { displayName }),
    ...(email !== undefined && { email }),
    ...(language !== undefined && { language }),
    groups: groups.filter((one) => one !== '' && one.length <= MAX_GROUP),
  }
}

function nameOf({ value, format }: NameId): string {
  if (format === NAME_ID_FORMATS.transient)
    throw new SamlError('name', 'a transient NameID names nobody twice: set user_attribute')
  return value
}

function persistentId({
  value,
  format,
  nameQualifier = '',
  spNameQualifier = '',
}: NameId): string | undefined {
  if (format !== NAME_ID_FORMATS.persistent) return undefined
  return JSON.stringify([value, nameQualifier, spNameQualifier])
}

/** @throws SamlError unless the attribute has one value */
function only(attributes: Assertion['attributes'], name: string): string {
  const values = attributes.get(name) ?? []
  const [value] = values
  if (value === undefined || value === '' || values.length > 1)
    throw new SamlError(
      'name',
      `expected one value of the attribute ${name}, got ${quoted(values.join(', '))}`,
    )
  return value
}
