/**
 * The broker's side of the recordings: the keys that sign checkpoints and open containers, the folder of each
 * session, and the recovery at the start after a crash. Proxies make the recordings
 * (recordings/container/writer.ts) and send them here piece by piece; they never see these keys.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { Noted } from '../../recordings/container/evidence.ts'
import { parseStatement, type Statement } from '../../recordings/container/format/checkpoint.ts'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { requireSpace } from '../../recordings/container/free-space.ts'
import {
  makeIdentity,
  type Prepared,
  prepareRecording,
  recipientOf,
  unwrapKey,
} from '../../recordings/container/keys.ts'
import type { Appended } from '../../recordings/container/recording-file.ts'
import { endOfFile } from '../../recordings/container/session-file.ts'
import type { Bucket } from '../../recordings/storage/bucket/bucket.ts'
import type { SessionRecord } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { RecordingFiles } from './files.ts'
import { SignedRecording } from './signed.ts'

/** Settings with the broker's own recording keys, sealed. */
const SIGNING_KEY = 'recordings.signing_key'
const IDENTITY = 'recordings.identity'
/** Former keys. */
const FORMER = 'recordings.former_keys'

export interface RecordingKeys {
  /** Ed25519 key that signs checkpoints. */
  signing: KeyObject
  /** Its raw public key, 32 bytes. */
  signer: Buffer
  /** Raw public keys of valid signatures: the one above, then its predecessors. */
  trusted: readonly Buffer[]
  /**
   * The broker's own age identities, which open every session's key: the current one, then the former ones.
   */
  identities: readonly Secret[]
  /** `age1…` of the current identity. */
  recipient: string
}

/** Returns the broker's recording keys, and makes them at the first start. */
export async function openRecordingKeys(settings: SettingRepository, vault: Vault): Promise<RecordingKeys> {
  const pem = await sealedSetting(settings, vault, SIGNING_KEY, async () =>
    Secret.of(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string),
  )
  const identity = await sealedSetting(settings, vault, IDENTITY, makeIdentity)
  const signing = createPrivateKey(pem.reveal())
  pem.wipe()
  const signer = rawPublicKey(signing)
  const former = await formerKeys(settings, vault)
  return {
    signing,
    signer,
    trusted: [signer, ...former.signers.map((key) => Buffer.from(key, 'base64'))],
    identities: [identity, ...former.identities.map((text) => Secret.of(text))],
    recipient: await recipientOf(identity),
  }
}

/**
 * Makes a new signing key and a new identity. The old public key stays trusted for its signatures, and the
 * old identity still opens the keys sealed to it. `settings` are those of a transaction.
 */
export async function renewRecordingKeys(settings: SettingRepository, vault: Vault): Promise<RecordingKeys> {
  const { signer, identities } = await openRecordingKeys(settings, vault)
  const former = await formerKeys(settings, vault)
  const all: FormerKeys = {
    signers: [signer.toString('base64'), ...former.signers],
    identities: [identities[0]!.revealText(), ...former.identities],
  }
  await settings.set(FORMER, vault.seal(settingPlace(FORMER), Secret.of(JSON.stringify(all))))
  await settings.remove(SIGNING_KEY)
  await settings.remove(IDENTITY)
  return await openRecordingKeys(settings, vault)
}

/** Former keys, newest first. */
interface FormerKeys {
  /** Raw public keys in base64. */
  signers: string[]
  identities: string[]
}

async function formerKeys(settings: SettingRepository, vault: Vault): Promise<FormerKeys> {
  const sealed = await settings.get(FORMER)
  if (!sealed) return { signers: [], identities: [] }
  const body = vault.open(settingPlace(FORMER), sealed)
  try {
    return JSON.parse(body.revealText())
  } finally {
    body.wipe()
  }
}

const settingPlace = (name: string) => ({ table: 'settings', id: name, field: 'value' })

/**
 * Returns a secret of the settings, made once; if two processes start at a time, the first one's secret is
 * used.
 */
async function sealedSetting(
  settings: SettingRepository,
  vault: Vault,
  name: string,
  make: () => Promise<Secret>,
): Promise<Secret> {
  const place = settingPlace(name)
  const stored = await settings.get(name)
  if (stored) return vault.open(place, stored)
  const fresh = await make()
  const kept = await settings.setOnce(name, vault.seal(place, fresh))
  fresh.wipe()
  return vault.open(place, kept)
}

/** Milliseconds that the disk may need for the last bytes of a recording. */
const FILE_END_MS = 10_000

/** A recording that is being written. */
export interface OpenRecording {
  directory: string
  signed: SignedRecording
}

export interface RecordingServiceOptions {
  /** The recordings' folder. */
  root: string
  keys: RecordingKeys
  /** Age recipients beside the broker's own. */
  recipients: readonly string[]
  /** Set if the broker can open the recordings that it makes. */
  brokerKey: boolean
  /** Free space, in bytes, below which nothing is recorded. */
  minimumFree: number
  /** Object store for copies of the recordings. Absent if there is none. */
  bucket?: Bucket
  /** Milliseconds since any moment, never decreasing. Absent for the system's clock. */
  monotonic?: () => number
}

export class RecordingService {
  readonly #options: RecordingServiceOptions
  /** Recordings that were prepared and are not closed yet, by session. */
  readonly #open = new Map<string, OpenRecording>()
  readonly #files: RecordingFiles
  /** Called after a recording's folder has been created. */
  onBegun: ((session: string, begin: number) => void) | undefined

