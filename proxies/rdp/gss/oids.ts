/** Object identifiers in DER, tag and length included. */
import { Buffer } from 'node:buffer'

/** 1.3.6.1.4.1.311.2.2.10 */
export const NTLM_OID = Buffer.from('060a2b06010401823702020a', 'hex')
