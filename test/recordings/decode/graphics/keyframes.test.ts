import { Buffer } from 'node:buffer'
import { constants, createDeflate, type Deflate } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { encodePointer } from '../../../../recordings/decode/graphics/events.ts'
import { Replay } from '../../../../recordings/show/replay/replay.ts'
import { rectangle, uint32, update } from '../../../proxies/vnc/codec/streams.ts'
import { removeRoots } from '../../support.ts'
import { begun, filled, recordDesktop, type Step } from './support.ts'

afterAll(removeRoots)

const SIZE = { width: 640, height: 480 }

/** One zlib stream through all rectangles, as servers send it. */
class Stream {
  readonly #deflate: Deflate = createDeflate({ level: 1 })
  #pieces: Buffer[] = []

  constructor() {
    this.#deflate.on('data', (piece: Buffer) => this.#pieces.push(piece))
  }

  async deflate(data: Buffer, flush: number): Promise<Buffer> {
    this.#deflate.write(data)
    await new Promise<void>((resolve) => this.#deflate.flush(flush, resolve))
    const bytes = Buffer.concat(this.#pieces.splice(0))
    return Buffer.concat([uint32(bytes.length), bytes])
  }
}

/** Draws noise in the middle of the screen, and some of it in fixed colours. */
async function noise(count: number, flush = constants.Z_SYNC_FLUSH): Promise<Step[]> {
  const stream = new Stream()
  const steps: Step[] = []
  for (let turn = 0; turn < count; turn++) {
    const area = { x: (turn * 37) % 400, y: (turn * 11) % 200, width: 240, height: 200 }
    const pixels = Buffer.alloc(area.width * area.height * 4)
    for (let at = 0; at < pixels.length; at += 4)
      pixels.writeUInt32LE(Math.imul(at + turn * 7919, 2654435761) >>> 0, at)
    const data = await stream.deflate(pixels, flush)
    const bytes = Buffer.concat([
      update(rectangle(area, ENCODING.ZLIB, data)),
      filled({ x: turn % 600, y: 450, width: 20, height: 10 }, turn * 0x010305),
    ])
    // Cut anywhere, like pieces from a socket.
    const cut = (turn * 997) % bytes.length
    steps.push({ at: turn, type: FRAME.graphics, payload: bytes.subarray(0, cut) })
    steps.push({ at: turn + 0.25, type: FRAME.graphics, payload: bytes.subarray(cut) })
    const pointer = { participant: 0, buttons: 0, x: turn, y: turn }
    steps.push({ at: turn + 0.5, type: FRAME.pointer, payload: encodePointer(pointer) })
  }
  return steps
}

async function pixelsAt(replay: Replay, seconds: number): Promise<Buffer> {
  const head = await replay.desktopAt(replay.directory.channels[0]!, seconds * 1e6)
  try {
    return Buffer.from(head!.screen.picture.bytes)
  } finally {
    await head!.close()
  }
}

test('a keyframe and what follows it show what drawing from the beginning shows', async () => {
  const steps = await noise(60)
  const made = await recordDesktop(SIZE, steps)
  const replay = await Replay.open(made.entry, made.grant.key)
  try {
    const { pictures, channels } = replay.directory
    expect(channels).toMatchObject([{ kind: 'vnc', desktop: SIZE, hasTerminal: false }])
    expect(pictures.length).toBeGreaterThanOrEqual(2)
    expect(pictures.some(({ skip }) => skip[1] > 0)).toBe(true)
    const instants = fc.sample(fc.double({ min: 0, max: 60, noNaN: true }), 5)
    const times = [...instants, ...pictures.map(({ time }) => time / 1e6)].sort((a, b) => a - b)
    const painter = begun(SIZE)
    let next = 0
    for (const seconds of times) {
      for (; next < steps.length && steps[next]!.at <= seconds; next++) painter.apply(steps[next]!)
      const expected = Buffer.from(painter.picture().bytes)
      expect((await pixelsAt(replay, seconds)).equals(expected)).toBe(true)
    }
    expect(painter.stopped).toBeUndefined()
  } finally {
    await replay.close()
  }
})

test('streams that seldom stand at the end of a byte are drawn all the same', async () => {
  const steps = await noise(30, constants.Z_PARTIAL_FLUSH)
  const whole = steps.filter(({ type }) => type === FRAME.graphics)
  const made = await recordDesktop(SIZE, whole)
  const replay = await Replay.open(made.entry, made.grant.key)
  try {
    const expected = begun(SIZE)
    for (const step of whole) expected.apply(step)
    expect(expected.stopped).toBeUndefined()
    expect((await pixelsAt(replay, 60)).equals(Buffer.from(expected.picture().bytes))).toBe(true)
  } finally {
    await replay.close()
  }
})

test('rows that have not changed are kept once', async () => {
  const still = { x: 0, y: 0, width: 1024, height: 256 }
  const size = { width: 1024, height: 768 }
  const copies = Array.from({ length: 400 }, (_, turn): Step => {
    const area = { x: 0, y: 512, width: 1024, height: 200 }
    return {
      at: 1 + turn,
      type: FRAME.graphics,
      payload: Buffer.concat([filled(area, turn), filled(area, 1 + turn)]),
    }
  })
  const made = await recordDesktop(size, [
    { at: 0, type: FRAME.graphics, payload: filled(still, 0xffffff) },
    ...copies,
  ])
  const replay = await Replay.open(made.entry, made.grant.key)
  try {
    const blocks = new Set<number>()
    expect(replay.directory.pictures.length).toBeGreaterThan(0)
    for (const { block } of replay.directory.pictures) blocks.add(block[0])
    // The first keyframe writes three bands and itself, each later one the changed band and itself.
    const [last] = replay.directory.pictures.slice(-1)
    expect(last!.block[0] + 1).toBe(4 + 2 * (blocks.size - 1))
  } finally {
    await replay.close()
  }
})

test('a desktop that is too large to be drawn shows nothing', async () => {
  const made = await recordDesktop({ width: 60000, height: 60000 }, [])
  const replay = await Replay.open(made.entry, made.grant.key)
  try {
    expect(await replay.desktopAt(replay.directory.channels[0]!, 0)).toBeUndefined()
  } finally {
    await replay.close()
  }
})
