/**
 * The keys of recordings: one random key per session, wrapped with age for its recipients (the broker's own
 * identity is one like the others), and the folder of a session's recording.
 */
import { Buffer } from 'node:buffer'
import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { Secret } from '../../src/model/secret.ts'
import { encryptFor, type Recipient, x25519Recipient } from './age-file.ts'
import { RecordingError } from './format/error.ts'
import { type Metadata, signerMetadata } from './format/header.ts'
import { KEY_FILE_NAME, MAX_KEY_FILE, SESSION_KEY_LENGTH } from './format/limits.ts'
import type { RecordingGrant } from './grant.ts'
import { syncDirectory } from './session-file.ts'

/** Makes an age X25519 identity (`AGE-SECRET-KEY-1…`) for the broker's own use. */
export async function makeIdentity(): Promise<Secret> {
  return Secret.of(await generateX25519Identity())
}

/** Returns the recipient (`age1…`) of an identity. Throws if the identity is malformed. */
export function recipientOf(identity: Secret): Promise<string> {
  return identityToRecipient(identity.revealText())
}

/** Returns why a string from the configuration is not an age recipient, or undefined if it is one. */
export function recipientFault(recipient: string): string | undefined {
  try {
    new Encrypter().addRecipient(recipient)
    return undefined
  } catch {
    return `expected an age recipient (age1…), got ${JSON.stringify(recipient.slice(0, 80))}: make one with age-keygen`
  }
}

/** Limit of parsed recipients that are kept; a configuration has a few. */
const MAX_KNOWN = 64
const known = new Map<string, Recipient | undefined>()

/** Returns the recipient, or undefined if it is of another type than X25519. Throws if it is malformed. */
function recipientNamed(text: string): Recipient | undefined {
  if (known.has(text)) return known.get(text)
  new Encrypter().addRecipient(text)
  if (known.size >= MAX_KNOWN) known.clear()
  const recipient = x25519Recipient(text)
  known.set(text, recipient)
  return recipient
}

/** Wraps a session's key for each of the recipients: the content of `key.age`. */
export async function wrapKey(key: Uint8Array, recipients: readonly string[]): Promise<Uint8Array> {
  if (recipients.length === 0)
    throw new Error('expected at least one age recipient for a recording, got none')
  const parsed = recipients.map(recipientNamed)
  if (parsed.every((recipient) => recipient !== undefined)) return encryptFor(parsed, key)
  const encrypter = new Encrypter()
  for (const recipient of recipients) encrypter.addRecipient(recipient)
  return await encrypter.encrypt(key)
}

/**
 * Unwraps the session's key from `key.age` by the first of these identities that opens it. Throws
 * RecordingError: `wrong_key` if none of them is a recipient, `bad_key_file` if the file is malformed.
 */
export async function unwrapKey(wrapped: Uint8Array, ...identities: readonly Secret[]): Promise<Uint8Array> {
  if (wrapped.length > MAX_KEY_FILE) {
    throw new RecordingError(
      'bad_key_file',
      `expected at most ${MAX_KEY_FILE} bytes of wrapped key, got ${wrapped.length}`,
    )
  }
  const decrypter = new Decrypter()
  for (const identity of identities) decrypter.addIdentity(identity.revealText())
  let key: Uint8Array
  try {
    key = await decrypter.decrypt(wrapped)
  } catch (error) {
    const foreign = error instanceof Error && error.message.includes('no identity matched')
    throw foreign
      ? new RecordingError(
          'wrong_key',
          `this identity is not among the recipients of the recording's ${KEY_FILE_NAME}`,
        )
      : new RecordingError(
          'bad_key_file',
          `the recording's ${KEY_FILE_NAME} is malformed: it was changed or cut`,
        )
  }
  if (key.length === SESSION_KEY_LENGTH) return key
  throw new RecordingError(
    'bad_key_file',
    `expected a key of ${SESSION_KEY_LENGTH} bytes in ${KEY_FILE_NAME}, got ${key.length}`,
  )
}

/** Returns the folder of a session: `<root>/<YYYY>/<MM>/<DD>/<session>`, by the UTC day of its beginning. */
export function sessionDirectory(root: string, session: string, begin: number): string {
  if (!SESSION_NAME.test(session))
    throw new Error(`expected a session id of letters, digits, _ and -, got ${JSON.stringify(session)}`)
  const [year, month, day] = new Date(begin).toISOString().slice(0, 10).split('-')
  return join(root, year!, month!, day!, session)
}

/** Session names that are safe as a folder's name; the format itself allows any text. */
export const SESSION_NAME = /^[A-Za-z0-9_-]{1,64}$/

export interface Preparation {
  /** The recordings' folder. */
  root: string
  session: string
  /** Milliseconds since the epoch. */
  begin: number
  /** Age recipients. The broker's own is among them unless it may not open the recording. */
  recipients: readonly string[]
  /** The raw Ed25519 key that signs the checkpoints. */
  signer: Uint8Array
  /** User, addresses and target: readable by anyone that has the file. */
  metadata: Metadata
  /** Returns random bytes for a session's key. */
  random: (length: number) => Uint8Array
}

/** A recording that can begin. */
export interface Prepared {
  grant: RecordingGrant
  /** The session's folder, an absolute path, with `key.age` in it. */
  directory: string
}

/**
 * Makes the session's folder with `key.age` in it, and returns the grant for its writer. The key's name in the
 * folder is on the disk when the recording's file has been created.
 */
export async function prepareRecording(preparation: Preparation): Promise<Prepared> {
  const { root, session, begin, signer } = preparation
  const directory = sessionDirectory(root, session, begin)
  const key = preparation.random(SESSION_KEY_LENGTH)
  const wrapped = await wrapKey(key, preparation.recipients)
  const made = await mkdir(directory, { recursive: true, mode: 0o700 })
  const file = await open(join(directory, KEY_FILE_NAME), 'wx', 0o600)
  try {
    await file.writeFile(Buffer.from(wrapped))
    await file.sync()
  } finally {
    await file.close()
  }
  // The folder itself is synced with the recording's file in it: without that the key opens nothing.
  for (let path = directory; made !== undefined && path !== dirname(made); path = dirname(path))
    await syncDirectory(dirname(path))
  const fields = { session, begin: new Date(begin).toISOString(), ...signerMetadata(signer) }
  return { directory, grant: { key, metadata: { ...preparation.metadata, ...fields } } }
}
