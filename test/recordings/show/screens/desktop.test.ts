/** A desktop as viewers see it: drawn by the thread from the recording, then from frames as they arrive. */
import { Buffer } from 'node:buffer'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { encodePixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { FRAME, type FrameType } from '../../../../recordings/container/frames.ts'
import { encodeDesktopSize, encodePointer } from '../../../../recordings/decode/graphics/events.ts'
import { MAX_SHOWN, type PictureChange, WatchedDesktop } from '../../../../recordings/show/screens/desktop.ts'
import { Drawer, type Drawn } from '../../../../recordings/show/screens/drawer.ts'
import type { FollowedFrame } from '../../../../recordings/show/screens/follower.ts'
import { readPng } from '../../../peers/live-desktop.ts'
import { rectangle, update } from '../../../proxies/vnc/codec/streams.ts'
import { filled as filledByRdp } from '../../decode/graphics/rdp/updates.ts'
import { begun, filled } from '../../decode/graphics/support.ts'
import { makeWriter, removeRoots, SESSION } from '../../support.ts'

const drawer = new Drawer()
afterAll(async () => {
  await drawer.close()
  removeRoots()
})
afterEach(() => drawer.forget(SESSION))

const SIZE = { width: 300, height: 200 }
const RED = 0xff0000
const GREEN = 0x00ff00

/** Returns colours 0xRRGGBB. */
function coloursOf(png: Uint8Array): { width: number; height: number; at(x: number, y: number): number } {
  const { width, height, rgb } = readPng(png)
  return { width, height, at: (x, y) => rgb.readUIntBE(3 * (y * width + x), 3) }
}

/** A browser's canvas: the keyframe, with the changes drawn over it. */
class Canvas {
  readonly pixels = new Map<string, number>()
  size = ''
  put(left: number, top: number, png: Uint8Array): void {
    const { width, height, at } = coloursOf(png)
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) this.pixels.set(`${left + x},${top + y}`, at(x, y))
    }
  }
  take({ width, height, parts }: PictureChange): void {
    this.size = `${width} × ${height}`
    for (const { x, y, png } of parts) this.put(x, y, png)
  }
}

async function session(kind: 'vnc' | 'rdp' = 'vnc') {
  const { writer, path, grant, clock } = await makeWriter()
  const drawn: Drawn = { session: SESSION, path, key: grant.key, isGraphic: true }
  const changes: PictureChange[] = []
  let told: () => void = () => undefined
  drawer.listen(SESSION, (more) => {
    changes.push(...(more ?? []))
    told()
  })
  let pending: FollowedFrame[] = []
  const write = (type: FrameType, payload: Uint8Array) => {
    writer.write(type, 1, payload)
    pending.push({ type, channel: 1, time: writer.time, payload, after: writer.accepted })
  }
  const open = { kind, subprotocol: kind.toUpperCase(), desktop: SIZE }
  write(FRAME.channelOpen, Buffer.from(JSON.stringify(open)))
  if (kind === 'vnc') write(FRAME.pixelFormat, encodePixelFormat(RGB888))
  return {
    write,
    clock,
    graphics: (payload: Uint8Array) => write(FRAME.graphics, payload),
    changes,
    state: async () => {
      pending = []
      const frames = writer.accepted
      await writer.flush()
      return await drawer.state(drawn, frames)
    },
    feed: () => {
      drawer.feed(SESSION, pending)
      pending = []
    },
    drop: () => {
      pending = []
    },
    until: async (isThere: () => boolean) => {
      while (!isThere()) {
        await new Promise<void>((resolve) => {
          told = resolve
        })
      }
    },
  }
}

const FILLED = { vnc: filled, rdp: filledByRdp }
const SMALL = { width: 64, height: 32 }

test.each(['vnc', 'rdp'] as const)('%s: the whole picture for who comes, then what changes', async (kind) => {
  const { graphics, write, state, feed, changes, until } = await session(kind)
  const filled = FILLED[kind]
  graphics(filled({ x: 0, y: 0, ...SIZE }, RED))
  const [first] = await state()
  expect(first!.desktop).toMatchObject(SIZE)
  const canvas = new Canvas()
  canvas.put(0, 0, first!.desktop!.png)
  expect(canvas.pixels.get('299,199')).toBe(RED)

  graphics(filled({ x: 10, y: 20, width: 30, height: 40 }, GREEN))
  write(FRAME.command, Buffer.from('{"line":"no pixels"}'))
  feed()
  await until(() => changes.length > 0)
  for (const change of changes.splice(0)) canvas.take(change)
  expect([canvas.pixels.get('10,20'), canvas.pixels.get('39,59'), canvas.pixels.get('40,60')]).toEqual([
    GREEN,
    GREEN,
    RED,
  ])

  // A later viewer sees the same, though none of this was read from the disk yet.
  const [later] = await state()
  const other = new Canvas()
  other.put(0, 0, later!.desktop!.png)
  expect([...canvas.pixels].filter(([place, colour]) => other.pixels.get(place) !== colour)).toEqual([])

  if (kind === 'vnc') graphics(update(rectangle({ x: 0, y: 0, ...SMALL }, ENCODING.DESKTOP_SIZE)))
  write(FRAME.desktopSize, encodeDesktopSize(SMALL))
  feed()
  await until(() => changes.length > 0)
  canvas.take(changes.at(-1)!)
  expect(canvas.size).toBe('64 × 32')
})

