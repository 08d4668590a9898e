/**
 * Recordings that are only in an object store (Swift's s3api) are added to a lost index over sessions again.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { FRAME } from '../../recordings/container/frames.ts'
import { unwrapKey } from '../../recordings/container/keys.ts'
import { Bucket } from '../../recordings/storage/bucket/bucket.ts'
import { S3Bucket } from '../../recordings/storage/bucket/s3.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { storeAway } from '../../recordings/storage/stored-away.ts'
import { ContentDatabase } from '../../src/contents/database.ts'
import { Secret } from '../../src/model/secret.ts'
import { RecordingIndexer } from '../../src/recording-service/indexing/indexer.ts'
import { asked, makeFolder, removeFolders } from '../contents/support.ts'
import { type FaultyStore, startFaultyStore } from '../peers/faulty-store.ts'
import { describeWithPeers } from '../peers/program.ts'
import { SWIFT_PEERS, type Swift, startSwift } from '../peers/swift.ts'
import { open } from '../recordings/replay-support.ts'
import { identity, makeRoot, makeWriter, removeRoots } from '../recordings/support.ts'

const BUCKET = 'recordings'

describeWithPeers('recordings that Swift has', SWIFT_PEERS, () => {
  let swift: Swift
  let store: FaultyStore
  let direct: S3Bucket
  let bucket: Bucket
  let root = ''
  let failures: [string, string][] = []

  beforeAll(async () => {
    swift = await startSwift()
    store = await startFaultyStore(swift.port)
    const { region, accessKey, secretKey } = swift
    const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey }
    const client = new S3Client({ endpoint: swift.endpoint, region, forcePathStyle: true, credentials })
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
    client.destroy()
    const settings = { region, bucket: BUCKET, accessKey, pathStyle: true }
    direct = new S3Bucket({ ...settings, endpoint: swift.endpoint, secretKey })
    const secret = Secret.of(secretKey)
    bucket = new Bucket({ ...settings, endpoint: store.endpoint, secretKey: secret, prefix: '', rate: 0 })
  }, 300_000)
  afterAll(async () => {
    direct?.close()
    await bucket?.close()
    await store?.stop()
    await swift?.stop()
    removeRoots()
    removeFolders()
  })
  beforeEach(() => {
    root = makeRoot()
    failures = []
    store.fault = () => undefined
    vi.unstubAllEnvs()
  })

  /** Stores a recording of a command with this output; the disk has only its note. */
  async function storedAway(session: string, output: string): Promise<string> {
    const made = await makeWriter({ root, session })
    open(made, 1)
    made.writer.write(FRAME.output, 1, Buffer.from(output))
    await made.writer.close({ result: 'success' })
    const entry = await findRecording(root, session)
    const bytes = readFileSync(made.path)
    await direct.put(`${session}/session.rec`, bytes)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    await storeAway(entry!, { key: `${session}/session.rec`, sha256 })
    return made.path
  }

  function indexer(database: ContentDatabase, path: string): RecordingIndexer {
    return new RecordingIndexer({
      root,
      bucket,
      unwrap: (wrapped) => unwrapKey(wrapped, identity),
      onFailure: (session, reason) => failures.push([session, reason]),
      contents: { path, mode: 'full', has: async (session, digest) => database.has(session, digest) },
    })
  }

  function withIndex<T>(use: (database: ContentDatabase, path: string) => Promise<T>): Promise<T> {
    const path = join(makeFolder(), 'search.db')
    const database = new ContentDatabase(path, 'full')
    return use(database, path).finally(() => database.close())
  }

  test('are fetched, indexed, and let go again, once', async () => {
    const file = await storedAway('s1', 'permission denied\n')
    const temporary = makeFolder()
    await withIndex(async (database, path) => {
      vi.stubEnv('TMPDIR', temporary)
      const subject = indexer(database, path)
      subject.catchUp()
      await subject.idle()
      expect(failures).toEqual([])
      expect(database.sessionsWith(asked('output', 'permission denied'))).toEqual(['s1'])
      expect(database.extent('s1')).toBe('full')
      const requests = store.seen.length
      subject.catchUp()
      await subject.idle()
      expect(store.seen).toHaveLength(requests)
      await subject.close()
    })
    expect(existsSync(file)).toBe(false)
    expect(readdirSync(temporary)).toEqual([])
  }, 300_000)

  test('wait for a store that cannot answer, of which there is one warning', async () => {
    await storedAway('s1', 'one\n')
    await storedAway('s2', 'two\n')
    store.fault = () => ({ status: 503 })
    await withIndex(async (database, path) => {
      const subject = indexer(database, path)
      subject.catchUp()
      await subject.idle()
      expect(failures).toEqual([['', expect.stringContaining('503')]])
      await subject.close()
      store.fault = () => undefined
      const next = indexer(database, path)
      next.catchUp()
      await next.idle()
      expect(database.sessionsWith(asked('output', 'two'))).toEqual(['s2'])
      expect(failures).toHaveLength(1)
      await next.close()
    })
  }, 300_000)
})
