/** Encrypted assertions (XML Encryption 1.1): opens them with one of the keys of this service provider. */
import { Buffer } from 'node:buffer'
import { constants, createDecipheriv, type KeyObject, privateDecrypt } from 'node:crypto'
import { base64Of } from './base64.ts'
import { quoted, SamlError } from './error.ts'
import { childrenOf, elementsOf, isElement } from './names.ts'
import { decodeUtf8, type XmlElement } from './xml.ts'

const IV = { gcm: 12, cbc: 16 } as const
const TAG = 16

interface Cipher {
  name: 'aes-128-gcm' | 'aes-256-gcm' | 'aes-128-cbc' | 'aes-256-cbc'
  mode: keyof typeof IV
  keyBytes: number
}
const CIPHERS: Readonly<Record<string, Cipher>> = {
  'http://www.w3.org/2009/xmlenc11#aes128-gcm': { name: 'aes-128-gcm', mode: 'gcm', keyBytes: 16 },
  'http://www.w3.org/2009/xmlenc11#aes256-gcm': { name: 'aes-256-gcm', mode: 'gcm', keyBytes: 32 },
  'http://www.w3.org/2001/04/xmlenc#aes128-cbc': { name: 'aes-128-cbc', mode: 'cbc', keyBytes: 16 },
  'http://www.w3.org/2001/04/xmlenc#aes256-cbc': { name: 'aes-256-cbc', mode: 'cbc', keyBytes: 32 },
}
/** RSA-OAEP only: PKCS#1 v1.5 would answer to Bleichenbacher's question. */
const OAEP_SHA1_MGF = 'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p'
const OAEP = 'http://www.w3.org/2009/xmlenc11#rsa-oaep'
const OAEP_HASHES: Readonly<Record<string, string>> = {
  'http://www.w3.org/2000/09/xmldsig#sha1': 'sha1',
  'http://www.w3.org/2001/04/xmlenc#sha256': 'sha256',
}
const MASKS: Readonly<Record<string, string>> = {
  'http://www.w3.org/2009/xmlenc11#mgf1sha1': 'sha1',
  'http://www.w3.org/2009/xmlenc11#mgf1sha256': 'sha256',
}

/**
 * Returns the text within an EncryptedAssertion. `isVerified`: whether a verified signature covers it; without one, only
 * ciphers that show a change of the text are opened, since anybody can encrypt for us and try.
 * @throws SamlError, which is the same whatever the key or the cipher has found
 */
export function decrypted(element: XmlElement, keys: readonly KeyObject[], isVerified: boolean): string {
  const data = only(element, 'encryption', 'EncryptedData')
  const encryptedKeys = [...elementsOf(element)].filter((one) => isElement(one, 'encryption', 'EncryptedKey'))
  const [encryptedKey, another] = encryptedKeys
  if (!encryptedKey || another)
    throw new SamlError('encryption', `expected one EncryptedKey, got ${encryptedKeys.length}`)
  const cipher = cipherOf(data, isVerified)
  const hash = keyHashOf(encryptedKey)
  const [wrapped, content] = [cipherValueOf(encryptedKey), cipherValueOf(data)]
  for (const key of keys) {
    try {
      const oaep = { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: hash }
      return decodeUtf8(open(cipher, privateDecrypt(oaep, wrapped), content))
    } catch {
      // The next key may open it.
    }
  }
  throw new SamlError('encryption', 'no key of this service provider opens it')
}

function cipherOf(data: XmlElement, isVerified: boolean): Cipher {
  const name = only(data, 'encryption', 'EncryptionMethod').attributes.get('Algorithm')
  const cipher = name === undefined ? undefined : CIPHERS[name]
  if (!cipher) throw new SamlError('encryption', `expected AES with 128 or 256 bits, got ${quoted(name)}`)
  if (cipher.mode === 'cbc' && !isVerified)
    throw new SamlError(
      'encryption',
      'CBC is opened in a signed response only: have responses signed, or use AES-GCM',
    )
  return cipher
}

/** Returns the hash of RSA-OAEP, which is that of its mask as well. */
function keyHashOf(encryptedKey: XmlElement): string {
  const method = only(encryptedKey, 'encryption', 'EncryptionMethod')
  const name = method.attributes.get('Algorithm')
  if (name !== OAEP && name !== OAEP_SHA1_MGF)
    throw new SamlError('encryption', `expected a key by RSA-OAEP, got ${quoted(name)}`)
  const part = (local: string) =>
    method.children.find((child) => child.local === local)?.attributes.get('Algorithm')
  const [digest, mask] = [part('DigestMethod'), part('MGF')]
  const hash = digest === undefined ? 'sha1' : OAEP_HASHES[digest]
  const maskHash = mask === undefined || name === OAEP_SHA1_MGF ? 'sha1' : MASKS[mask]
  if (hash === undefined || hash !== maskHash)
    throw new SamlError('encryption', 'expected RSA-OAEP with SHA-1 or SHA-256, the same for digest and mask')
  return hash
}

function open(cipher: Cipher, key: Buffer, content: Buffer): Buffer {
  if (key.length !== cipher.keyBytes) throw new RangeError('the key has another length')
  const iv = content.subarray(0, IV[cipher.mode])
  if (cipher.mode === 'cbc') return openCbc(cipher.name, key, iv, content.subarray(iv.length))
  if (content.length < iv.length + TAG) throw new RangeError('it is too short')
  const decipher = createDecipheriv(cipher.name as 'aes-128-gcm', key, iv, { authTagLength: TAG })
  decipher.setAuthTag(content.subarray(-TAG))
  return Buffer.concat([decipher.update(content.subarray(iv.length, -TAG)), decipher.final()])
}

/** Padding of XML Encryption: its last byte says its length, the others are any. */
function openCbc(name: string, key: Buffer, iv: Buffer, content: Buffer): Buffer {
  const decipher = createDecipheriv(name, key, iv).setAutoPadding(false)
  const padded = Buffer.concat([decipher.update(content), decipher.final()])
  const padding = padded.at(-1) ?? 0
  if (padding < 1 || IV.cbc < padding) throw new RangeError('the padding is wrong')
  return padded.subarray(0, -padding)
}

function cipherValueOf(element: XmlElement): Buffer {
  const value = only(only(element, 'encryption', 'CipherData'), 'encryption', 'CipherValue')
  if (value.children.length > 0) throw new SamlError('encryption', 'CipherValue holds further elements')
  return base64Of(value.text, 'encryption')
}

function only(element: XmlElement, ns: 'encryption', local: string): XmlElement {
  const [one, another] = childrenOf(element, ns, local)
  if (!one || another) throw new SamlError('encryption', `expected one ${local} in ${element.local}`)
  return one
}
