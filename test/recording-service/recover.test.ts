/** The broker's start after a crash: the events about recordings, each written once. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { verifyStream } from '../../recordings/container/verify.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { recoverSessions } from '../../src/recording-service/recover.ts'
import { RecordingService } from '../../src/recording-service/service.ts'
import { identity, inPieces, makeSigner, recipient, removeRoots } from '../recordings/support.ts'
import { idOf, type Setting, startSetting } from './setting.ts'

let here: Setting
let recordingService: RecordingService
const signer = makeSigner()
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

const start = () =>
  recoverSessions({ store: here.store, audit: here.audit, recordingService, now: () => here.clock.now })
/** Leaves a running session after a crash; its recording is that of `change`. */
async function crashed(number: number, change: (bytes: Buffer) => Buffer): Promise<string> {
  const { id } = await here.session(number, {}, { open: true })
  const path = join((await findRecording(here.root, id))!.directory, FILE_NAME)
  writeFileSync(path, change(readFileSync(path)))
  return path
}
const stateOf = async (number: number) => (await here.store.sessions.find(idOf(number)))?.recording?.state

test('a session that runs on in another broker, and its recording, are left alone', async () => {
  const path = await crashed(1, (bytes) => bytes)
  const other = await crashed(2, (bytes) => bytes)
  const before = [readFileSync(path), await here.store.sessions.find(idOf(1))]
  const report = await recoverSessions({
    store: here.store,
    audit: here.audit,
    recordingService,
    now: () => here.clock.now,
    runsElsewhere: (session) => session === idOf(1),
  })
  expect(report).toEqual([expect.stringContaining(idOf(2))])
  expect([readFileSync(path), await here.store.sessions.find(idOf(1))]).toEqual(before)
  expect((await verifyStream(inPieces(readFileSync(other)))).fault).toBeUndefined()
  expect(await here.events('session.close')).toHaveLength(1)
})

describe('a recording that a disk error has left open at the end of its session', () => {
  const failed = { state: 'failed', size: 0, frames: 0, digest: '' } as const
  /** Leaves a session as stored at its end; its file is that of `change`. */
  async function ended(number: number, change: (bytes: Buffer) => Buffer): Promise<string> {
    const { id } = await here.session(number, {
      result: 'killed',
      reason: 'the disk is full',
      recording: failed,
    })
    const path = join((await findRecording(here.root, id))!.directory, FILE_NAME)
    writeFileSync(path, change(readFileSync(path)))
    return path
  }
  const torn = (bytes: Buffer) => bytes.subarray(0, -200)

  test('is looked for where a session ended in order, and its recording failed without a digest', async () => {
    await ended(1, torn)
    await here.session(2, { result: 'lost', recording: failed })
    await here.session(3, { recording: { ...failed, digest: 'd1' } })
    await here.session(4)
    await here.session(5, {}, { open: true })
    expect((await here.store.sessions.unsealed()).map(({ id }) => id)).toEqual([idOf(1)])
  })

  test('is sealed at the next start, and all else of the session stays as it was told', async () => {
    const path = await ended(1, torn)
    const before = await here.store.sessions.find(idOf(1))
    expect(await start()).toEqual([expect.stringMatching(/had ended: its recording is sealed up to /)])
    const { digest, size, state, fault } = await verifyStream(inPieces(readFileSync(path)))
    expect([state, fault]).toEqual(['recovered', undefined])
    const after = await here.store.sessions.find(idOf(1))
    expect(after).toEqual({ ...before, recording: { state, size, frames: expect.any(Number), digest } })
    expect(await here.events('recording.recovered')).toMatchObject([
      { fields: { session: idOf(1), digest, size } },
    ])
    expect(await here.events('session.close')).toEqual([])
    expect(await start()).toEqual([])
  })

  test('is sealed at a later start where it cannot be at this one', async () => {
    const path = await ended(1, torn)
    const sign = recordingService.signRecovered
    recordingService.signRecovered = () => Promise.reject(new Error('no space left on device'))
    expect(await start()).toEqual([expect.stringMatching(/cannot be sealed now either: no space left/)])
    expect(await stateOf(1)).toBe('failed')
    expect(await here.events('recording.failed')).toEqual([])
    recordingService.signRecovered = sign
    expect(await start()).toHaveLength(1)
    expect((await verifyStream(inPieces(readFileSync(path)))).fault).toBeUndefined()
  })

  test('is told though a crash came between its seal and the account of it', async () => {
    await ended(1, torn)
    const sessions = { ...here.store.sessions, update: () => Promise.reject(new Error('killed')) }
    const now = () => here.clock.now
    const killed = recoverSessions({
      store: { ...here.store, sessions },
      audit: here.audit,
      recordingService,
      now,
    })
    await expect(killed).rejects.toThrow('killed')
    expect(await start()).toHaveLength(1)
    expect(await stateOf(1)).toBe('recovered')
    expect(await start()).toEqual([])
  })

  test('stays failed where it is damaged, is gone, or was closed in a way that nobody has seen', async () => {
    const damaged = await ended(1, (bytes) => {
      bytes[300] = (bytes[300] ?? 0) ^ 1
      return torn(bytes)
    })
    const closed = await ended(2, (bytes) => bytes)
    rmSync(dirname(await ended(3, torn)), { recursive: true })
    const before = [damaged, closed].map((path) => readFileSync(path))
    expect(await start()).toEqual([])
    expect(await Promise.all([1, 2, 3].map(stateOf))).toEqual(['failed', 'failed', 'failed'])
    expect([damaged, closed].map((path) => readFileSync(path))).toEqual(before)
    expect(await here.events('recording.recovered')).toEqual([])
    expect(await here.events('recording.failed')).toEqual([])
  })
})

