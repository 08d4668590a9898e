/**
 * A recording of an RDP desktop: a seek to any second, by keyframes, shows the same as drawing all updates up
 * to it.
 */
import { Buffer } from 'node:buffer'
import { afterAll, expect, test } from 'vitest'
import { FRAME } from '../../../../../recordings/container/frames.ts'
import { encodeDesktopSize } from '../../../../../recordings/decode/graphics/events.ts'
import { RdpPainter } from '../../../../../recordings/decode/graphics/rdp/painter.ts'
import { Replay } from '../../../../../recordings/show/replay/replay.ts'
import { removeRoots } from '../../../support.ts'
import { recordDesktop, type Step } from '../support.ts'
import { bitmap, bitmapUpdate, message, pointer, words } from './updates.ts'

afterAll(removeRoots)

const SIZE = { width: 320, height: 200 }
const TILE = { width: 160, height: 100, depth: 32 }

function graphics(at: number, code: number, data: Uint8Array): Step {
  return { at, type: FRAME.graphics, payload: message(code, data) }
}

/** Makes noise for a second, 64 KB at a time, so that there are keyframes. */
function noise(at: number): Step {
  const data = Buffer.alloc(TILE.width * TILE.height * 4)
  for (let byte = 0; byte < data.length; byte += 4) {
    data.writeUInt32LE(Math.imul(byte + at * 7919, 2654435761) >>> 0, byte)
  }
  const [left, top] = [(at * 40) % 160, (at * 20) % 100]
  return graphics(at, 1, bitmapUpdate(bitmap({ ...TILE, left, top, data })))
}

test('every second is what was drawn up to it', async () => {
  const steps = Array.from({ length: 150 }, (_, at) => [noise(at)]).flat()
  steps.splice(
    10,
    0,
    graphics(9.5, 9, pointer({ width: 1, height: 1, colours: Buffer.from('0000ff00', 'hex') })),
  )
  steps.splice(20, 0, graphics(18.5, 8, words(5, 6)))
  steps.splice(60, 0, {
    at: 57.5,
    type: FRAME.desktopSize,
    payload: encodeDesktopSize({ width: 330, height: 180 }),
  })
  const made = await recordDesktop(SIZE, steps, undefined, 'rdp')
  const replay = await Replay.open(made.entry, made.grant.key)
  try {
    expect(replay.directory.channels).toMatchObject([{ kind: 'rdp', desktop: SIZE }])
    expect(replay.directory.pictures.length).toBeGreaterThanOrEqual(2)
    for (const seconds of [5.2, 19.2, 80.2, 140.2]) {
      const painter = new RdpPainter(SIZE)
      for (const step of steps) if (step.at <= seconds) painter.apply(step)
      const head = await replay.desktopAt(replay.directory.channels[0]!, seconds * 1e6)
      const { width, height, bytes } = head!.screen.picture
      expect([width, height]).toEqual([painter.framebuffer.width, painter.framebuffer.height])
      expect(Buffer.compare(bytes, painter.picture().bytes)).toBe(0)
      await head!.close()
    }
  } finally {
    await replay.close()
  }
})

test('updates that end just behind a frame’s end have keyframes too', async () => {
  const data = Buffer.alloc(TILE.width * TILE.height * 4)
  // Two frames of 64 KiB and little more.
  const rest = { width: 64, height: 4, depth: 32, data: Buffer.alloc(64 * 4 * 4) }
  const tile = bitmap({ ...TILE, data })
  const update = bitmapUpdate(tile, tile, ...Array<Buffer>(3).fill(bitmap(rest)))
  expect(update.length).toBeGreaterThan(2 ** 17)
  expect(update.length).toBeLessThan(2 ** 17 + 1024)
  const made = await recordDesktop(
    SIZE,
    Array.from({ length: 40 }, (_, at) => graphics(at, 1, update)),
    undefined,
    'rdp',
  )
  const replay = await Replay.open(made.entry, made.grant.key)
  expect(replay.directory.pictures.length).toBe(1)
  await replay.close()
})
