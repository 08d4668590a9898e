/** Errors of SCIM requests (RFC 7644 section 3.12). */

/** Keywords of RFC 7644 table 9 that are used here. */
export type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness'

const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error'

/** The message says the expected, the actual, and the remedy. */
export class ScimError extends Error {
  override name = 'ScimError'
  readonly status: number
  readonly scimType: ScimType | undefined

  constructor(status: number, scimType: ScimType | undefined, message: string) {
    super(message)
    this.status = status
    this.scimType = scimType
  }
}

/** Makes an error of status 400. */
export function badRequest(scimType: ScimType, message: string): ScimError {
  return new ScimError(400, scimType, message)
}

/** Returns the body of an answer that is not a success. */
export function scimErrorBody(status: number, scimType: ScimType | undefined, detail: string): object {
  return { schemas: [ERROR_SCHEMA], status: String(status), ...(scimType && { scimType }), detail }
}
