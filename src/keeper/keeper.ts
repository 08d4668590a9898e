/**
 * The broker's side of the recordings: the keys that sign checkpoints and open containers, the folder of each
 * session, and what is due at the start after a crash. Proxies write the recordings themselves
 * (recordings/writer.ts) and never see these keys.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { Bucket } from '../../recordings/bucket/bucket.ts'
import { parseStatement } from '../../recordings/format/checkpoint.ts'
import { rawPublicKey } from '../../recordings/format/signature.ts'
import { requireSpace } from '../../recordings/free-space.ts'
import { makeIdentity, prepareRecording, recipientOf, unwrapKey } from '../../recordings/keys.ts'
import type { RecordingGrant } from '../gate/messages.ts'
import { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import type { Vault } from '../vault/credentials.ts'

/** The settings that hold the broker's own recording keys, sealed. */
const SIGNING_KEY = 'recordings.signing_key'
const IDENTITY = 'recordings.identity'

export interface RecordingKeys {
  /** Ed25519; signs checkpoints. */
  signing: KeyObject
  /** Its raw public key, 32 bytes. */
  signer: Buffer
  /** The broker's own age identity, that opens every session's key. */
  identity: Secret
  /** `age1…` of the identity. */
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
  return { signing, signer: rawPublicKey(signing), identity, recipient: await recipientOf(identity) }
}

/** A secret in the settings, made once; when two processes start at a time, the first one's counts. */
async function sealedSetting(
  settings: SettingRepository,
  vault: Vault,
  name: string,
  make: () => Promise<Secret>,
): Promise<Secret> {
  const place = { table: 'settings', id: name, field: 'value' }
  const stored = await settings.get(name)
  if (stored) return vault.open(place, stored)
  const fresh = await make()
  const kept = await settings.setOnce(name, vault.seal(place, fresh))
  fresh.wipe()
  return vault.open(place, kept)
}

export interface KeeperOptions {
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
}

export class RecordingKeeper {
  readonly #options: KeeperOptions
  /** Hears of each recording when its folder is there. */
  onBegun: ((session: string, begin: number) => void) | undefined

  constructor(options: KeeperOptions) {
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
    this.onBegun?.(session, begin)
    return grant
  }

  /** A session's key out of its `key.age`, for the broker's own use. Throws RecordingError. */
  unwrap(wrapped: Uint8Array): Promise<Uint8Array> {
    return unwrapKey(wrapped, this.#options.keys.identity)
  }

  /** Signs a checkpoint's statement. Throws when it is not one of this session: keys sign nothing else. */
  async sign(session: string, statement: Uint8Array): Promise<Uint8Array> {
    const bytes = Buffer.from(statement.buffer, statement.byteOffset, statement.byteLength)
    const parsed = parseStatement(bytes)
    if (parsed?.session !== session) throw new Error('expected the statement of a checkpoint of this session')
    return sign(null, bytes, this.#options.keys.signing)
  }
}
