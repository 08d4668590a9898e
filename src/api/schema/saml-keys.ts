/** Key pairs of this broker for an identity provider: given with their certificates, or made. */
import { newOwnKey, ownKeyFlaw } from '../../identity/methods/saml/own-key.ts'
import type { SamlOptions } from '../../model/external-auths.ts'
import { Secret } from '../../model/secret.ts'
import { check } from './fields.ts'

export interface KeysBody {
  private_key?: string | null
  next_private_key?: string | null
  saml?: { own_certificate?: string | null; next_certificate?: string | null }
}

/**
 * Returns the certificate in use, with its key if that was made here.
 * @throws ApiError `invalid_field` for a certificate without its key, and the other way round
 */
export async function ownPairOf(
  { private_key: key, next_private_key: nextKey, saml = {} }: KeysBody,
  own: SamlOptions | undefined,
  name: string,
  now: number,
): Promise<{ certificate: string; key?: Secret }> {
  const nextCertificate = changed(saml.next_certificate, own?.nextCertificate)
  const isNextWhole = (nextKey == null) === (nextCertificate == null)
  check('next_private_key', isNextWhole ? undefined : 'goes with saml/next_certificate: give or remove both')
  if (nextKey != null && nextCertificate != null)
    check('saml/next_certificate', ownKeyFlaw({ key: nextKey, certificate: nextCertificate }))
  const certificate = changed(saml.own_certificate, own?.certificate) ?? undefined
  check('private_key', key === null && own ? 'it is needed to sign with: give another one' : undefined)
  check(
    'saml/own_certificate',
    (key != null) === (certificate !== undefined) ? undefined : 'goes with private_key: give both, or none',
  )
  if (key != null && certificate !== undefined) {
    check('saml/own_certificate', ownKeyFlaw({ key, certificate }))
    return { certificate }
  }
  if (own) return { certificate: own.certificate }
  const made = await newOwnKey(name, now)
  return { certificate: made.certificate, key: Secret.of(made.key) }
}

/** An import repeats what is there. */
function changed(given: string | null | undefined, before: string | undefined): string | null | undefined {
  return given === before ? undefined : given
}
