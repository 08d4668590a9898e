/** Metadata of this service provider, for the identity provider to read. */
import { BINDINGS, NS } from './names.ts'
import { element, type Xml } from './write.ts'

export interface OwnMetadata {
  entityId: string
  acs: string
  slo: string
  /** PEM: the one in use first, then the next one. */
  certificates: readonly string[]
  nameIdFormat?: string
}

/** URLs of this service provider for an external authentication. `base`: the origin that browsers know. */
export function ownUrls(base: string, name: string): { entityId: string; acs: string; slo: string } {
  const at = `${base}/signin/saml/${encodeURIComponent(name)}`
  return { entityId: `${at}/metadata`, acs: `${at}/acs`, slo: `${at}/slo` }
}

export function ownMetadata({ entityId, acs, slo, certificates, nameIdFormat }: OwnMetadata): string {
  const role = element(
    'md:SPSSODescriptor',
    {
      protocolSupportEnumeration: NS.protocol,
      AuthnRequestsSigned: 'true',
      WantAssertionsSigned: 'true',
    },
    [
      ...certificates.flatMap((pem) => [keyDescriptor('signing', pem), keyDescriptor('encryption', pem)]),
      element('md:SingleLogoutService', { Binding: BINDINGS.redirect, Location: slo }),
      element('md:SingleLogoutService', { Binding: BINDINGS.post, Location: slo }),
      nameIdFormat === undefined ? undefined : element('md:NameIDFormat', {}, [nameIdFormat]),
      element('md:AssertionConsumerService', {
        Binding: BINDINGS.post,
        Location: acs,
        index: '0',
        isDefault: 'true',
      }),
    ],
  )
  const root = element('md:EntityDescriptor', { 'xmlns:md': NS.metadata, entityID: entityId }, [role])
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root.xml}\n`
}

/** Ciphers that are opened, the best first, for identity providers that choose by them. */
const METHODS = [
  'http://www.w3.org/2009/xmlenc11#aes256-gcm',
  'http://www.w3.org/2009/xmlenc11#aes128-gcm',
  'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p',
]

function keyDescriptor(use: 'signing' | 'encryption', pem: string): Xml {
  const base64 = pem.replaceAll(/-----[A-Z ]+-----|\s+/g, '')
  const data = element('ds:X509Data', {}, [element('ds:X509Certificate', {}, [base64])])
  const methods =
    use === 'encryption' ? METHODS.map((Algorithm) => element('md:EncryptionMethod', { Algorithm })) : []
  return element('md:KeyDescriptor', { use }, [
    element('ds:KeyInfo', { 'xmlns:ds': NS.signature }, [data]),
    ...methods,
  ])
}
