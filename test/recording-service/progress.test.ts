/**
 * Notes of running recordings in the audit log: their content and interval, and that the noted bytes are on
 * the disk.
 */
import { Buffer } from 'node:buffer'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { RecordingWriter } from '../../recordings/container/writer.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { crossCheck, gatherEvidence, listed } from '../../src/recording-service/evidence.ts'
import { Progress, progressEntry, progressOf } from '../../src/recording-service/progress.ts'
import { recoverSessions } from '../../src/recording-service/recover.ts'
import { RecordingService } from '../../src/recording-service/service.ts'
import { recordsOf } from '../recordings/samples.ts'
import { identity, ManualClock, makeSigner, recipient, removeRoots } from '../recordings/support.ts'
import { serviceFile } from './service-file.ts'
import { idOf, type Setting, startSetting } from './setting.ts'

const signer = makeSigner()
let here: Setting
let recordingService: RecordingService
let progress: Progress
/** Time on the monotonic clock, in milliseconds. */
let time: number
beforeEach(async () => {
  here = await startSetting(signer)
  const keys = {
    signing: signer.key,
    signer: signer.raw,
    trusted: [signer.raw],
    identities: [identity],
    recipient,
  }
  time = 0
  recordingService = new RecordingService({
    root: here.root,
    keys,
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
    monotonic: () => time,
  })
  progress = newProgress()
})
afterEach(() => here.close())
afterAll(removeRoots)

const newProgress = (): Progress =>
  new Progress({
    recordingService,
    audit: here.audit,
    checkpoint: () => here.audit.checkpoint(),
    monotonic: () => time,
  })

interface Running {
  id: string
  clock: ManualClock
  writer: RecordingWriter
  path: string
  /** Writes a line and waits until it is on the disk. */
  output(text: string): Promise<void>
}

async function running(number: number): Promise<Running> {
  const id = idOf(number)
  const session = await here.session(90 + number)
  // The session as stored while it runs.
  const { end: _, result: __, ...open } = session
  const recording = { state: 'open' as const, size: 0, frames: 0, digest: '' }
  await here.store.sessions.create({ ...open, id, begin: here.clock.now, recording })
  await here.audit.record('session.open', { session: id })
  const { grant, directory } = await recordingService.prepare(id, here.clock.now, { user: 'ops1' })
  const clock = new ManualClock()
  const writer = await RecordingWriter.open(grant, {
    create: serviceFile(recordingService, id),
    sign: (statement) => recordingService.sign(id, statement),
    clock,
    onFailure: (error) => {
      throw error
    },
  })
  return {
    id,
    clock,
    writer,
    path: join(directory, FILE_NAME),
    output: (text) => {
      clock.time += 1_000_000
      writer.write(FRAME.output, 1, Buffer.from(text))
      return writer.flush()
    },
  }
}
const noted = async () =>
  (await here.events('recording.progress')).map(({ fields }) =>
    progressOf((fields as { object: string }).object),
  )
const look = async (after: number): Promise<void> => {
  here.clock.now += after
  time += after
  await progress.look()
}
const faults = async () =>
  (
    await crossCheck(here.root, await listed(here.root), await gatherEvidence(here.store.audit, undefined))
  ).map(({ code, session }) => `${session} ${code}`)