describe('a recording that a crash has left', () => {
  test('damaged is told once, left as it is, and still found by verify', async () => {
    const path = await crashed(1, (bytes) => {
      bytes[bytes.length - 300] = (bytes[bytes.length - 300] ?? 0) ^ 1
      bytes[20] = (bytes[20] ?? 0) ^ 1
      return bytes
    })
    const damaged = readFileSync(path)
    expect(await start()).toEqual([expect.stringContaining('its recording is damaged and left as it is')])
    expect(await stateOf(1)).toBe('failed')
    const told = await here.events('recording.failed')
    expect(told).toHaveLength(1)
    for (let again = 0; again < 3; again++) expect(await start()).toEqual([])
    expect(await here.events('recording.failed')).toEqual(told)
    expect(readFileSync(path).equals(damaged)).toBe(true)
    expect((await verifyStream(inPieces(damaged))).fault?.code).toBe('damaged_header')
  })

  test('of a session that an API key has opened names the key in what is told of it', async () => {
    await here.session(1, { apiKey: 'gateway' }, { open: true })
    await start()
    for (const code of ['recording.sealed', 'session.close']) {
      expect([code, await here.events(code)]).toMatchObject([
        code,
        [{ fields: { user: 'ops1', api_key: 'gateway' } }],
      ])
    }
  })

  test('that somebody has removed is told as gone, and one without a frame as not begun', async () => {
    const { id } = await here.session(1, {}, { open: true })
    rmSync((await findRecording(here.root, id))!.directory, { recursive: true })
    await crashed(2, () => Buffer.alloc(0))
    // The newest first.
    expect(await start()).toEqual([
      expect.stringContaining('its recording had not begun'),
      expect.stringContaining('its folder is gone'),
    ])
    expect((await here.events('recording.failed')).map(({ fields }) => fields)).toMatchObject([
      { session: idOf(2), reason: 'its recording had not begun' },
      { session: idOf(1), reason: 'its recording is not there: its folder is gone' },
    ])
  })

  test('is told in the audit log before its session counts as closed: a crash in between leaves it for the next start', async () => {
    await crashed(1, (bytes) => bytes)
    const store = {
      ...here.store,
      sessions: { ...here.store.sessions, update: () => Promise.reject(new Error('killed')) },
    }
    const now = () => here.clock.now
    await expect(recoverSessions({ store, audit: here.audit, recordingService, now })).rejects.toThrow(
      'killed',
    )
    expect(await here.events('session.close')).toHaveLength(1)
    expect(await start()).toHaveLength(1)
    expect(await here.events('session.close')).toHaveLength(2)
    expect(await start()).toEqual([])
  })

  test('torn is sealed, and told once, with its digest', async () => {
    const path = await crashed(1, (bytes) => bytes.subarray(0, -200))
    expect(await start()).toHaveLength(1)
    expect(await start()).toEqual([])
    const { digest } = await verifyStream(inPieces(readFileSync(path)))
    expect(await here.events('recording.recovered')).toMatchObject([{ fields: { session: idOf(1), digest } }])
  })

  test('closed, before its digest was in the audit log, is told with its digest', async () => {
    const path = await crashed(1, (bytes) => bytes)
    expect(await start()).toEqual([expect.stringContaining('its recording was closed in order')])
    const { digest, size } = await verifyStream(inPieces(readFileSync(path)))
    expect(await here.events('recording.sealed')).toMatchObject([{ fields: { digest, size } }])
    expect(await stateOf(1)).toBe('sealed')
  })
})
