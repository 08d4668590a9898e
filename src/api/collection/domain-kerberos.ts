/** The field of a domain that names its Kerberos realm and KDCs. */
import { isDeepStrictEqual } from 'node:util'
import { type Static, Type } from 'typebox'
import type { DomainKerberos } from '../../model/domain-kerberos.ts'
import type { Domain } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { hostFlaw, realmFlaw } from '../schema/external-auth-options.ts'
import { check, exact, partial } from '../schema/fields.ts'
import { serverIn, serverText } from '../schema/servers.ts'

const MAX_KDCS = 8
const DEFAULT_SECONDS = 5

const fields = exact({
  realm: Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Null()], {
    description: 'realm of the accounts, mostly in capitals: CORP.EXAMPLE; null: none',
  }),
  kdcs: Type.Array(Type.String({ minLength: 1, maxLength: 262 }), {
    maxItems: MAX_KDCS,
    'x-ordered': true,
    description: 'KDCs as `host`, `host:port` or `[address]:port`, asked in order; port 88 unless given',
  }),
  timeout: Type.Integer({
    minimum: 1,
    maximum: 15,
    description: 'seconds that each KDC has for an answer; 5 unless given',
  }),
})
const description =
  'RDP: where the accounts get the tickets by which they sign in at targets; of global domains only'
export const domainKerberosIn = {
  kerberos: Type.Optional(
    Type.Object(partial(fields).properties, { additionalProperties: false, description }),
  ),
}
export const domainKerberosOut = { kerberos: fields }
const In = exact(domainKerberosIn)

/**
 * Returns the change of a domain's realm, empty if the body names none. Proofs of passwords are sent where it says: that
 * takes the rights to change accounts and authorizations too. @throws ApiError
 */
export function domainKerberosOf(
  request: ApiRequest,
  { kerberos }: Static<typeof In>,
  { own, isLocal }: { own: Domain | undefined; isLocal: boolean },
): { kerberos?: DomainKerberos | undefined } {
  if (kerberos === undefined) return {}
  const wanted = wantedOf(kerberos, own?.kerberos)
  if (isDeepStrictEqual(wanted, own?.kerberos)) return {}
  if (wanted && isLocal)
    throw fieldError(
      'invalid_field',
      'kerberos/realm',
      'a local domain has accounts of a device, in no realm',
    )
  const { accounts, authorizations } = callerOf(request).rights
  if (!reaches(accounts, 'modify') || !reaches(authorizations, 'modify')) throw new ApiError('forbidden')
  return { kerberos: wanted }
}

function wantedOf(
  { realm = undefined, kdcs, timeout }: NonNullable<Static<typeof In>['kerberos']>,
  own: DomainKerberos | undefined,
): DomainKerberos | undefined {
  const name = realm === undefined ? own?.realm : (realm ?? undefined)
  if (name === undefined) {
    check('kerberos/kdcs', (kdcs ?? []).length > 0 ? 'name the realm of the KDCs' : undefined)
    return undefined
  }
  check('kerberos/realm', realmFlaw(name))
  const servers =
    kdcs?.map((text, at) => {
      const { host, port } = serverIn(text)
      const isPort = port === null || (0 < port && port <= 0xffff)
      check(`kerberos/kdcs/${at}`, isPort ? hostFlaw(host) : 'expected a port from 1 to 65535')
      return { host, ...(port !== null && { port }) }
    }) ?? own?.kdcs
  check('kerberos/kdcs', servers?.length ? undefined : 'name at least one KDC, such as dc1.corp.example')
  const timeoutMs = timeout === undefined ? (own?.timeoutMs ?? DEFAULT_SECONDS * 1000) : timeout * 1000
  return { realm: name, kdcs: servers ?? [], timeoutMs }
}

export function showDomainKerberos({ kerberos }: Domain): Static<typeof domainKerberosOut.kerberos> {
  return {
    realm: kerberos?.realm ?? null,
    kdcs: (kerberos?.kdcs ?? []).map(({ host, port = null }) => serverText({ host, port })),
    timeout: kerberos ? kerberos.timeoutMs / 1000 : DEFAULT_SECONDS,
  }
}
