/** Refusals of SAML messages: each check has a name, by which its refusal is known in the audit log. */

/** In the order in which a response meets them. */
export const SAML_CHECKS = [
  'form',
  'size',
  'xml',
  'doctype',
  'processing_instruction',
  'comment',
  'entity',
  'depth',
  'nodes',
  'root',
  'version',
  'id',
  'assertions',
  'signature_place',
  'signature_form',
  'algorithm',
  'transform',
  'reference',
  'unsigned',
  'signature',
  'encryption',
  'destination',
  'issuer',
  'status',
  'in_response_to',
  'issued_at',
  'subject',
  'confirmation',
  'recipient',
  'expiry',
  'not_before',
  'conditions',
  'audience',
  'authn_statement',
  'authn_context',
  'session_end',
  'attribute',
  'name',
  'replay',
] as const
export type SamlCheck = (typeof SAML_CHECKS)[number]

/** A message that one of the checks refuses. Its text is for administrators. */
export class SamlError extends Error {
  override name = 'SamlError'
  readonly check: SamlCheck

  constructor(check: SamlCheck, detail: string) {
    super(`SAML message refused by ${check}: ${detail}`)
    this.check = check
  }
}

const MAX_SHOWN = 100

/** Quotes what came, cut short. */
export function quoted(value: string | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(value.slice(0, MAX_SHOWN))
}