/** Kills the broker: running sessions are not closed. */
const recovered = () => {
  recordingService = new RecordingService({
    root: here.root,
    keys: {
      signing: signer.key,
      signer: signer.raw,
      trusted: [signer.raw],
      identities: [identity],
      recipient,
    },
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  return recoverSessions({
    store: here.store,
    audit: here.audit,
    recordingService,
    now: () => here.clock.now,
  })
}

describe('a recording that runs', () => {
  test('is noted as far as it lies on the disk, signed, at least every 10 s while it grows, and not while it does not', async () => {
    const { id, output, path } = await running(1)
    await output('one')
    await output('two')
    await look(100)
    // The last checkpoint may not have reached the disk, as far as the service knows.
    const first = (await noted())[0]![0]!
    const bytes = readFileSync(path)
    expect(first.session).toBe(id)
    expect(first.noted.size).toBeLessThan(bytes.length)
    expect(bytes.subarray(0, first.noted.size).subarray(-32).toString('hex')).toBe(first.noted.digest)
    expect((await here.store.audit.last())?.code).toBe('audit.checkpoint')

    for (let waited = 0; waited < 9; waited++) await look(1000)
    const notes = await noted()
    expect(notes).toHaveLength(2)
    expect(notes[1]).toEqual([
      {
        session: id,
        noted: { size: bytes.length, digest: bytes.subarray(-32).toString('hex'), milliseconds: 2000 },
      },
    ])
    for (let waited = 0; waited < 30; waited++) await look(1000)
    expect(await noted()).toHaveLength(2)
    expect(await faults()).toEqual([])
  })

  test('is noted as before when the clock goes back', async () => {
    const { output, path } = await running(1)
    await output('one')
    await look(2000)
    here.clock.now -= 3_600_000
    await output('two')
    for (let waited = 0; waited < 9; waited++) await look(1000)
    expect((await noted()).at(-1)).toMatchObject([{ noted: { size: readFileSync(path).length } }])
  })

  test('is not noted beyond what the file has', async () => {
    const { output, path } = await running(1)
    await output('one')
    await output('two')
    await output('three')
    truncateSync(path, readFileSync(path).length - 1)
    for (let waited = 0; waited < 20; waited++) await look(1000)
    const notes = (await noted()).flat()
    expect(notes).toHaveLength(1)
    expect(notes[0]!.noted.size).toBeLessThan(readFileSync(path).length)
  })

  test('costs a row for some twenty of them, each noted in one', async () => {
    const all = await Promise.all(Array.from({ length: 45 }, (_, number) => running(number + 10)))
    for (const { output } of all) await output('one')
    await look(2000)
    const notes = await noted()
    expect(notes.length).toBeLessThanOrEqual(3)
    expect(new Set(notes.flat().map(({ session }) => session)).size).toBe(45)
    expect(await faults()).toEqual([])
  })

  test('is tried again when the audit log cannot be written', async () => {
    const { output } = await running(1)
    await output('one')
    const { audit } = here
    let fails = true
    progress = new Progress({
      recordingService,
      audit: { record: (...event) => (fails ? Promise.reject(new Error('full')) : audit.record(...event)) },
      checkpoint: () => audit.checkpoint(),
      monotonic: () => time,
    })
    await expect(look(2000)).rejects.toThrow('full')
    fails = false
    await look(1000)
    expect(await noted()).toHaveLength(1)
  })
})

describe('after a hard stop a recording', () => {
  async function stopped(number = 1): Promise<Running> {
    const one = await running(number)
    for (const text of ['one', 'two', 'three']) await one.output(text)
    await look(2000)
    return one
  }

  test('that has all that was noted is told so, and what came later may be torn', async () => {
    const { id, output, path } = await stopped()
    await output('four')
    truncateSync(path, readFileSync(path).length - 20)
    const [report] = await recovered()
    expect(report).toContain('all 3.000 s that had been noted are there')
    expect(await here.events('recording.recovered')).toMatchObject([{ fields: { session: id, duration: 0 } }])
    expect(await here.events('recording.failed')).toEqual([])
    expect(await faults()).toEqual([])
  })

  test.each([
    ['is cut at the end of a record', (bytes: Buffer, records: number[]) => bytes.subarray(0, records[2])],
    [
      'is cut in the middle of one',
      (bytes: Buffer, records: number[]) => bytes.subarray(0, records[2]! + 30),
    ],
  ])('that %s lacks the seconds that are told, for ever', async (_, change) => {
    const { id, path } = await stopped()
    const bytes = readFileSync(path)
    const ends = recordsOf(bytes).map(({ end }) => end)
    writeFileSync(path, change(bytes, ends))
    expect(await faults()).toEqual([`${id} lost_tail`])
    const [report] = await recovered()
    expect(report).toContain('at least 2.000 s that had been written are missing')
    expect(await here.events('recording.failed')).toMatchObject([
      { fields: { session: id, result: 'lost', duration: 2000 } },
    ])
    expect(await here.events('recording.recovered')).toMatchObject([
      { fields: { session: id, duration: 2000 } },
    ])
    expect((await findRecording(here.root, id))?.state).toBe('recovered')
    expect(await faults()).toEqual([`${id} lost_tail`])
  })

  test.each([true, false])(
    'whose folder is gone stays missing, and no tombstone hides it (noted: %s)',
    async (isNoted) => {
      const { id, path } = isNoted ? await stopped() : await running(1)
      rmSync(join(path, '..'), { recursive: true })
      if (isNoted) expect(await faults()).toEqual([`${id} missing_session`])
      await recovered()
      expect(await here.events('recording.failed')).toMatchObject([
        { fields: { session: id, result: 'lost' } },
      ])
      expect(await faults()).toEqual([`${id} missing_session`])
      const tell = async (fields: object) => {
        await here.audit.record('recording.deleted', { session: id, user: 'admin', ...fields })
      }
      await here.deletion.remove(id, { method: 'request', reason: 'gone anyway', tell })
      await tell({ reason: 'gone anyway', size: 0 })
      expect(await faults()).toEqual([`${id} missing_session`])
    },
  )

  test('that was lost can be deleted as far as it is there', async () => {
    const { id, path } = await stopped()
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.subarray(0, recordsOf(bytes)[2]!.end))
    await recovered()
    await here.deletion.remove(id, {
      method: 'request',
      reason: 'seen',
      tell: (fields) => here.audit.record('recording.deleted', { ...fields, user: 'admin' }),
    })
    expect(await faults()).toEqual([])
  })

  test('that nobody recovers, its row being gone from the sessions too, is missed', async () => {
    const { id, path } = await stopped()
    rmSync(join(path, '..'), { recursive: true })
    const evidence = await gatherEvidence(here.store.audit, id)
    expect(evidence.sessions.get(id)?.noted?.milliseconds).toBe(3000)
    expect(await faults()).toEqual([`${id} missing_session`])
  })
})

describe('entries of progress', () => {
  test('are read as they were written, and what is none is left out', () => {
    const entry = progressEntry(idOf(1), { size: 12, digest: 'ab'.repeat(32), time: 1_999_999 })
    const found = { session: idOf(1), noted: { size: 12, digest: 'ab'.repeat(32), milliseconds: 1999 } }
    expect(progressOf(`${entry} x:1:2:3  ${entry.slice(1)}: ${entry}`)).toEqual([found, found])
    expect(progressOf('')).toEqual([])
  })
})
