/** TSCredentials (MS-CSSP 2.2.1.2): the credentials that a client sends once both sides are authenticated. */
import type { Buffer } from 'node:buffer'
import { Secret } from '../../../src/model/secret.ts'
import { context, contextTag, DerReader, integer, octets, sequence, TAG } from '../../bytes/der.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { utf16Bytes, utf16Text } from '../codec/utf16.ts'
import { CredSspError } from '../gss/errors.ts'

export interface TsCredentials {
  /** Empty for a local account of the target. */
  domain: string
  user: string
  password: Secret
}

/** The kinds of credentials (2.2.1.2); 2 is a smart card, 6 Remote Credential Guard. */
const PASSWORD = 1
const WHAT = 'credssp: credentials'

/** The result has the password in clear text: the caller overwrites it after sealing. */
export function buildCredentials({ domain, user, password }: TsCredentials): Buffer {
  const secret = utf16Bytes(password.revealText())
  const inner = sequence(
    context(0, octets(utf16Bytes(domain))),
    context(1, octets(utf16Bytes(user))),
    context(2, octets(secret)),
  )
  const whole = sequence(context(0, integer(PASSWORD)), context(1, octets(inner)))
  secret.fill(0)
  inner.fill(0)
  return whole
}

/** Throws MalformedError, or CredSspError if the credentials are not a password. */
export function parseCredentials(bytes: Uint8Array): TsCredentials {
  const outer = new DerReader(bytes, WHAT).enter(TAG.SEQUENCE)
  const kind = outer.enter(contextTag(0)).uint32()
  if (kind !== PASSWORD) {
    throw new CredSspError(
      'delegation',
      `a password was expected from the client, found credentials of kind ${kind}`,
    )
  }
  const octetString = outer.enter(contextTag(1)).take(TAG.OCTET_STRING)
  const inner = new DerReader(octetString, WHAT).enter(TAG.SEQUENCE)
  const [domain, user, password] = [0, 1, 2].map((number) =>
    inner.enter(contextTag(number)).take(TAG.OCTET_STRING),
  )
  if (!inner.isAtEnd || !outer.isAtEnd) {
    throw new MalformedError(`${WHAT}: their end was expected, found more`)
  }
  return {
    domain: utf16Text(domain!),
    user: utf16Text(user!),
    password: Secret.of(utf16Text(password!)),
  }
}