test('frames that did not come are read from the disk with the next state', async () => {
  const { graphics, state, feed, drop, changes, until } = await session()
  await state()
  graphics(filled({ x: 0, y: 0, ...SIZE }, RED))
  drop()
  graphics(filled({ x: 0, y: 0, width: 10, height: 10 }, GREEN))
  feed()
  const [whole] = await state()
  const { at } = coloursOf(whole!.desktop!.png)
  expect([at(0, 0), at(10, 10)]).toEqual([GREEN, RED])
  graphics(filled({ x: 0, y: 0, width: 10, height: 10 }, RED))
  feed()
  await until(() => changes.some(({ parts }) => coloursOf(parts[0]!.png).at(0, 0) === RED))
})

test('a piece of more than 64 KiB is several frames of the recording', async () => {
  const { graphics, state, feed, changes, until } = await session()
  await state()
  const raw = Buffer.alloc(SIZE.width * SIZE.height * 4, 0x40)
  graphics(update(rectangle({ x: 0, y: 0, ...SIZE }, ENCODING.RAW, raw)))
  feed()
  graphics(filled({ x: 0, y: 0, width: 1, height: 1 }, GREEN))
  feed()
  await until(() => changes.some(({ parts }) => coloursOf(parts[0]!.png).at(0, 0) === GREEN))
  const [whole] = await state()
  expect(coloursOf(whole!.desktop!.png).at(1, 0)).toBe(0x404040)
})

const cursor = update(
  rectangle(
    { x: 0, y: 0, width: 1, height: 1 },
    ENCODING.CURSOR_WITH_ALPHA,
    Buffer.of(0, 0, 0, 0, 0, 255, 0, 255),
  ),
)
const at = (x: number, y: number) => ({
  type: FRAME.pointer,
  time: 0,
  payload: encodePointer({ participant: 0, buttons: 0, x, y }),
})
const graphics = (payload: Uint8Array, time = 0) => ({ type: FRAME.graphics, time, payload })

test('a pointer that moves changes where it was and where it is', async () => {
  const desktop = new WatchedDesktop(begun(SIZE))
  await desktop.take(graphics(cursor))
  await desktop.take(at(5, 5))
  desktop.changes()
  expect(desktop.changes()).toBeUndefined()
  await desktop.take(at(50, 6))
  const { parts } = desktop.changes()!
  expect(parts.map(({ x, y, width, height }) => [x, y, width, height])).toEqual([
    [5, 5, 1, 1],
    [50, 6, 1, 1],
  ])
  expect(parts.map(({ png }) => coloursOf(png).at(0, 0))).toEqual([0, GREEN])
  await desktop.take(graphics(update(rectangle({ x: 0, y: 0, width: 8, height: 8 }, ENCODING.DESKTOP_SIZE))))
  expect(desktop.changes()!.parts.map(({ width, height }) => [width, height])).toEqual([[8, 8]])
})

test('what cannot be drawn is said once, on the picture', async () => {
  const desktop = new WatchedDesktop(begun(SIZE))
  desktop.changes()
  await desktop.take(graphics(Buffer.from('junk')))
  const [whole] = desktop.changes()!.parts
  expect(whole).toMatchObject({ x: 0, y: 0, ...SIZE })
  expect(coloursOf(whole!.png).at(299, 199)).toBe(0xa00000)
  await desktop.take(graphics(filled({ x: 0, y: 0, ...SIZE }, RED)))
  expect(desktop.changes()).toBeUndefined()
})

test('a target that has too much drawn is drawn no longer', async () => {
  let now = 0
  const painter = begun(SIZE)
  vi.spyOn(painter, 'paint').mockImplementation((bytes) => {
    now += 3000
    return bytes.length
  })
  const desktop = new WatchedDesktop(painter, () => now)
  for (let turn = 0; turn < 3; turn++) await desktop.take(graphics(filled({ x: 0, y: 0, ...SIZE }, RED), 1e6))
  desktop.changes()
  await desktop.take(graphics(filled({ x: 0, y: 0, ...SIZE }, RED), 1e6))
  expect(coloursOf(desktop.changes()!.parts[0]!.png).at(299, 199)).toBe(0xa00000)
  const spent = now
  await desktop.take(graphics(filled({ x: 0, y: 0, ...SIZE }, RED), 1e6))
  expect(now).toBe(spent)
})

test('a desktop that is too large is not shown', () => {
  const desktop = new WatchedDesktop(begun({ width: MAX_SHOWN / 1024 + 1, height: 1024 }))
  expect(desktop.draw()).toBeUndefined()
  expect(desktop.changes()).toBeUndefined()
})
