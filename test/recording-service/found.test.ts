/** The first start after a restore: recordings that are not in the database. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { RecordingWriter } from '../../recordings/container/writer.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { crossCheck, gatherEvidence, listed } from '../../src/recording-service/evidence.ts'
import { takeUpFound } from '../../src/recording-service/found.ts'
import { RecordingService } from '../../src/recording-service/service.ts'
import { BEGIN, identity, ManualClock, makeSigner, recipient, removeRoots } from '../recordings/support.ts'
import { serviceFile } from './service-file.ts'
import { idOf, type Setting, startSetting } from './setting.ts'

const NOTE = { created: '2026-11-20T12:00:00.000Z', row: 5 }
const METADATA = {
  user: 'ops1',
  client: '198.51.100.7',
  target: 'svc%40corp@corp.example:srv1:ssh',
  host: '192.0.2.1',
  protocol: 'SSH',
}
const signer = makeSigner()
let here: Setting
let recordingService: RecordingService
beforeEach(async () => {
  here = await startSetting(signer)
  const keys = {
    signing: signer.key,
    signer: signer.raw,
    trusted: [signer.raw],
    identities: [identity],
    recipient,
  }
  recordingService = new RecordingService({
    root: here.root,
    keys,
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
})
afterEach(() => here.close())
afterAll(removeRoots)

async function record(number: number, metadata: Record<string, string> = METADATA): Promise<RecordingWriter> {
  const session = idOf(number)
  const { grant } = await recordingService.prepare(session, BEGIN, metadata)
  return await RecordingWriter.open(grant, {
    create: serviceFile(recordingService, session),
    sign: (statement) => recordingService.sign(session, statement),
    clock: new ManualClock(),
    onFailure: (error) => {
      throw error
    },
  })
}
const start = () =>
  takeUpFound({ store: here.store, audit: here.audit, recordingService, now: () => here.clock.now }, NOTE)
const faults = async () =>
  crossCheck(here.root, await listed(here.root), await gatherEvidence(here.store.audit, undefined))

test('one that is whole is known again, by what its header tells, and once', async () => {
  const { size, digest } = await (await record(1)).close({ result: 'success' })
  expect(await faults()).toMatchObject([{ code: 'unknown_session', session: idOf(1) }])
  expect(await start()).toEqual([expect.stringContaining('was taken up again (sealed')])
  expect(await here.store.sessions.find(idOf(1))).toMatchObject({
    begin: BEGIN,
    user: 'ops1',
    sourceIp: '198.51.100.7',
    account: 'svc@corp',
    domain: 'corp.example',
    device: 'srv1',
    service: 'ssh',
    targetHost: '192.0.2.1',
    result: 'lost',
    recording: { state: 'sealed', size, digest },
  })
  expect(await here.events('recording.found')).toMatchObject([{ fields: { session: idOf(1), size, digest } }])
  expect(await faults()).toEqual([])
  expect(await start()).toEqual([])
})

test('one that was cut is sealed first', async () => {
  await (await record(1)).flush()
  recordingService.onClosed(idOf(1))
  expect(await start()).toEqual([expect.stringContaining('was taken up again (recovered')])
  expect((await findRecording(here.root, idOf(1)))?.state).toBe('recovered')
  expect(await faults()).toEqual([])
})

test('ones that are known stay as they are', async () => {
  const { recording } = await here.session(1)
  expect(await start()).toEqual([])
  expect((await here.store.sessions.find(idOf(1)))?.recording).toEqual(recording)
})

test('one that somebody else has signed, or changed, or that does not say what it is, stays unknown', async () => {
  const stranger = makeSigner()
  const keys = {
    signing: stranger.key,
    signer: stranger.raw,
    trusted: [stranger.raw],
    identities: [identity],
    recipient,
  }
  const ours = recordingService
  recordingService = new RecordingService({
    root: here.root,
    keys,
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  await (await record(1)).close({ result: 'success' })
  recordingService = ours
  await (await record(2)).close({ result: 'success' })
  const path = join((await findRecording(here.root, idOf(2)))!.directory, 'session.rec')
  const bytes = readFileSync(path)
  bytes[bytes.length - 300] = (bytes[bytes.length - 300] ?? 0) ^ 1
  writeFileSync(path, bytes)
  await (await record(3, { ...METADATA, protocol: 'GOPHER' })).close({ result: 'success' })

  const report = await start()
  expect(report).toHaveLength(3)
  expect(report[0]).toMatch(/is left as it is: signed by .*, which is none of the trusted keys/)
  expect(report[1]).toMatch(/is left as it is: /)
  expect(report[2]).toMatch(/is left as it is: its header names the protocol "GOPHER"/)
  expect((await faults()).map(({ code }) => code)).toEqual(Array(3).fill('unknown_session'))
  expect(await here.events('recording.found')).toEqual([])
})
