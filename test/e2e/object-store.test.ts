/**
 * A bastion whose recordings go to a real object store: the data that remains after the loss of the machine,
 * and its restore.
 */
import { createHash } from 'node:crypto'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyStream } from '../../recordings/container/verify.ts'
import { objectKeys } from '../../recordings/storage/bucket/keys.ts'
import { S3Bucket } from '../../recordings/storage/bucket/s3.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { type FaultyStore, startFaultyStore } from '../peers/faulty-store.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { SWIFT_PEERS, type Swift, startSwift } from '../peers/swift.ts'
import { loopOf } from '../peers/ticker.ts'
import { until } from '../until.ts'
import { type Bastion, eventsIn, type SessionRow, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

const BUCKET = 'recordings'
const TICKER = loopOf('echo tick $n', 0.1, 600)

let swift: Swift
let store: FaultyStore
let direct: S3Bucket
let bastion: Bastion
let again: Broker | undefined
let config: Record<string, unknown>
let env: NodeJS.ProcessEnv

async function keysBelow(prefix: string): Promise<string[]> {
  const found: string[] = []
  for await (const keys of direct.list(prefix)) found.push(...keys)
  return found.sort()
}

async function contentOf(key: string): Promise<Buffer> {
  const size = (await direct.size(key)) ?? 0
  return Buffer.from(await direct.range(key, 0, size))
}

describeWithPeers('recordings in Swift', ['sshd', 'ssh', ...SWIFT_PEERS], () => {
  beforeAll(async () => {
    swift = await startSwift()
    const place = { endpoint: swift.endpoint, region: swift.region }
    const credentials = { accessKeyId: swift.accessKey, secretAccessKey: swift.secretKey }
    const client = new S3Client({ ...place, forcePathStyle: true, credentials })
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
    client.destroy()
    const { accessKey, secretKey } = swift
    direct = new S3Bucket({ ...place, bucket: BUCKET, accessKey, secretKey, pathStyle: true })
    store = await startFaultyStore(swift.port)
    const { endpoint } = store
    const bucket = {
      ...place,
      endpoint,
      bucket: BUCKET,
      prefix: 'one/',
      access_key: accessKey,
      path_style: true,
    }
    const secret = { secret_key: { env: 'STORE_SECRET' } }
    const times = { keep_local: '1s', segment_interval: '1s' }
    config = { recordings: { object_store: { ...bucket, ...secret, ...times } } }
    env = { STORE_SECRET: secretKey }
    bastion = await startBastion({ credential: 'password', broker: { config, env } })
  }, 300_000)
  afterAll(async () => {
    await again?.stop()
    await bastion?.stop()
    direct?.close()
    await store?.stop()
    await swift?.stop()
  }, 300_000)

  test('a machine that is lost leaves a recording to within the interval; the next start brings the whole there, and the file goes', async () => {
    const { broker } = bastion
    const ended = ssh(bastion.home, bastion.login(), [TICKER], { timeout: 300_000 })
    const [session] = await until('a running session', async () => {
      const rows = await broker.must<(SessionRow & { begin: string })[]>('GET', '/sessions?status=current')
      return rows.length > 0 ? rows : undefined
    })
    const { id, begin } = session!
    const keys = objectKeys('one/', id, Date.parse(begin))
    await until('three segments', async () =>
      (await keysBelow(keys.segments)).length >= 3 ? true : undefined,
    )
    await broker.kill()
    await ended

    const pieces = await keysBelow(keys.segments)
    const left = Buffer.concat(await Promise.all(pieces.map(contentOf)))
    expect(await direct.size(keys.keyFile)).toBeGreaterThan(100)
    const verification = await verifyStream(
      (async function* () {
        yield left
      })(),
      { session: id },
    )
    expect(['not_closed', 'cut_tail']).toContain(verification.fault?.code)
    expect(verification.frames).toBeGreaterThan(3)

    again = await startBroker({ dataFolder: broker.dataFolder, ports: broker.ports, config, env })
    const stored = await until('the event', () =>
      eventsIn(again!.log()).find(({ event }) => event === 'recording.stored'),
    )
    const object = await contentOf(keys.recording)
    expect(stored).toMatchObject({
      session: id,
      object: keys.recording,
      result: 'success',
      size: object.length,
      sha256: createHash('sha256').update(object).digest('hex'),
    })
    const { goodSize } = verification
    expect(object.subarray(0, goodSize).equals(left.subarray(0, goodSize))).toBe(true)
    expect(await keysBelow(keys.folder)).toEqual([keys.keyFile, keys.recording].sort())
    const entry = await until('the file to go', async () => {
      const found = await findRecording(`${broker.dataFolder}/recordings`, id)
      return found?.stored ? found : undefined
    })
    expect(entry).toMatchObject({ state: 'recovered', size: object.length })
  }, 300_000)

  test('it is verified, exported and downloaded from there, listed, counted, and deleted there too', async () => {
    const broker = again!
    const [session] = await broker.must<(SessionRow & { begin: string })[]>('GET', '/sessions?status=closed')
    const { id, begin, recording } = session!
    const keys = objectKeys('one/', id, Date.parse(begin))
    const options = { env: { ...process.env, ...env } }
    const verified = await sallyport(broker, ['recordings', 'verify'], options)
    expect(verified.stderr).toBe('')
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(recording!.digest) })
    const text = await sallyport(broker, ['recordings', 'export', id, '--format', 'txt'], options)
    expect(text.stdout).toContain('tick 3')
    const listed = await sallyport(broker, ['recordings', 'list'], options)
    expect(listed.stdout).toContain('recovered')
    expect((await broker.api('GET', `/sessions/${id}/recording.txt`)).body).toContain('tick 3')
    const metrics = await (await fetch(`http://127.0.0.1:${broker.ports.metrics}/metrics`)).text()
    expect(metrics).toMatch(/^sallyport_recording_uploads_waiting 0$/m)
    expect(metrics).toMatch(/^sallyport_recording_upload_bytes_total [1-9]\d*$/m)
    const container = await broker.api<unknown>('GET', `/sessions/${id}/recording`)
    expect(container.status).toBe(200)
    store.fault = () => ({ status: 503 })
    const away = await broker.api('GET', `/sessions/${id}/recording`)
    expect(away).toMatchObject({ status: 503, body: { error: 'object_store_unavailable' } })
    const unread = await sallyport(broker, ['recordings', 'verify'], options)
    expect(unread).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`${id}  not_fetched: head one/`),
    })
    store.fault = () => undefined
    const removed = await broker.api('DELETE', `/sessions/${id}/recording?reason=over`)
    expect(removed.status).toBe(204)
    await until('the objects to go', async () =>
      (await keysBelow(keys.folder)).length === 0 ? true : undefined,
    )
  }, 300_000)

  test('check tries the bucket, and says what is wrong with it', async () => {
    const good = await sallyport(again!, ['check'], { env: { ...process.env, ...env } })
    expect(good.stdout).toMatch(
      /^ok +object store +\S+\/recordings\/one\/: an object was put, read and deleted$/m,
    )
    const bad = await sallyport(again!, ['check'], { env: { ...process.env, STORE_SECRET: 'wrong' } })
    expect(bad.code).toBe(1)
    expect(bad.stdout).toMatch(/^error +object store +put one\/probe-\S+: answered 403/m)
    expect(await keysBelow('one/probe')).toEqual([])
  }, 300_000)
})
