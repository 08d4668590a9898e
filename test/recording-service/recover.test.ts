/** The broker's start after a crash: what is told of recordings, and that it is told once. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { verifyStream } from '../../recordings/container/verify.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { recoverSessions } from '../../src/recording-service/recover.ts'
import { RecordingKeeper } from '../../src/recording-service/service.ts'
import { identity, inPieces, makeSigner, recipient, removeRoots } from '../recordings/support.ts'
import { idOf, type Setting, startSetting } from './setting.ts'

let here: Setting
let keeper: RecordingKeeper
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
  keeper = new RecordingKeeper({ root: here.root, keys, recipients: [], brokerKey: true, minimumFree: 0 })
})
afterEach(() => here.close())
afterAll(removeRoots)

const start = () =>
  recoverSessions({ store: here.store, audit: here.audit, keeper, now: () => here.clock.now })
/** A session that the crash has left running; its recording as `change` leaves it. */
async function crashed(number: number, change: (bytes: Buffer) => Buffer): Promise<string> {
  const { id } = await here.session(number, {}, { open: true })
  const path = join((await findRecording(here.root, id))!.directory, FILE_NAME)
  writeFileSync(path, change(readFileSync(path)))
  return path
}
const stateOf = async (number: number) => (await here.store.sessions.find(idOf(number)))?.recording?.state

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
    // the newest first
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
    await expect(recoverSessions({ store, audit: here.audit, keeper, now })).rejects.toThrow('killed')
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
