/** Uploads of recordings to a real object store (Swift's s3api), through a proxy that fails at times. */
import { Buffer } from 'node:buffer'
import { createHash, randomBytes } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { generate } from 'selfsigned'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { FILE_NAME, KEY_FILE_NAME } from '../../recordings/container/format/limits.ts'
import { sessionDirectory } from '../../recordings/container/keys.ts'
import { verifyStream } from '../../recordings/container/verify.ts'
import { Bucket } from '../../recordings/storage/bucket/bucket.ts'
import { objectKeys } from '../../recordings/storage/bucket/keys.ts'
import { S3Bucket } from '../../recordings/storage/bucket/s3.ts'
import { PART_LENGTH } from '../../recordings/storage/bucket/transfer.ts'
import { recordingAt } from '../../recordings/storage/catalog.ts'
import { bytesOf } from '../../recordings/storage/source.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import type { SessionRecord } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { Uploader } from '../../src/recording-service/uploads/uploader.ts'
import { type FaultyStore, startFaultyStore } from '../peers/faulty-store.ts'
import { describeWithPeers } from '../peers/program.ts'
import { SWIFT_PEERS, type Swift, startSwift } from '../peers/swift.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const BEGIN = Date.UTC(2026, 10, 20, 12)
const BUCKET = 'recordings'
const PREFIX = 'bastion/'
const VECTORS = join(import.meta.dirname, '..', 'recordings', 'vectors')
const WAIT_MS = 60_000

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

let swift: Swift
let store: FaultyStore
let database: TemporaryStore
let root: string
let events: ({ code: string } & EventFields)[]
let direct: S3Bucket
let running: { uploader: Uploader; bucket: Bucket }[]
let next = 0

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + WAIT_MS
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}

const settings = (endpoint: string) => ({
  endpoint,
  region: swift.region,
  bucket: BUCKET,
  accessKey: swift.accessKey,
  pathStyle: true,
})

function bucketOf(secretKey = swift.secretKey): Bucket {
  return new Bucket({ ...settings(store.endpoint), secretKey: Secret.of(secretKey), prefix: PREFIX, rate: 0 })
}

async function startUploader(
  options: { keepLocal?: number; secretKey?: string } = {},
): Promise<{ uploader: Uploader; bucket: Bucket }> {
  const bucket = bucketOf(options.secretKey)
  const uploader = new Uploader({
    bucket,
    root,
    uploads: database.store.uploads,
    sessions: database.store.sessions,
    audit: { record: async (code, fields) => void events.push({ code, ...fields }) },
    keepLocal: options.keepLocal,
    segmentInterval: 100,
    firstRetry: 200,
    onError: () => undefined,
    now: Date.now,
  })
  await uploader.start()
  const made = { uploader, bucket }
  running.push(made)
  return made
}

interface Recording {
  session: string
  directory: string
  file: string
  keys: ReturnType<typeof objectKeys>
}

/** Makes a session with this recording; the session has ended, unless `ended` is false. */
async function recorded(content: Uint8Array, { ended = true } = {}): Promise<Recording> {
  const session = `01JD${String(next++).padStart(22, '0')}`
  const directory = sessionDirectory(root, session, BEGIN)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, KEY_FILE_NAME), `key of ${session}`)
  const file = join(directory, FILE_NAME)
  writeFileSync(file, content)
  const row: SessionRecord = {
    id: session,
    begin: BEGIN,
    user: 'ops1',
    sourceIp: '192.0.2.1',
    protocol: 'SSH',
    subprotocols: [],
    account: 'root',
    domain: 'local',
    device: 'srv1',
    service: 'ssh',
    targetHost: '192.0.2.2',
    authorization: 'ops',
    isRecorded: true,
    bytesIn: 0,
    bytesOut: 0,
  }
  await database.store.sessions.create(row)
  if (ended) await endOf(session)
  return { session, directory, file, keys: objectKeys(PREFIX, session, BEGIN) }
}

const endOf = (session: string) =>
  database.store.sessions.update(session, {
    end: BEGIN + 1000,
    result: 'success',
    recording: { state: 'sealed', size: 1, frames: 1, digest: 'ab' },
  })

const stateOf = async ({ session }: Recording) => (await database.store.uploads.find(session))?.state
const isStored = (recording: Recording) =>
  until('the recording to be stored', async () => (await stateOf(recording)) === 'stored')

async function objectOf(key: string): Promise<Buffer | undefined> {
  const size = await direct.size(key)
  return size === undefined ? undefined : Buffer.from(await direct.range(key, 0, size))
}

