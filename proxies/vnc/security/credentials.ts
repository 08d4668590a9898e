/** User name and password as sent by the types with both. */
import { Buffer } from 'node:buffer'
import { MAX_TYPED_PASSWORD_BYTES } from '../../../src/model/logon.ts'
import { bounded, type Channel, readUint32, uint32 } from './channel.ts'

export interface UserPassword {
  user: string
  password: string
}

/** Bytes of a user name: more than any login string has, so that a longer one gets a proper error. */
export const MAX_USER_BYTES = 1024
/** One more than the limit, so that a longer one gets a proper error. */
export const MAX_PASSWORD_BYTES = MAX_TYPED_PASSWORD_BYTES + 1

/** Plain, and Tight's Unix login: two lengths of four bytes, then both. Throws MalformedError. */
export async function readPlain(channel: Channel): Promise<UserPassword> {
  const userLength = bounded(await readUint32(channel), MAX_USER_BYTES, 'a length of the user name')
  const passwordLength = bounded(await readUint32(channel), MAX_PASSWORD_BYTES, 'a length of the password')
  const user = textOf(await channel.read(userLength))
  return { user, password: textOf(await channel.read(passwordLength)) }
}

export function plainBytes({ user, password }: UserPassword): Buffer {
  const [userBytes, passwordBytes] = [Buffer.from(user, 'utf8'), Buffer.from(password, 'utf8')]
  return Buffer.concat([uint32(userBytes.length), uint32(passwordBytes.length), userBytes, passwordBytes])
}

/** Decodes UTF-8, or Latin-1 if that is invalid, as older viewers send it. */
export function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return Buffer.from(bytes).toString('latin1')
  }
}

/** Returns a field of fixed size with the text and a zero; the rest is from `padding`. */
export function fieldOf(text: string, padding: Uint8Array): Buffer {
  const field = Buffer.from(padding)
  const bytes = Buffer.from(text, 'utf8').subarray(0, field.length - 1)
  bytes.copy(field)
  field[bytes.length] = 0
  return field
}

/** Returns the text before the zero, or all of it if there is none. */
export function textOfField(field: Uint8Array): string {
  const end = field.indexOf(0)
  return textOf(end === -1 ? field : field.subarray(0, end))
}