  constructor(options: RecordingServiceOptions) {
    this.#options = options
    this.#files = new RecordingFiles({ minimumFree: options.minimumFree })
  }

  get root(): string {
    return this.#options.root
  }

  get keys(): RecordingKeys {
    return this.#options.keys
  }

  get bucket(): Bucket | undefined {
    return this.#options.bucket
  }

  /** Makes the folder, with mode 0700. */
  async start(): Promise<void> {
    await mkdir(this.#options.root, { recursive: true, mode: 0o700 })
  }

  /**
   * Makes the session's folder with its wrapped key. Throws the disk's errors, and if there is too little
   * room.
   */
  async prepare(
    session: string,
    begin: number,
    metadata: Record<string, string | number>,
  ): Promise<Prepared> {
    const { root, keys, recipients, brokerKey, minimumFree } = this.#options
    await requireSpace(root, minimumFree)
    const prepared = await prepareRecording({
      root,
      session,
      begin,
      recipients: brokerKey ? [keys.recipient, ...recipients] : recipients,
      signer: keys.signer,
      metadata,
      random: randomBytes,
    })
    this.#open.set(session, { directory: prepared.directory, signed: new SignedRecording() })
    this.onBegun?.(session, begin)
    return prepared
  }

  /**
   * Creates the file of a prepared recording with its first bytes. Throws the disk's errors, and if there is
   * too little room.
   */
  async begin(session: string, parts: readonly Uint8Array[]): Promise<void> {
    await this.#files.begin(session, this.#requireOpen(session).directory, parts)
  }

  /** Appends to the file of a running recording (recordings/container/recording-file.ts). */
  append(session: string, offset: number, parts: readonly Uint8Array[]): Promise<Appended> {
    return this.#files.append(session, offset, parts)
  }

  /** Closes the file: nothing is appended any more. */
  end(session: string): Promise<void> {
    return this.#files.close(session)
  }

  /**
   * Accepts no more appends. Resolves when the disk has the last one and the file is closed, or after some seconds: a
   * disk may hang.
   */
  async settle(session: string): Promise<void> {
    const waited = Promise.withResolvers<void>()
    const late = setTimeout(waited.resolve, FILE_END_MS)
    this.#files.close(session).then(waited.resolve, waited.resolve)
    await waited.promise
    clearTimeout(late)
  }

  /** The recordings that are being written. */
  get open(): Iterable<[session: string, recording: OpenRecording]> {
    return this.#open
  }

  /**
   * Returns how a session's recording was closed, by the signed file on the disk, not by the report of the
   * writing process. Of a recording that was never closed it returns only the size.
   */
  async ended(session: string): Promise<NonNullable<SessionRecord['recording']>> {
    const open = this.#open.get(session)
    if (!open) return { state: 'failed', size: 0, frames: 0, digest: '' }
    // The closing checkpoint may be on its way to the disk.
    await this.settle(session)
    const { size, link } = await endOfFile(open.directory)
    const end = open.signed.ends.find((one) => one.digest === link && one.size === size)
    return end ?? { state: 'failed', size, frames: 0, digest: '' }
  }

  /** Returns how far a running recording is known to be on the disk, or undefined if it is not known. */
  noted(session: string): Noted | undefined {
    const settled = this.#open.get(session)?.signed.settled
    if (!settled) return undefined
    const { size, digest, time } = settled
    return { size, digest, milliseconds: Math.floor(time / 1000) }
  }

  /** Releases a session's state after it has ended and its events are written. */
  onClosed(session: string): void {
    this.#files.onClosed(session)
    this.#open.delete(session)
  }

  /** Unwraps a session's key from its `key.age`, for the broker's own use. Throws RecordingError. */
  unwrap(wrapped: Uint8Array): Promise<Uint8Array> {
    return unwrapKey(wrapped, ...this.#options.keys.identities)
  }

  /**
   * Signs the next checkpoint of a running recording. Throws if the statement is not one of this session, or
   * may not follow the last signed one: the keys sign nothing else.
   */
  async sign(session: string, statement: Uint8Array): Promise<Uint8Array> {
    // Copy the statement: the checked bytes are the signed ones, and they are kept.
    const bytes = Buffer.from(statement)
    const parsed = statementOf(session, bytes)
    const open = this.#requireOpen(session)
    open.signed.require(parsed)
    const signature = sign(null, bytes, this.#options.keys.signing)
    open.signed.add(parsed, signature, this.#options.monotonic?.() ?? performance.now())
    return signature
  }

  #requireOpen(session: string): OpenRecording {
    const open = this.#open.get(session)
    if (open) return open
    throw new Error('expected the session of a recording that is being written')
  }

  /**
   * Signs the recovery's statement about a session's recording after a crash. Throws for any other statement.
   */
  async signRecovered(session: string, statement: Uint8Array): Promise<Uint8Array> {
    const bytes = Buffer.from(statement)
    if (statementOf(session, bytes).checkpoint.kind !== 'recovered' || this.#open.has(session)) {
      throw new Error('expected the closing checkpoint of a recording that a crash has left')
    }
    return sign(null, bytes, this.#options.keys.signing)
  }
}

function statementOf(session: string, bytes: Buffer): Statement {
  const statement = parseStatement(bytes)
  if (statement?.session === session) return statement
  throw new Error('expected the statement of a checkpoint of this session')
}
