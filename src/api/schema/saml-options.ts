/** Options of identity providers of SAML 2.0: fields of the API, and what is stored of them. */
import { type Static, Type } from 'typebox'
import { certificatesOf } from '../../identity/methods/saml/certificates.ts'
import { endpointFlaw, MetadataError, readMetadata } from '../../identity/methods/saml/metadata.ts'
import {
  type ExternalServer,
  SAML_BINDINGS,
  SAML_NAME_ID_FORMATS,
  type SamlIdp,
  type SamlOptions,
} from '../../model/external-auths.ts'
import { certificatesFlaw } from './external-auth-options.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_PEM = 65_536
const MAX_METADATA = 262_144
const MAX_CONTEXTS = 16
const orNull = (description: string, maxLength: number) =>
  Type.Union([Type.String({ minLength: 1, maxLength }), Type.Null()], { description })
const attribute = (description: string) =>
  Type.Union([Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_;:./-]{0,127}$' }), Type.Null()], {
    description,
  })

export const Saml = partial(
  exact({
    idp_metadata: orNull('XML of the metadata of the identity provider', MAX_METADATA),
    idp_metadata_url: orNull(
      'https URL of these, which are read anew every hour; in place of idp_metadata',
      1024,
    ),
    metadata_certificates: orNull(
      'PEM; one of them has to sign the metadata; null: they need no signature',
      MAX_PEM,
    ),
    ca_certificates: orNull("PEM of the authorities for idp_metadata_url; null: the system's", MAX_PEM),
    entity_id: orNull(
      'entityID of the identity provider, with sso_url and certificates; in place of metadata',
      1024,
    ),
    sso_url: orNull('URL for sign-ins', 1024),
    slo_url: orNull('URL for sign-outs, by redirect; null: none', 1024),
    certificates: orNull(
      'PEM of the certificates by which the identity provider signs: RSA, 2048 bits at least',
      MAX_PEM,
    ),
    binding: oneOf(SAML_BINDINGS, 'of requests: redirect unless given, or post, a page with a button'),
    name_id_format: oneOf(SAML_NAME_ID_FORMATS, 'that is asked for; persistent unless given'),
    user_attribute: attribute('attribute with the name of the person; null: the NameID'),
    id_attribute: attribute('attribute that is never given to another person; null: a persistent NameID'),
    authn_contexts: Type.Array(Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\s\\p{Cc}]+$' }), {
      maxItems: MAX_CONTEXTS,
      description: 'AuthnContextClassRef, one of which is asked for and needed; empty: any',
    }),
    force_authn: Type.Boolean({
      description: 'whether persons prove themselves although they have a session there; false unless given',
    }),
    idp_initiated: Type.Boolean({
      description: 'whether sign-ins may begin at the identity provider; false unless given',
    }),
    require_encryption: Type.Boolean({
      description: 'whether assertions that are not encrypted are refused; false unless given',
    }),
    clock_skew: Type.Integer({
      minimum: 0,
      maximum: 300,
      description: 'seconds by which clocks may differ; 60 unless given',
    }),
    logout_ends_sessions: Type.Boolean({
      description:
        'whether a sign-out at the identity provider ends sessions and checkouts, too; true unless given',
    }),
    sign_in_lifetime: Type.Integer({
      minimum: 1,
      maximum: 720,
      description:
        'minutes for which a sign-in counts, with all that rests on it; the identity provider may say less (SessionNotOnOrAfter); 480 unless given',
    }),
    own_certificate: orNull(
      'PEM of the certificate of private_key, for a pair of your own; made otherwise',
      MAX_PEM,
    ),
    next_certificate: orNull(
      'PEM of the certificate of next_private_key, which the metadata show, too',
      MAX_PEM,
    ),
  }),
)
type Body = Static<typeof Saml>

/** Returns the options as they will be, with our certificate `own` if none is given. @throws ApiError `invalid_field` */
export async function samlOptionsOf(
  body: Body,
  old: SamlOptions | undefined,
  own: string,
  now: number,
): Promise<SamlOptions> {
  const texts = {
    metadataCertificates: kept(body.metadata_certificates, old?.metadataCertificates),
    caCertificates: kept(body.ca_certificates, old?.caCertificates),
    userAttribute: kept(body.user_attribute, old?.userAttribute),
    idAttribute: kept(body.id_attribute, old?.idAttribute),
    nextCertificate: kept(body.next_certificate, old?.nextCertificate),
  }
  const options: SamlOptions = {
    idp: idpOf(body, old?.idp),
    binding: body.binding ?? old?.binding ?? 'redirect',
    nameIdFormat: body.name_id_format ?? old?.nameIdFormat ?? 'persistent',
    authnContexts: body.authn_contexts ?? old?.authnContexts ?? [],
    forceAuthn: body.force_authn ?? old?.forceAuthn ?? false,
    idpInitiated: body.idp_initiated ?? old?.idpInitiated ?? false,
    requireEncryption: body.require_encryption ?? old?.requireEncryption ?? false,
    clockSkew: body.clock_skew ?? old?.clockSkew ?? 60,
    logoutEndsSessions: body.logout_ends_sessions ?? old?.logoutEndsSessions ?? true,
    lifetime: body.sign_in_lifetime ?? old?.lifetime ?? 480,
    certificate: body.own_certificate ?? own,
    ...(Object.fromEntries(
      Object.entries(texts).filter(([, text]) => text !== undefined),
    ) as Partial<SamlOptions>),
  }
  check('saml/metadata_certificates', signersFlaw(options.metadataCertificates))
  check('saml/ca_certificates', certificatesFlaw(options.caCertificates))
  const isNameless = options.nameIdFormat === 'transient' && options.userAttribute === undefined
  check(
    'saml/user_attribute',
    isNameless ? 'a transient NameID names nobody twice: say the attribute' : undefined,
  )
  if ('metadata' in options.idp) await checkMetadata(options, options.idp.metadata, now)
  return options
}

