/** Common parts of all routes of SCIM. */
import { Type } from 'typebox'

/** Parameters of a URL; providers add others, which mean nothing here. */
export type Queried = Readonly<Record<string, unknown>>

const Query = Type.Object({}, { additionalProperties: true })

/** The protocol describes itself at /Schemas, and is no part of the API's reference. */
export const HIDDEN = { hide: true, querystring: Query }
