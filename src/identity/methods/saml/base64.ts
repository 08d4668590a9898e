/** Base64 as SAML messages have it: with breaks of lines, and nothing else that a decoder would leave out. */
import { Buffer } from 'node:buffer'
import { type SamlCheck, SamlError } from './error.ts'

/** @throws SamlError */
export function base64Of(text: string, check: SamlCheck): Buffer {
  const plain = text.replaceAll(/[ \t\r\n]+/g, '')
  if (plain === '' || plain.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(plain))
    throw new SamlError(check, 'expected base64')
  return Buffer.from(plain, 'base64')
}