const WAYS = 'expected one of idp_metadata, idp_metadata_url, and entity_id with sso_url and certificates'

/** @throws ApiError `invalid_field` unless the identity provider is said in one way */
function idpOf(body: Body, old: SamlIdp | undefined): SamlIdp {
  const before = {
    metadata: old && 'metadata' in old ? old.metadata : undefined,
    metadataUrl: old && 'metadataUrl' in old ? old.metadataUrl : undefined,
    ...(old && 'entityId' in old ? old : {}),
  } as {
    metadata?: string
    metadataUrl?: string
    entityId?: string
    ssoUrl?: string
    sloUrl?: string
    certificates?: string
  }
  const metadata = kept(body.idp_metadata, before.metadata)
  const metadataUrl = kept(body.idp_metadata_url, before.metadataUrl)
  const entityId = kept(body.entity_id, before.entityId)
  const given = [metadata, metadataUrl, entityId].filter((one) => one !== undefined)
  check('saml/idp_metadata', given.length === 1 ? undefined : WAYS)
  if (metadata !== undefined) return { metadata }
  if (metadataUrl !== undefined) {
    const isHttps = URL.parse(metadataUrl)?.protocol === 'https:' && endpointFlaw(metadataUrl) === undefined
    check('saml/idp_metadata_url', isHttps ? undefined : 'expected an https URL')
    return { metadataUrl }
  }
  const ssoUrl = kept(body.sso_url, before.ssoUrl) ?? ''
  const sloUrl = kept(body.slo_url, before.sloUrl)
  const certificates = kept(body.certificates, before.certificates) ?? ''
  check('saml/sso_url', endpointFlaw(ssoUrl))
  if (sloUrl !== undefined) check('saml/slo_url', endpointFlaw(sloUrl))
  check('saml/certificates', signersFlaw(certificates))
  return { entityId: entityId!, ssoUrl, certificates, ...(sloUrl !== undefined && { sloUrl }) }
}

async function checkMetadata(options: SamlOptions, metadata: string, now: number): Promise<void> {
  const { binding, metadataCertificates } = options
  const signers = metadataCertificates === undefined ? [] : certificatesOf(metadataCertificates)
  const flaw = await readMetadata(metadata, { binding, signers, now }).then(
    () => undefined,
    (error: Error) => {
      if (error instanceof MetadataError) return error.message
      throw error
    },
  )
  check('saml/idp_metadata', flaw)
}

export function samlShown(options: SamlOptions) {
  const { idp } = options
  const known = 'entityId' in idp ? idp : undefined
  return {
    idp_metadata: 'metadata' in idp ? idp.metadata : null,
    idp_metadata_url: 'metadataUrl' in idp ? idp.metadataUrl : null,
    metadata_certificates: options.metadataCertificates ?? null,
    ca_certificates: options.caCertificates ?? null,
    entity_id: known?.entityId ?? null,
    sso_url: known?.ssoUrl ?? null,
    slo_url: known?.sloUrl ?? null,
    certificates: known?.certificates ?? null,
    binding: options.binding,
    name_id_format: options.nameIdFormat,
    user_attribute: options.userAttribute ?? null,
    id_attribute: options.idAttribute ?? null,
    authn_contexts: options.authnContexts,
    force_authn: options.forceAuthn,
    idp_initiated: options.idpInitiated,
    require_encryption: options.requireEncryption,
    clock_skew: options.clockSkew,
    logout_ends_sessions: options.logoutEndsSessions,
    sign_in_lifetime: options.lifetime,
    own_certificate: options.certificate,
    next_certificate: options.nextCertificate ?? null,
  }
}

/** Returns where an identity provider is: its metadata, or else its place for sign-ins. */
export async function idpServer({ idp, binding }: SamlOptions, now: number): Promise<ExternalServer> {
  const url =
    'metadataUrl' in idp
      ? idp.metadataUrl
      : 'ssoUrl' in idp
        ? idp.ssoUrl
        : (await readMetadata(idp.metadata, { binding, signers: [], now })).signIn.url
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), ...(port !== '' && { port: Number(port) }) }
}

function signersFlaw(pem: string | undefined): string | undefined {
  if (pem === undefined) return undefined
  try {
    certificatesOf(pem)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function kept<T>(given: T | null | undefined, before: T | undefined): T | undefined {
  return given === undefined ? before : (given ?? undefined)
}