async function keysBelow(prefix: string): Promise<string[]> {
  const found: string[] = []
  for await (const keys of direct.list(prefix)) found.push(...keys)
  return found.map((key) => key.slice(prefix.length)).sort()
}

const told = (code: string, session?: string) =>
  events.filter((event) => event.code === code && (session === undefined || event.session === session))
const isPartOf = ({ session }: Recording, { method, url }: { method: string; url: string }) =>
  method === 'PUT' && url.includes(session) && url.includes('partNumber=')

describeWithPeers('uploads to Swift', SWIFT_PEERS, () => {
  beforeAll(async () => {
    swift = await startSwift()
    const credentials = { accessKeyId: swift.accessKey, secretAccessKey: swift.secretKey }
    const client = new S3Client({
      endpoint: swift.endpoint,
      region: swift.region,
      forcePathStyle: true,
      credentials,
    })
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
    client.destroy()
    direct = new S3Bucket({ ...settings(swift.endpoint), secretKey: swift.secretKey })
  }, 300_000)
  afterAll(async () => {
    direct?.close()
    await swift?.stop()
  })

  beforeEach(async () => {
    store = await startFaultyStore(swift.port)
    database = await temporaryStore()
    root = mkdtempSync(join(tmpdir(), 'sallyport-uploads-'))
    events = []
    running = []
  })
  afterEach(async () => {
    for (const { uploader } of running) await uploader.stop()
    await database.remove()
    await store.stop()
    rmSync(root, { recursive: true, force: true })
  })

  test('segments of a running session, put together, are the beginning of its file; its key comes first', async () => {
    const first = randomBytes(100_000)
    const recording = await recorded(first, { ended: false })
    const { uploader } = await startUploader()
    uploader.begun(recording.session, BEGIN)
    await until('a first segment', async () => (await keysBelow(recording.keys.segments)).length === 1)
    expect(store.seen.map(({ url }) => url.split('?')[0])).toEqual([
      `/${BUCKET}/${recording.keys.keyFile}`,
      `/${BUCKET}/${recording.keys.segments}0000000000000000`,
    ])
    const second = randomBytes(PART_LENGTH + 1000)
    await appendFile(recording.file, second)
    await until('the others', async () => (await keysBelow(recording.keys.segments)).length === 3)
    const pieces = await keysBelow(recording.keys.segments)
    const put = await Promise.all(pieces.map((piece) => objectOf(recording.keys.segments + piece)))
    expect(sha256(Buffer.concat(put as Buffer[]))).toBe(sha256(Buffer.concat([first, second])))

    await endOf(recording.session)
    await isStored(recording)
    expect(await keysBelow(recording.keys.folder)).toEqual([KEY_FILE_NAME, FILE_NAME].sort())
    const object = await objectOf(recording.keys.recording)
    expect(object?.equals(readFileSync(recording.file))).toBe(true)
    expect((await objectOf(recording.keys.keyFile))?.toString()).toBe(`key of ${recording.session}`)
    expect(told('recording.stored')).toEqual([
      {
        code: 'recording.stored',
        session: recording.session,
        object: recording.keys.recording,
        result: 'success',
        size: first.length + second.length,
        sha256: sha256(readFileSync(recording.file)),
      },
    ])
  }, 300_000)

  test('a long file goes in parts; after a crash only those that are missing are sent', async () => {
    const content = randomBytes(2 * PART_LENGTH + 12345)
    const recording = await recorded(content)
    let parts = 0
    store.fault = (request) => (isPartOf(recording, request) && ++parts > 1 ? 'cut' : undefined)
    const { uploader } = await startUploader()
    await until('the second part to be cut', () => parts > 1)
    await uploader.stop()
    store.fault = () => undefined
    store.seen = []
    await startUploader()
    await isStored(recording)
    expect(store.seen.filter((request) => isPartOf(recording, request)).map(({ bytes }) => bytes)).toEqual([
      PART_LENGTH,
      12345,
    ])
    expect(sha256((await objectOf(recording.keys.recording))!)).toBe(sha256(content))
  }, 300_000)

  test('a completion whose answer was lost is none that failed', async () => {
    const recording = await recorded(randomBytes(PART_LENGTH + 5))
    let lost = 0
    store.fault = ({ method, url }) =>
      method === 'POST' && url.includes('uploadId=') && lost++ === 0 ? 'no-answer' : undefined
    await startUploader()
    await isStored(recording)
    expect(lost).toBeGreaterThan(0)
    expect((await objectOf(recording.keys.recording))?.equals(readFileSync(recording.file))).toBe(true)
  }, 300_000)

  test('a store that is away is told of once; sessions go on, and all of it is uploaded when it is back', async () => {
    const recordings: Recording[] = []
    for (let i = 0; i < 5; i++) recordings.push(await recorded(randomBytes(1000)))
    const live = await recorded(randomBytes(1000), { ended: false })
    store.fault = () => ({ status: 503 })
    const { uploader } = await startUploader()
    uploader.begun(live.session, BEGIN)
    await until('many failures', () => uploader.totals.failures > 8)
    expect(told('sink.down')).toHaveLength(1)
    expect(told('sink.down')[0]).toMatchObject({
      object_type: 'object_store',
      object: `${store.endpoint}/${BUCKET}/${PREFIX}`,
      reason: expect.stringContaining('503'),
    })
    expect(told('recording.stored')).toEqual([])
    expect(await database.store.uploads.waiting()).toBe(5)
    await endOf(live.session)
    store.fault = () => undefined
    for (const recording of [...recordings, live]) await isStored(recording)
    expect(await database.store.uploads.waiting()).toBe(0)
  }, 300_000)

  test('one that the store never takes holds up no other, and is told of by its name', async () => {
    const bad = await recorded(randomBytes(1000))
    store.fault = ({ method, url }) =>
      method === 'PUT' && url.includes(`${bad.session}/${FILE_NAME}`) ? { status: 400 } : undefined
    const others = [await recorded(randomBytes(1000)), await recorded(randomBytes(1000))]
    await startUploader()
    for (const other of others) await isStored(other)
    await until('the event', () => told('recording.stored', bad.session).length > 0)
    expect(told('recording.stored', bad.session)).toMatchObject([
      { result: 'failure', object: bad.keys.recording, reason: expect.stringContaining('400') },
    ])
    expect(await stateOf(bad)).toBe('waiting')
    expect(told('sink.down')).toEqual([])
  }, 300_000)

  test('bytes that change on the way up are refused by the store, and sent again', async () => {
    const recording = await recorded(randomBytes(50_000))
    let bent = 0
    store.fault = ({ method, url }) =>
      method === 'PUT' && url.includes(FILE_NAME) && bent++ === 0 ? 'bad-up' : undefined
    await startUploader()
    await isStored(recording)
    expect(bent).toBe(2)
    expect((await objectOf(recording.keys.recording))?.equals(readFileSync(recording.file))).toBe(true)
  }, 300_000)

  test('what reads back as something else is not stored: the file stays, and is sent again', async () => {
    const recording = await recorded(randomBytes(PART_LENGTH + 7))
    let isBad = true
    let reads = 0
    store.fault = ({ method, url }) => {
      if (method !== 'GET' || !url.includes(FILE_NAME) || url.includes('uploadId=')) return undefined
      reads++
      return isBad ? 'bad-down' : undefined
    }
    await startUploader({ keepLocal: 0 })
    await until('the event', () => told('recording.stored').length > 0)
    expect(told('recording.stored')).toMatchObject([
      { result: 'failure', reason: expect.stringMatching(/expected .* with sha256/) },
    ])
    expect(reads).toBeGreaterThan(2)
    expect(existsSync(recording.file)).toBe(true)
    isBad = false
    await until('the local file to go', () => !existsSync(recording.file))
    expect(told('recording.stored').at(-1)).toMatchObject({ result: 'success' })
  }, 300_000)

  test('a file that was let go is read and verified from the bucket', async () => {
    const recording = await recorded(Buffer.alloc(0))
    copyFileSync(join(VECTORS, 'session.rec'), recording.file)
    const before = await recordingAt(recording.session, recording.directory)
    const { bucket } = await startUploader({ keepLocal: 0 })
    await until('the local file to go', () => !existsSync(recording.file))
    await until('the state', async () => (await stateOf(recording)) === 'remote')
    const entry = await recordingAt(recording.session, recording.directory)
    expect(entry).toEqual({
      ...before,
      stored: { key: recording.keys.recording, sha256: sha256(readFileSync(join(VECTORS, 'session.rec'))) },
    })
    const verification = await verifyStream(bytesOf(entry, bucket))
    expect(verification).toMatchObject({ ok: true, digest: before.digest })
    expect(() => bytesOf(entry, undefined)).toThrow(/configure recordings.object_store/)
  }, 300_000)

  test('a file is not let go while its copy is gone: it is uploaded once more', async () => {
    const recording = await recorded(randomBytes(1000))
    const { uploader } = await startUploader()
    await isStored(recording)
    await uploader.stop()
    await direct.remove(recording.keys.recording)
    await startUploader({ keepLocal: 0 })
    await until('the event', () => told('recording.stored').some(({ result }) => result === 'failure'))
    expect(told('recording.stored').find(({ result }) => result === 'failure')?.reason).toContain('is gone')
    await until('the local file to go', () => !existsSync(recording.file))
    expect(await direct.size(recording.keys.recording)).toBe(1000)
  }, 300_000)

  test('deleting a recording removes all that the bucket has of it, when the store is back too', async () => {
    const kept = await recorded(randomBytes(1000))
    const recording = await recorded(randomBytes(1000))
    const { uploader } = await startUploader()
    await isStored(recording)
    await isStored(kept)
    store.fault = () => ({ status: 503 })
    await uploader.forget(recording.session, BEGIN)
    await until('a failure', () => uploader.totals.failures > 0)
    store.fault = () => undefined
    await until('the row to go', async () => (await stateOf(recording)) === undefined)
    expect(await keysBelow(recording.keys.folder)).toEqual([])
    expect(await keysBelow(kept.keys.folder)).toHaveLength(2)
  }, 300_000)

  test('a recording that is deleted right after its end leaves no segments', async () => {
    const recording = await recorded(randomBytes(1000), { ended: false })
    const { uploader } = await startUploader()
    uploader.begun(recording.session, BEGIN)
    await until('a segment', async () => (await keysBelow(recording.keys.segments)).length === 1)
    await database.store.sessions.update(recording.session, {
      end: BEGIN + 1000,
      recording: { state: 'deleted', size: 1, frames: 1, digest: 'ab' },
    })
    rmSync(recording.directory, { recursive: true })
    await uploader.forget(recording.session, BEGIN)
    await until('the row to go', async () => (await stateOf(recording)) === undefined)
    expect(await keysBelow(recording.keys.folder)).toEqual([])
    expect(told('recording.stored')).toEqual([])
  }, 300_000)

  test('a file that is gone before it was uploaded is told of once, and not tried for ever', async () => {
    const recording = await recorded(randomBytes(1000))
    rmSync(recording.file)
    await startUploader()
    await until('the state', async () => (await stateOf(recording)) === 'lost')
    expect(told('recording.stored')).toMatchObject([
      { result: 'failure', reason: expect.stringContaining('nothing is tried any more') },
    ])
  }, 300_000)

  test('credentials that the store refuses are told of without the secret', async () => {
    await recorded(randomBytes(1000))
    await startUploader({ secretKey: 'not-the-secret' })
    await until('the event', () => told('sink.down').length > 0)
    expect(told('sink.down')[0]).toMatchObject({ reason: expect.stringContaining('403') })
    expect(JSON.stringify(events)).not.toContain('not-the-secret')
  }, 300_000)

  test('over TLS the store has to be vouched for by the authority of the configuration', async () => {
    const names = [{ type: 7 as const, ip: '127.0.0.1' }]
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'store' }], {
      keyType: 'ec',
      curve: 'P-256',
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'subjectAltName', altNames: names },
      ],
    })
    const tls = await startFaultyStore(swift.port, { cert, key })
    const options = {
      ...settings(tls.endpoint),
      secretKey: Secret.of(swift.secretKey),
      prefix: PREFIX,
      rate: 0,
    }
    const vouched = new Bucket({ ...options, ca: cert })
    await vouched.ask('probe', { prefix: PREFIX, name: 'tls' })
    const unknown = new Bucket(options)
    await expect(unknown.ask('probe', { prefix: PREFIX, name: 'tls' })).rejects.toMatchObject({
      fault: 'unavailable',
      message: expect.stringMatching(/self.signed certificate/i),
    })
    await Promise.all([vouched.close(), unknown.close(), tls.stop()])
  }, 300_000)

  test('a probe puts, reads and deletes; it fails where one of these does not work', async () => {
    const bucket = bucketOf()
    await bucket.ask('probe', { prefix: PREFIX, name: 'x' })
    expect(await direct.size(`${PREFIX}probe-x`)).toBeUndefined()
    store.fault = ({ method }) => (method === 'DELETE' ? { status: 403 } : undefined)
    await expect(bucket.ask('probe', { prefix: PREFIX, name: 'x' })).rejects.toMatchObject({
      fault: 'refused',
    })
    await bucket.close()
    await expect(bucket.ask('size', { key: 'x' })).rejects.toMatchObject({ fault: 'unavailable' })
  }, 300_000)
})
