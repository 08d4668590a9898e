/**
 * What is kept of users and groups (RFC 7643): the attributes of which a bastion makes use. Those of RFC 7643 that are not kept
 * are accepted and left out, since no provider can be kept from sending them.
 */

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group'

export interface Attribute {
  name: string
  type: 'string' | 'boolean' | 'dateTime' | 'reference' | 'complex'
  description: string
  multiValued?: boolean
  required?: boolean
  caseExact?: boolean
  mutability?: 'readWrite' | 'readOnly' | 'immutable'
  returned?: 'always' | 'default'
  uniqueness?: 'server'
  referenceTypes?: readonly string[]
  subAttributes?: readonly Attribute[]
}

export type ResourceType = 'User' | 'Group'

const META: Attribute = {
  name: 'meta',
  type: 'complex',
  description: 'when it was made and changed, and where it is',
  mutability: 'readOnly',
  subAttributes: [
    { name: 'resourceType', type: 'string', description: 'User or Group', caseExact: true },
    { name: 'created', type: 'dateTime', description: 'when it was made' },
    { name: 'lastModified', type: 'dateTime', description: 'when it was changed last' },
    { name: 'location', type: 'reference', description: 'its URL', caseExact: true },
    { name: 'version', type: 'string', description: 'its entity tag', caseExact: true },
  ],
}

/** Attributes of every resource (RFC 7643 section 3.1). */
const COMMON: readonly Attribute[] = [
  {
    name: 'schemas',
    type: 'reference',
    description: 'URIs',
    multiValued: true,
    caseExact: true,
    returned: 'always',
  },
  {
    name: 'id',
    type: 'string',
    description: 'given here, and never changed',
    caseExact: true,
    mutability: 'readOnly',
    returned: 'always',
    uniqueness: 'server',
  },
  {
    name: 'externalId',
    type: 'string',
    description: "the provider's id, which may bind the sign-in",
    caseExact: true,
  },
  META,
]

const text = (name: string, description: string): Attribute => ({ name, type: 'string', description })

export const USER_ATTRIBUTES: readonly Attribute[] = [
  {
    ...text('userName', 'unique in the domain: the person is userName@DOMAIN'),
    required: true,
    uniqueness: 'server',
  },
  {
    name: 'name',
    type: 'complex',
    description: 'parts of the name',
    subAttributes: [
      text('formatted', 'all of it'),
      text('familyName', 'last name'),
      text('givenName', 'first name'),
      text('middleName', 'middle name'),
      text('honorificPrefix', 'title'),
      text('honorificSuffix', 'suffix'),
    ],
  },
  text('displayName', 'the person, as auditors read it'),
  text('preferredLanguage', 'language'),
  text('locale', 'language and place, for formats'),
  { name: 'active', type: 'boolean', description: 'false: no access, and sessions end' },
  {
    name: 'emails',
    type: 'complex',
    description: 'mail addresses; the primary one, else the first, is shown',
    multiValued: true,
    subAttributes: [
      text('value', 'the address'),
      text('display', 'for people'),
      text('type', 'work, home or other'),
      { name: 'primary', type: 'boolean', description: 'at most one is' },
    ],
  },
  {
    name: 'groups',
    type: 'complex',
    description: 'groups with this member',
    multiValued: true,
    mutability: 'readOnly',
    subAttributes: [
      { name: 'value', type: 'string', description: 'id of the group', caseExact: true },
      {
        name: '$ref',
        type: 'reference',
        description: 'URL of the group',
        caseExact: true,
        referenceTypes: ['Group'],
      },
      text('display', 'name of the group'),
      text('type', 'direct'),
    ],
  },
]

export const GROUP_ATTRIBUTES: readonly Attribute[] = [
  {
    ...text('displayName', 'unique in the domain: what mappings name as external_group'),
    required: true,
    uniqueness: 'server',
  },
  {
    name: 'members',
    type: 'complex',
    description: 'its users',
    multiValued: true,
    subAttributes: [
      {
        name: 'value',
        type: 'string',
        description: 'id of the user',
        caseExact: true,
        mutability: 'immutable',
      },
      {
        name: '$ref',
        type: 'reference',
        description: 'URL of the user',
        caseExact: true,
        mutability: 'immutable',
        referenceTypes: ['User'],
      },
      { ...text('type', 'User'), mutability: 'immutable' },
    ],
  },
]

/** Attributes that RFC 7643 has for users, and that are not kept. */
const UNKEPT = new Set(
  [
    'nickName',
    'profileUrl',
    'title',
    'userType',
    'timezone',
    'password',
    'phoneNumbers',
    'ims',
    'photos',
    'addresses',
    'entitlements',
    'roles',
    'x509Certificates',
  ].map((name) => name.toLowerCase()),
)

const OWN: Readonly<Record<ResourceType, { schema: string; attributes: readonly Attribute[] }>> = {
  User: { schema: USER_SCHEMA, attributes: [...COMMON, ...USER_ATTRIBUTES] },
  Group: { schema: GROUP_SCHEMA, attributes: [...COMMON, ...GROUP_ATTRIBUTES] },
}

export function schemaOf(type: ResourceType): string {
  return OWN[type].schema
}

export function attributesOf(type: ResourceType): readonly Attribute[] {
  return OWN[type].attributes
}

/** An attribute, and its part if the path names one. */
export interface Found {
  attribute: Attribute
  part: Attribute | undefined
}

/** Names compare without regard to case (RFC 7643 section 2.1). */
export function byName(attributes: readonly Attribute[], name: string): Attribute | undefined {
  const key = name.toLowerCase()
  return attributes.find((one) => one.name.toLowerCase() === key)
}

/**
 * Returns what a path of names means: `userName`, `name.familyName`, either with the schema's URI before it. `unkept`: an
 * attribute of RFC 7643, or of another schema, that is not kept. `unknown`: none.
 */
export function attributeAt(type: ResourceType, path: string): Found | 'unkept' | 'unknown' {
  const { schema, attributes } = OWN[type]
  const isUrn = /^urn:/i.test(path)
  if (isUrn && !path.toLowerCase().startsWith(`${schema.toLowerCase()}:`))
    return path.toLowerCase() === schema.toLowerCase() ? 'unknown' : 'unkept'
  const [name = '', part, ...more] = (isUrn ? path.slice(schema.length + 1) : path).split('.')
  const attribute = byName(attributes, name)
  if (!attribute) return type === 'User' && UNKEPT.has(name.toLowerCase()) ? 'unkept' : 'unknown'
  if (part === undefined) return { attribute, part: undefined }
  const sub = byName(attribute.subAttributes ?? [], part)
  return sub && more.length === 0 ? { attribute, part: sub } : 'unknown'
}
