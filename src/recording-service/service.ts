/**
 * The broker's side of the recordings: the keys that sign checkpoints and open containers, the folder of each
 * session, and what is due at the start after a crash. Proxies write the recordings themselves
 * (recordings/container/writer.ts) and never see these keys.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { parseStatement, type Statement } from '../../recordings/container/format/checkpoint.ts'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { requireSpace } from '../../recordings/container/free-space.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import { makeIdentity, prepareRecording, recipientOf, unwrapKey } from '../../recordings/container/keys.ts'
import type { Bucket } from '../../recordings/storage/bucket/bucket.ts'
import { recordingAt } from '../../recordings/storage/catalog.ts'
import type { SessionRecord } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { SignedRecording } from './signed.ts'

/** The settings that hold the broker's own recording keys, sealed. */
const SIGNING_KEY = 'recordings.signing_key'
const IDENTITY = 'recordings.identity'
/** Those that were in use before. */
const FORMER = 'recordings.former_keys'

export interface RecordingKeys {
  /** Ed25519; signs checkpoints. */
  signing: KeyObject
  /** Its raw public key, 32 bytes. */
  signer: Buffer
  /** Raw public keys whose signatures count: the one above, then those that it came in the place of. */
  trusted: readonly Buffer[]
  /** The broker's own age identities, that open every session's key: the present one, then those of before. */
  identities: readonly Secret[]
  /** `age1…` of the present identity. */
  recipient: string
}

/** The broker's recording keys, made at the first start. */
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
 * Makes a new signing key and a new identity. Of the old ones the public key goes on being trusted, for what it has
 * signed, and the identity goes on opening what was sealed to it. `settings` are those of a transaction.
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

/** Newest first. */
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

/** A secret in the settings, made once; when two processes start at a time, the first one's counts. */
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

/** One that is being written. */
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
  /** Whether the broker can open the recordings that it makes. */
  brokerKey: boolean
  /** Bytes of free space below which nothing is recorded. */
  minimumFree: number
  /** Where copies of the recordings go, if they go anywhere. */
  bucket?: Bucket
  /** Milliseconds since any moment, never decreasing; absent: the system's. */
  monotonic?: () => number
}

export class RecordingService {
  readonly #options: RecordingServiceOptions
  /** Of the sessions whose recording was prepared and not closed yet. */
  readonly #open = new Map<string, OpenRecording>()
  /** Hears of each recording when its folder is there. */
  onBegun: ((session: string, begin: number) => void) | undefined

  constructor(options: RecordingServiceOptions) {
    this.#options = options
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

  /** Makes the folder, 0700. */
  async start(): Promise<void> {
    await mkdir(this.#options.root, { recursive: true, mode: 0o700 })
  }

  /** The session's folder with its wrapped key in it. Throws what the disk throws, and when it has too little room. */
  async prepare(
    session: string,
    begin: number,
    metadata: Record<string, string | number>,
  ): Promise<RecordingGrant> {
    const { root, keys, recipients, brokerKey, minimumFree } = this.#options
    await requireSpace(root, minimumFree)
    const grant = await prepareRecording({
      root,
      session,
      begin,
      recipients: brokerKey ? [keys.recipient, ...recipients] : recipients,
      signer: keys.signer,
      metadata,
      minimumFree,
      random: randomBytes,
    })
    this.#open.set(session, { directory: grant.directory, signed: new SignedRecording() })
    this.onBegun?.(session, begin)
    return grant
  }

  /** The recordings that are being written. */
  get open(): Iterable<[session: string, recording: OpenRecording]> {
    return this.#open
  }

  /**
   * How a session's recording was closed: by what was signed and stands on the disk, whatever the process says that
   * wrote it. Of one that was never closed only its size is told.
   */
  async ended(session: string): Promise<NonNullable<SessionRecord['recording']>> {
    const open = this.#open.get(session)
    if (!open) return { state: 'failed', size: 0, frames: 0, digest: '' }
    const { size, digest } = await recordingAt(session, open.directory)
    const end = open.signed.ends.find((one) => one.digest === digest && one.size === size)
    return end ?? { state: 'failed', size, frames: 0, digest: '' }
  }

  /** The session is over and accounted for. */
  onClosed(session: string): void {
    this.#open.delete(session)
  }

  /** A session's key out of its `key.age`, for the broker's own use. Throws RecordingError. */
  unwrap(wrapped: Uint8Array): Promise<Uint8Array> {
    return unwrapKey(wrapped, ...this.#options.keys.identities)
  }

  /**
   * Signs the next checkpoint of a running recording. Throws when the statement is not one of this session, or may not
   * follow what was signed before: keys sign nothing else.
   */
  async sign(session: string, statement: Uint8Array): Promise<Uint8Array> {
    // A copy: what was looked at is what is signed, and it is kept.
    const bytes = Buffer.from(statement)
    const parsed = statementOf(session, bytes)
    const open = this.#open.get(session)
    if (!open) throw new Error('expected the checkpoint of a recording that is being written')
    open.signed.require(parsed)
    const signature = sign(null, bytes, this.#options.keys.signing)
    open.signed.add(parsed, signature, this.#options.monotonic?.() ?? performance.now())
    return signature
  }

  /** Signs what the recovery found of a session's recording after a crash. Throws for any other statement. */
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
