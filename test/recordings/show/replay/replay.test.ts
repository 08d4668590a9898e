/** Index and replay: any moment looks the same as after replaying everything before it. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId, Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  INDEX_FILE_NAME,
  INDEX_HEADER_LENGTH,
  parseIndexHeader,
} from '../../../../recordings/container/format/index.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Screen } from '../../../../recordings/decode/terminal/screen.ts'
import { IndexFile } from '../../../../recordings/show/index/file.ts'
import { isIndexed, RecordingIndex } from '../../../../recordings/show/index/reader.ts'
import { Replay } from '../../../../recordings/show/replay/replay.ts'
import { busy, open, type Recorded, record, SECOND } from '../../replay-support.ts'
import { makeRoot, readFrames, removeRoots } from '../../support.ts'

afterAll(removeRoots)

const MINUTES = 10
let made: Recorded
let path = ''

beforeAll(async () => {
  made = await record(async (writing) => {
    open(writing, 9)
    writing.writer.write(FRAME.output, 9, Buffer.from('line one\nline two\n'))
    await busy(writing, MINUTES * 60)
    writing.writer.write(FRAME.errorOutput, 9, Buffer.from('late\n'))
  })
  path = join(made.directory, INDEX_FILE_NAME)
})

/** Returns the screen of a channel at a time, by replaying everything. */
async function straight(channel: number, time: number): Promise<{ text: string[]; snapshot: string }> {
  let screen: Screen | undefined
  for (const frame of await readFrames(made.path, made.grant.key)) {
    if (frame.channel !== channel || frame.time > time) continue
    if (frame.type === FRAME.channelOpen) screen = Screen.of(frame.payload)
    await screen?.apply(frame)
  }
  await screen!.emulator.settle()
  return { text: screen!.emulator.text(), snapshot: screen!.emulator.snapshot() }
}

async function at(channel: number, time: number) {
  const replay = await Replay.open(made.entry, made.grant.key)
  const playhead = await replay.at(replay.directory.channels.find((one) => one.channel === channel)!, time)
  const { emulator } = playhead.screen
  const seen = { text: emulator.text(), snapshot: emulator.snapshot() }
  await playhead.close()
  await replay.close()
  return seen
}

describe('a replay', () => {
  test('makes the index where there is none, and knows channels and chapters', async () => {
    const replay = await Replay.open(made.entry, made.grant.key)
    expect(existsSync(path)).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const { channels, chapters, keyframes, duration } = replay.directory
    expect(channels).toMatchObject([
      { channel: 9, kind: 'exec', command: 'make all', hasTerminal: false },
      { channel: 1, kind: 'shell', hasTerminal: true, columns: 80, rows: 24, outputs: MINUTES * 240 },
    ])
    expect(replay.mainChannel?.channel).toBe(1)
    expect(duration).toBe(MINUTES * 60 * SECOND)
    expect(chapters.filter(({ type }) => type === 'command').map(({ text }) => text)).toEqual(
      Array.from({ length: MINUTES }, (_, minute) => `command ${minute * 240}`),
    )
    expect(keyframes.length).toBeGreaterThan(5)
    await replay.close()
  })

  test.each([0.1, 1, 59.9, 60, 123.4, 300, 457.25, 599.9, 600, 10_000])(
    'after %d s shows what was there',
    async (seconds) => {
      expect(await at(1, seconds * SECOND)).toEqual(await straight(1, seconds * SECOND))
    },
  )

  test('shows a command without a terminal in lines', async () => {
    expect((await at(9, MINUTES * 60 * SECOND)).text.slice(0, 3)).toEqual(['line one', 'line two', 'late'])
  })

  test('looks where nothing can be written', async () => {
    const index = readFileSync(path)
    writeFileSync(path, 'nonsense')
    const inTheWay = `${path}.${process.pid}-${threadId}.tmp`
    mkdirSync(inTheWay)
    try {
      expect(await at(1, 300 * SECOND)).toEqual(await straight(1, 300 * SECOND))
      expect(readFileSync(path, 'utf8')).toBe('nonsense')
    } finally {
      rmdirSync(inTheWay)
      writeFileSync(path, index)
    }
  })
})

describe('an index', () => {
  const recording = () => ({ size: made.entry.size, digest: made.entry.digest! })

  test('is of one recording, and opens with its key only', async () => {
    expect(await isIndexed(path, recording())).toBe(true)
    expect(await isIndexed(path, { ...recording(), size: 1 })).toBe(false)
    expect(await isIndexed(path, { ...recording(), digest: 'a'.repeat(64) })).toBe(false)
    const other = Buffer.alloc(32, 7)
    expect(await RecordingIndex.open(path, other, recording())).toBeUndefined()
    expect(readFileSync(path).includes('load load')).toBe(false)
  })

  test.each([8, 20, 60, 90, 97])('is made anew when byte %d of it was changed', async (offset) => {
    const before = readFileSync(path)
    const changed = Buffer.from(before)
    changed[offset]! ^= 1
    writeFileSync(path, changed)
    expect(await RecordingIndex.open(path, made.grant.key, recording())).toBeUndefined()
    expect(await at(1, 300 * SECOND)).toEqual(await straight(1, 300 * SECOND))
    const after = readFileSync(path)
    const salts = [before, after].map((bytes) => parseIndexHeader(bytes)?.salt.toString('hex'))
    expect(salts[0], 'each has a key of its own').not.toBe(salts[1])
    expect(await isIndexed(path, recording())).toBe(true)
  })

  test('is not written to by two threads', async () => {
    const beside = join(makeRoot(), INDEX_FILE_NAME)
    const [mine, theirs] = [Buffer.alloc(1000, 'a'), Buffer.alloc(1000, 'b')]
    const file = await IndexFile.create(beside, INDEX_HEADER_LENGTH)
    const url = new URL('../../../../recordings/show/index/file.ts', import.meta.url).href
    const script = `
      const { parentPort, workerData: { url, beside, reserved, bytes } } = require('node:worker_threads')
      import(url).then(async ({ IndexFile }) => {
        await (await IndexFile.create(beside, reserved)).append(Buffer.from(bytes))
        parentPort.postMessage('written')
      })`
    const workerData = { url, beside, reserved: INDEX_HEADER_LENGTH, bytes: theirs }
    const worker = new Worker(script, { eval: true, workerData })
    await file.append(mine)
    expect((await once(worker, 'message'))[0]).toBe('written')
    await file.close(Buffer.alloc(INDEX_HEADER_LENGTH))
    await worker.terminate()
    expect(readFileSync(beside).subarray(INDEX_HEADER_LENGTH).toString()).toBe(mine.toString())
  })

  test('with a damaged keyframe is used without it', async () => {
    const index = await RecordingIndex.open(path, made.grant.key, recording())
    const changed = readFileSync(path)
    for (const { block } of index!.directory.keyframes) changed[block[1]]! ^= 1
    await index!.close()
    writeFileSync(path, changed)
    expect(await at(1, 300 * SECOND)).toEqual(await straight(1, 300 * SECOND))
  })
})
