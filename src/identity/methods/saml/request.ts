/** Messages of this service provider: requests to sign in and out, and answers to a sign-out, all of them signed. */
import { Buffer } from 'node:buffer'
import { sign } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { signXml } from '@node-saml/node-saml/lib/xml.js'
import type { NameId } from './assertion.ts'
import { BINDINGS, NS, STATUS_SUCCESS } from './names.ts'
import { element, type Xml } from './write.ts'

export const RSA_SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256'
/** Bytes of a RelayState (SAML 2.0 Bindings, 3.4.3). */
export const MAX_RELAY_STATE = 80
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#'
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature'

export interface Sender {
  /** Our entityID. */
  entityId: string
  /** PEM of our key, and of its certificate. */
  key: string
  certificate: string
}

export interface Sending {
  /** ID of the message. */
  id: string
  /** Milliseconds since the epoch. */
  now: number
  /** URL of the identity provider. */
  destination: string
}

export interface SignInRequest extends Sending {
  /** Our URL for the response. */
  acs: string
  /** Format of the NameID; absent: any. */
  nameIdFormat?: string
  /** AuthnContextClassRef, one of which is needed; empty: any is. */
  authnContexts: readonly string[]
  /** Whether persons have to prove themselves although they have a session there. */
  forceAuthn: boolean
}

const PREFIXES = { 'xmlns:samlp': NS.protocol, 'xmlns:saml': NS.assertion }

/** Returns an AuthnRequest, which is not yet signed. */
export function signInRequest(sender: Pick<Sender, 'entityId'>, request: SignInRequest): string {
  const { authnContexts, nameIdFormat } = request
  const contexts = authnContexts.map((one) => element('saml:AuthnContextClassRef', {}, [one]))
  return message('samlp:AuthnRequest', sender, request, {
    attributes: {
      ProtocolBinding: BINDINGS.post,
      AssertionConsumerServiceURL: request.acs,
      ForceAuthn: request.forceAuthn ? 'true' : undefined,
    },
    children: [
      element('samlp:NameIDPolicy', { Format: nameIdFormat, AllowCreate: 'true' }),
      contexts.length > 0
        ? element('samlp:RequestedAuthnContext', { Comparison: 'exact' }, contexts)
        : undefined,
    ],
  })
}

/** Returns a LogoutRequest for a session, which is not yet signed. */
export function signOutRequest(
  sender: Pick<Sender, 'entityId'>,
  sending: Sending & { nameId: NameId; sessionIndex?: string },
): string {
  const { value, format, nameQualifier, spNameQualifier } = sending.nameId
  const name = { NameQualifier: nameQualifier, SPNameQualifier: spNameQualifier, Format: format }
  const { sessionIndex } = sending
  return message('samlp:LogoutRequest', sender, sending, {
    attributes: {},
    children: [
      element('saml:NameID', name, [value]),
      sessionIndex === undefined ? undefined : element('samlp:SessionIndex', {}, [sessionIndex]),
    ],
  })
}

/** Returns the answer to a LogoutRequest that was obeyed, which is not yet signed. */
export function signOutResponse(
  sender: Pick<Sender, 'entityId'>,
  sending: Sending & { inResponseTo: string },
): string {
  return message('samlp:LogoutResponse', sender, sending, {
    attributes: { InResponseTo: sending.inResponseTo },
    children: [element('samlp:Status', {}, [element('samlp:StatusCode', { Value: STATUS_SUCCESS })])],
  })
}

function message(
  name: string,
  { entityId }: Pick<Sender, 'entityId'>,
  { id, now, destination }: Sending,
  { attributes, children }: { attributes: Record<string, string | undefined>; children: (Xml | undefined)[] },
): string {
  const own = { ID: id, Version: '2.0', IssueInstant: new Date(now).toISOString(), Destination: destination }
  const issuer = element('saml:Issuer', {}, [entityId])
  return element(name, { ...PREFIXES, ...own, ...attributes }, [issuer, ...children]).xml
}

export type Parameter = 'SAMLRequest' | 'SAMLResponse'

/** Returns the URL of a message by the redirect binding, signed (SAML 2.0 Bindings, 3.4.4.1). */
export function redirectUrl(
  sender: Pick<Sender, 'key'>,
  { destination, parameter, xml, relayState }: Posted,
): string {
  const text = deflateRawSync(xml).toString('base64')
  const signed = [
    [parameter, text],
    ...(relayState === undefined ? [] : [['RelayState', relayState]]),
    ['SigAlg', RSA_SHA256],
  ]
    .map(([name, value]) => `${name}=${encodeURIComponent(value!)}`)
    .join('&')
  const signature = sign('sha256', Buffer.from(signed), sender.key).toString('base64')
  const separator = destination.includes('?') ? '&' : '?'
  return `${destination}${separator}${signed}&Signature=${encodeURIComponent(signature)}`
}

export interface Posted {
  destination: string
  parameter: Parameter
  xml: string
  relayState?: string
}

/** Returns the fields of a form that posts a signed message. */
export function postFields(
  sender: Pick<Sender, 'key' | 'certificate'>,
  { parameter, xml, relayState }: Pick<Posted, 'parameter' | 'xml' | 'relayState'>,
): [name: string, value: string][] {
  const signed = signXml(
    xml,
    '/*',
    { reference: '/*/*[local-name(.)="Issuer"]', action: 'after' },
    {
      privateKey: sender.key,
      publicCert: sender.certificate,
      signatureAlgorithm: 'sha256',
      digestAlgorithm: 'sha256',
      xmlSignatureTransforms: [ENVELOPED, EXCLUSIVE],
    },
  )
  const state: [string, string][] = relayState === undefined ? [] : [['RelayState', relayState]]
  return [[parameter, Buffer.from(signed).toString('base64')], ...state]
}
