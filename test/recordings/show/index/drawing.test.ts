/**
 * Drawings for keyframes: terminals within their allowance of time, and lines of channels without a terminal.
 */
import { Buffer } from 'node:buffer'
import { afterAll, describe, expect, test } from 'vitest'
import { FRAME, type Frame } from '../../../../recordings/container/frames.ts'
import { runPass } from '../../../../recordings/container/pass.ts'
import { RecordingReader } from '../../../../recordings/container/reader.ts'
import { readPieces } from '../../../../recordings/container/session-file.ts'
import { Emulator } from '../../../../recordings/decode/terminal/emulator.ts'
import { Screen } from '../../../../recordings/decode/terminal/screen.ts'
import { Allowance } from '../../../../recordings/show/index/allowance.ts'
import { IndexBuilder, PLAIN_KEYFRAME_OUTPUT } from '../../../../recordings/show/index/builder.ts'
import {
  type Drawing,
  PLAIN_TAIL,
  PlainDrawing,
  TerminalDrawing,
} from '../../../../recordings/show/index/drawing.ts'
import { RecordingIndex } from '../../../../recordings/show/index/reader.ts'
import { Replay } from '../../../../recordings/show/replay/replay.ts'
import { open, record, SECOND } from '../../replay-support.ts'
import { removeRoots } from '../../support.ts'

afterAll(removeRoots)

const SIZE = { columns: 80, rows: 24 }

const frame = (payload: string | Uint8Array, type: Frame['type'] = FRAME.output): Frame => ({
  type,
  channel: 1,
  time: 0,
  payload: Buffer.from(payload),
})

/** Returns the text of a drawing's restored snapshot, or undefined if it has none. */
async function shown(drawing: Drawing): Promise<string[] | undefined> {
  const snapshot = await drawing.snapshot()
  if (!snapshot) return undefined
  const emulator = new Emulator(snapshot)
  await emulator.restore(snapshot.text)
  return emulator.text()
}

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `line ${from + n} \x1b[32mgrün\x1b[m\n`).join('')

/** Draws the same frames from the first one on. */
async function straight(frames: readonly Frame[]): Promise<Screen> {
  const screen = new Screen(SIZE, false)
  for (const one of frames) await screen.apply(one)
  await screen.emulator.settle()
  return screen
}

describe('a channel without a terminal', () => {
  test('shows all of a little, exactly', async () => {
    const frames = [frame('one\n\x1b[31mtwo'), frame('late\n', FRAME.errorOutput), frame('界\n')]
    const drawing = new PlainDrawing(SIZE)
    for (const one of frames) drawing.apply(one)
    expect((await drawing.snapshot())?.text).toBe((await straight(frames)).emulator.snapshot())
  })

  test.each([1, 100, 5000, 50_000])('shows the last lines of much, in pieces of %d bytes', async (piece) => {
    const bytes = Buffer.from(lines(0, 3000))
    expect(bytes.length).toBeGreaterThan(2 * PLAIN_TAIL)
    const frames: Frame[] = []
    for (let at = 0; at < bytes.length; at += piece) frames.push(frame(bytes.subarray(at, at + piece)))
    const drawing = new PlainDrawing(SIZE)
    for (const one of frames) drawing.apply(one)
    expect(await shown(drawing)).toEqual((await straight(frames)).emulator.text())
  })

  test('has no keyframe in the middle of a character or a sequence', async () => {
    const drawing = new PlainDrawing(SIZE)
    drawing.apply(frame('text \x1b['))
    expect(await shown(drawing)).toBeUndefined()
    drawing.apply(frame(Buffer.from('31mred 界').subarray(0, -1)))
    expect(await shown(drawing)).toBeUndefined()
    drawing.apply(frame(Buffer.from('界').subarray(-1)))
    expect((await shown(drawing))?.[0]).toBe('text red 界')
  })

  test('shows the same lines from a keyframe as from its beginning', async () => {
    const count = Math.ceil((3 * PLAIN_KEYFRAME_OUTPUT) / lines(0, 1000).length)
    const made = await record(async (writing) => {
      open(writing, 1)
      for (let n = 0; n < count; n++) {
        writing.clock.time += SECOND
        writing.writer.write(FRAME.output, 1, Buffer.from(lines(n * 1000, (n + 1) * 1000)))
        await new Promise<void>((resolve) => writing.writer.onDrain(resolve))
      }
    })
    const replay = await Replay.open(made.entry, made.grant.key)
    const { keyframes, channels } = replay.directory
    expect(keyframes.length).toBeGreaterThan(1)
    const time = keyframes.at(-1)!.time
    const playhead = await replay.at(channels[0]!, time)
    const written = Math.round(time / SECOND)
    expect(playhead.screen.emulator.text()[22]?.split(' ')[1]).toBe(String(written * 1000 - 1))
    await playhead.close()
    await replay.close()
  })
})

describe('drawing that costs too much', () => {
  /** Makes an allowance under which every piece of work takes this many seconds. */
  const costing = (seconds: number) => {
    let used = 0
    return new Allowance(() => {
      used += seconds
      return used
    })
  }
  const screenfuls = lines(0, 2000)

  test('is left, and what is cheap is not', async () => {
    const cheap = costing(0.001)
    const drawing = new TerminalDrawing(SIZE, cheap)
    await drawing.apply(frame(screenfuls))
    expect(cheap.isSpent).toBe(false)
    expect((await shown(drawing))?.some((line) => line.includes('line 1999'))).toBe(true)

    const dear = costing(4)
    const left = new TerminalDrawing(SIZE, dear)
    await left.apply(frame(screenfuls))
    expect(dear.isSpent).toBe(true)
    expect(left.apply(frame(screenfuls)), 'nothing more is drawn').toBeUndefined()
    expect(((await shown(left)) ?? []).join()).not.toContain('line 1999')
  })

  test('earns more with what it draws, but no end of it', () => {
    const allowance = costing(50)
    for (let n = 0; n < 1000; n++) allowance.earn(1024 * 1024)
    expect(allowance.isSpent).toBe(false)
    return Promise.all([1, 2, 3].map(() => allowance.spend(async () => undefined))).then(() =>
      expect(allowance.isSpent).toBe(true),
    )
  })

  test('leaves the index without keyframes, and the recording to be replayed from its beginning', async () => {
    const made = await record(async (writing) => {
      open(writing, 1, { columns: 80, rows: 24 })
      for (let second = 0; second < 20; second++) {
        writing.clock.time += SECOND
        writing.writer.write(FRAME.output, 1, Buffer.from(lines(second * 2000, (second + 1) * 2000)))
        await new Promise<void>((resolve) => writing.writer.onDrain(resolve))
      }
    })
    const keyframesUnder = async (allowance: Allowance): Promise<number> => {
      const path = `${made.path}.idx`
      const recording = { size: made.entry.size, digest: made.entry.digest! }
      const reader = await RecordingReader.open(readPieces(made.path), made.grant.key)
      const options = { path, key: made.grant.key, recording, salt: Buffer.alloc(32), allowance }
      await runPass(reader, [await IndexBuilder.create(options)])
      const index = await RecordingIndex.open(path, made.grant.key, recording)
      await index!.close()
      expect(index!.directory.channels).toMatchObject([{ channel: 1, outputs: expect.any(Number) }])
      return index!.directory.keyframes.length
    }
    expect(await keyframesUnder(costing(0))).toBeGreaterThan(0)
    expect(await keyframesUnder(costing(4))).toBe(0)
  })
})
