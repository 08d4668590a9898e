/** Shared helpers of the recordings' tests: a signer, an identity, a folder, a manual clock. */
import { Buffer } from 'node:buffer'
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import type { Frame } from '../../recordings/container/frames.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import {
  makeIdentity,
  type Prepared,
  prepareRecording,
  recipientOf,
} from '../../recordings/container/keys.ts'
import { RecordingReader } from '../../recordings/container/reader.ts'
import type { CreateFile } from '../../recordings/container/recording-file.ts'
import { SessionFile, type SessionFileOptions } from '../../recordings/container/session-file.ts'
import { type Clock, RecordingWriter, type WriterOptions } from '../../recordings/container/writer.ts'

export const SESSION = '01JD0000000000000000000001'
/** 2026-11-20T12:00:00Z */
export const BEGIN = 1_795_176_000_000

export interface Signer {
  key: KeyObject
  raw: Buffer
  sign: (statement: Uint8Array) => Promise<Uint8Array>
}

export function signerOf(key: KeyObject): Signer {
  return { key, raw: rawPublicKey(key), sign: async (statement) => sign(null, statement, key) }
}

export function makeSigner(): Signer {
  return signerOf(generateKeyPairSync('ed25519').privateKey)
}

/** Returns the Ed25519 key of a 32-byte seed (RFC 8410's wrapping). */
export function signerOfSeed(seed: Uint8Array): Signer {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  return signerOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
}

export const identity = await makeIdentity()
export const recipient = await recipientOf(identity)

export function makeRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-recordings-'))
  roots.push(root)
  return root
}

const roots: string[] = []

/** For `afterAll`: removes the folders made by this file's tests. */
export function removeRoots(): void {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
}

export function prepare(
  signer: Signer,
  overrides: { root?: string; session?: string } = {},
): Promise<Prepared> {
  return prepareRecording({
    root: overrides.root ?? makeRoot(),
    session: overrides.session ?? SESSION,
    begin: BEGIN,
    recipients: [recipient],
    signer: signer.raw,
    metadata: { user: 'ops1', target: 'root@local:srv1:ssh' },
    random: randomBytes,
  })
}

/** A clock that stands still until it is set; microseconds. */
export class ManualClock implements Clock {
  time = 5_000_000
  now(): number {
    return BEGIN + Math.floor(this.time / 1000)
  }
  monotonic(): number {
    return this.time
  }
}

/** Returns how a writer creates its file in this folder. */
export const fileIn =
  (directory: string, options: Partial<SessionFileOptions> = {}): CreateFile =>
  (first) =>
    SessionFile.create(directory, first, { minimumFree: 0, ...options })

export interface Made {
  grant: RecordingGrant
  directory: string
  signer: Signer
  clock: ManualClock
  writer: RecordingWriter
  failures: Error[]
  path: string
}

export async function makeWriter(
  options: Partial<WriterOptions> & {
    signer?: Signer
    prepared?: Prepared
    session?: string
    root?: string
  } = {},
): Promise<Made> {
  const signer = options.signer ?? makeSigner()
  const { grant, directory } = options.prepared ?? (await prepare(signer, options))
  const clock = new ManualClock()
  const failures: Error[] = []
  const writer = await RecordingWriter.open(grant, {
    create: options.create ?? fileIn(directory),
    sign: options.sign ?? signer.sign,
    clock: options.clock ?? clock,
    onFailure: (error) => failures.push(error),
    ...(options.sealer && { sealer: options.sealer }),
  })
  return { grant, directory, signer, clock, writer, failures, path: join(directory, FILE_NAME) }
}

/** Yields a file in pieces of `size` bytes. */
export async function* inPieces(bytes: Uint8Array, size = 64 * 1024): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

export async function readFrames(path: string, key: Uint8Array): Promise<Frame[]> {
  return framesOf(await readFile(path), key)
}

export async function framesOf(bytes: Uint8Array, key: Uint8Array, pieces = 64 * 1024): Promise<Frame[]> {
  const reader = await RecordingReader.open(inPieces(bytes, pieces), key)
  const frames: Frame[] = []
  for await (const frame of reader.frames()) frames.push(frame)
  return frames
}

export async function until(condition: () => boolean, milliseconds = 5000): Promise<void> {
  const end = Date.now() + milliseconds
  while (!condition()) {
    if (Date.now() > end) throw new Error('the condition did not come true in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
