/** Attributes of a person out of the answer to an authorization request. */
import type { AuthDomainAttributes } from '../../../model/external-auths.ts'
import type { Person } from '../method.ts'
import { type Argument, type AuthorizationReply, MAX_SHORT } from './messages.ts'
import { TacacsError } from './packet.ts'

/** The service that network devices ask for: a server's profiles of shells need no change. */
export const SHELL: readonly Argument[] = [
  { name: 'service', value: 'shell', isMandatory: true },
  { name: 'cmd', value: '', isMandatory: true },
]
const GROUPS = 'groups'
const LEVEL = 'priv-lvl'
const MAX_GROUPS = 256

/**
 * Returns the person. Groups are the values of the domain's attribute, `groups` by default, apart by commas, and
 * `priv-lvl=15` for a privilege level. @throws TacacsError for a mandatory argument that is not understood: its
 * restriction could not be kept (RFC 8907 6.1)
 */
export function personOf(
  userName: string,
  { status, args }: Pick<AuthorizationReply, 'status' | 'args'>,
  attributes: AuthDomainAttributes,
): Person {
  const group = attributes.group ?? GROUPS
  const all = status === 'add' ? [...SHELL, ...args] : args
  const one = (name: string | undefined): string | undefined =>
    name === undefined ? undefined : all.find((arg) => arg.name === name && arg.value !== '')?.value
  const understood = new Set(['service', 'cmd', LEVEL, group, ...Object.values(attributes)])
  const foreign = all.find(({ name, isMandatory }) => isMandatory && !understood.has(name))
  if (foreign)
    throw new TacacsError(
      `the server demands the attribute ${foreign.name}, which is not understood here: make it optional (\`${foreign.name}*…\`)`,
    )
  const named = all
    .filter(({ name }) => name === group && name !== LEVEL)
    .flatMap(({ value }) => value.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const levels = all.filter(({ name }) => name === LEVEL).map(({ value }) => `${LEVEL}=${value}`)
  const displayName = one(attributes.displayName)
  const email = one(attributes.email)
  const language = one(attributes.language)
  const { publicKey } = attributes
  return {
    userName,
    ...(displayName !== undefined && { displayName }),
    ...(email !== undefined && { email }),
    ...(language !== undefined && { language }),
    groups: [...new Set([...named, ...levels])].slice(0, MAX_GROUPS),
    ...(publicKey !== undefined && {
      publicKeys: all.filter(({ name }) => name === publicKey).map(({ value }) => value),
    }),
  }
}

/** Whether a name can be sent: of 1 to 255 bytes, without control characters. */
export function isSendable(userName: string): boolean {
  return userName !== '' && Buffer.byteLength(userName) <= MAX_SHORT && !/\p{Cc}/u.test(userName)
}
