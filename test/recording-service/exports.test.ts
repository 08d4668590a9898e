/**
 * Exports as the API gets them: from threads, of recordings that may be running, sealed to others or empty.
 */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RecordingError } from '../../recordings/container/format/error.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { makeIdentity, recipientOf } from '../../recordings/container/keys.ts'
import type { Bucket } from '../../recordings/storage/bucket/bucket.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { storeAway } from '../../recordings/storage/stored-away.ts'
import { TooManyExports } from '../../src/recording-service/exporting/threads.ts'
import {
  type RecordingExports,
  recordingExports,
  StillRecording,
} from '../../src/recording-service/exports.ts'
import { RecordingService } from '../../src/recording-service/service.ts'
import { busy } from '../recordings/replay-support.ts'
import { identity, makeRoot, makeSigner, makeWriter, removeRoots } from '../recordings/support.ts'

afterAll(removeRoots)

let root = ''
let exports: RecordingExports
beforeEach(async () => {
  root = makeRoot()
  exports = recordingExports(await recordingServiceWith(identity))
})
afterEach(() => exports.close())

async function recordingServiceWith(own: typeof identity, bucket?: Bucket): Promise<RecordingService> {
  const signer = makeSigner()
  const keys = {
    signing: signer.key,
    signer: signer.raw,
    trusted: [signer.raw],
    identities: [own],
    recipient: await recipientOf(own),
  }
  return new RecordingService({
    root,
    keys,
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
    ...(bucket && { bucket }),
  })
}

async function recorded(session: string, seconds = 5) {
  const made = await makeWriter({ root, session })
  await busy(made, seconds)
  return made
}

async function all(stream: Readable | undefined): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const piece of stream ?? []) parts.push(piece as Buffer)
  return Buffer.concat(parts)
}

test('what is asked for comes whole', async () => {
  const made = await recorded('s1', 30)
  await made.writer.close({ result: 'success' })
  const cast = (await all(await exports.open('s1', 'cast'))).toString()
  expect(cast.trimEnd().split('\n')).toHaveLength(1 + 120 + 2)
  expect((await all(await exports.open('s1', 'txt', { channel: 1 }))).toString()).toContain('turn 118')
  const png = await all(await exports.open('s1', 'png', { at: 2 }))
  expect(png.toString('latin1', 1, 4)).toBe('PNG')
  expect(await exports.open('s1', 'png', { channel: 5 })).toBeUndefined()
  expect(await exports.open('s2', 'cast')).toBeUndefined()
})

test('a running session is shown as far as it is written, and not drawn', async () => {
  const made = await recorded('s1')
  await expect(exports.open('s1', 'html')).rejects.toThrow(StillRecording)
  let shown = ''
  for (let tries = 0; tries < 100 && !shown.includes('turn 3'); tries++) {
    shown = (await all(await exports.open('s1', 'json'))).toString()
  }
  expect(shown).toContain('turn 3')
  await made.writer.close({ result: 'success' })
})

test('what is sealed to others is a wrong key', async () => {
  const made = await recorded('s1')
  await made.writer.close({ result: 'success' })
  const foreign = recordingExports(await recordingServiceWith(await makeIdentity()))
  await expect(foreign.open('s1', 'cast')).rejects.toThrow(RecordingError)
  await expect(foreign.open('s1', 'cast')).rejects.toMatchObject({ code: 'wrong_key' })
  expect((await all(await foreign.open('s1', 'container'))).length).toBeGreaterThan(100)
})

test('a reader that does not read holds one piece, and so many at a time are served', async () => {
  const made = await makeWriter({ root, session: 's1' })
  made.writer.write(FRAME.channelOpen, 1, Buffer.from('{"kind":"exec"}'))
  for (let count = 0; count < 200; count++) {
    made.writer.write(FRAME.output, 1, Buffer.alloc(32 * 1024, 'x'))
    if (count % 32 === 0) await new Promise<void>((resolve) => made.writer.onDrain(resolve))
  }
  await made.writer.close({ result: 'success' })
  const streams = await Promise.all([1, 2, 3, 4].map(() => exports.open('s1', 'cast')))
  await expect(exports.open('s1', 'cast')).rejects.toThrow(TooManyExports)
  await new Promise((resolve) => setTimeout(resolve, 200))
  for (const stream of streams) expect(stream!.readableLength).toBeLessThan(512 * 1024)
  streams[0]?.destroy()
  expect((await all(streams[1])).length).toBeGreaterThan(200 * 32 * 1024)
  expect((await all(await exports.open('s1', 'cast'))).length).toBeGreaterThan(200 * 32 * 1024)
})

test('what is fetched first counts as well, and is given up when the broker stops', async () => {
  const made = await recorded('s1')
  await made.writer.close({ result: 'success' })
  const entry = await findRecording(root, 's1')
  const bytes = readFileSync(made.path)
  await storeAway(entry!, { key: 'far/away', sha256: '00' })
  let asked = 0
  let answer: () => void = () => undefined
  const slow = new Promise<void>((resolve) => {
    answer = resolve
  })
  const bucket = {
    async ask(operation: string) {
      if (operation === 'size') return bytes.length
      asked++
      await slow
      return bytes
    },
  }
  const far = recordingExports(await recordingServiceWith(identity, bucket as unknown as Bucket))
  const underWay = [1, 2, 3, 4].map(() => far.open('s1', 'cast'))
  const ended = Promise.allSettled(underWay)
  await vi.waitFor(() => expect(asked).toBe(4))
  await expect(far.open('s1', 'cast')).rejects.toThrow(TooManyExports)
  const closed = far.close()
  answer()
  await closed
  for (const { status } of await ended) expect(status).toBe('rejected')
  expect(asked).toBe(4)
})

test.each([0, 50])('one that nobody waits for any more after %i ms makes room', async (after) => {
  const made = await recorded('s1', 600)
  await made.writer.close({ result: 'success' })
  const gone = new AbortController()
  const underWay = [1, 2, 3, 4].map(() => exports.open('s1', 'mp4', {}, gone.signal))
  const ended = Promise.allSettled(underWay)
  // Whether their threads have started by then or not; the index takes longer.
  if (after > 0) await new Promise((resolve) => setTimeout(resolve, after))
  gone.abort()
  for (const { status } of await ended) expect(status).toBe('rejected')
  expect((await all(await exports.open('s1', 'txt'))).length).toBeGreaterThan(1000)
})
