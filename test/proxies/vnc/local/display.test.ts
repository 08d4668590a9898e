/**
 * The bastion's own screens in a viewer: pixels, sizes, keys, back-pressure, and the release for the relay.
 */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MessageScreen } from '../../../../proxies/desktop/screens/message.ts'
import { PALETTE } from '../../../../proxies/desktop/screens/palette.ts'
import type { Screen, Size } from '../../../../proxies/desktop/screens/screen.ts'
import { TargetList } from '../../../../proxies/desktop/screens/targets.ts'
import { MAX_EVENTS, RELEASE_MS, UPDATE_INTERVAL_MS } from '../../../../proxies/desktop/stage.ts'
import type { ClientMessage } from '../../../../proxies/vnc/codec/client-messages.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { type PixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { pixelOf } from '../../../../proxies/vnc/codec/pixels.ts'
import { LocalDisplay } from '../../../../proxies/vnc/local/display.ts'
import { encodeHextile } from '../../../../proxies/vnc/local/hextile.ts'
import { markOf, pressOf } from '../../../../proxies/vnc/local/keysyms.ts'
import { ViewerInput } from '../../../../proxies/vnc/local/viewer-input.ts'
import { Canvas } from '../../../../src/drawing/canvas.ts'
import { shownText } from '../../desktop/screens/reading.ts'
import { FakeViewer } from './viewer.ts'

const SIZE = { width: 640, height: 480 }
const RETURN = 0xff0d
const DOWN = 0xff54
const SHIFT = 0xffe1
const CONTROL = 0xffe3
const ALT = 0xffe9

const FORMATS: Record<string, PixelFormat> = {
  '32 bits': RGB888,
  '32 bits, big-endian': { ...RGB888, isBigEndian: true },
  '16 bits': {
    ...RGB888,
    bitsPerPixel: 16,
    depth: 16,
    redMax: 31,
    greenMax: 63,
    blueMax: 31,
    redShift: 11,
    greenShift: 5,
  },
  '8 bits': {
    ...RGB888,
    bitsPerPixel: 8,
    depth: 8,
    redMax: 7,
    greenMax: 7,
    blueMax: 3,
    redShift: 0,
    greenShift: 3,
    blueShift: 6,
  },
  'a colour map': { ...RGB888, bitsPerPixel: 8, depth: 8, isTrueColour: false },
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const entries = Array.from({ length: 100 }, (_, n) => ({
  target: `root@local:web-${n}:vnc`,
  description: '',
}))
const list = (size: Size = SIZE) =>
  new TargetList({ bastion: 'Sallyport', user: 'alice', targets: entries, total: entries.length }, size)

/** A display and its viewer. `congested`: the viewer has read nothing since. */
function setting({ size = SIZE, mayResize = true, format = RGB888 } = {}) {
  const viewer = new FakeViewer(size.width, size.height, format)
  const stream = {
    congested: false,
    written: 0,
    write(bytes: Uint8Array) {
      this.written++
      viewer.take(bytes)
    },
  }
  const display = new LocalDisplay({ stream, size, format, mayResize, now: () => Date.now() })
  const send = (message: ClientMessage) => display.message(message)
  const key = (keysym: number) => {
    send({ kind: 'key', isDown: true, keysym, keycode: undefined })
    send({ kind: 'key', isDown: false, keysym, keycode: undefined })
  }
  return {
    viewer,
    stream,
    display,
    send,
    key,
    type: (text: string) => {
      for (const character of text) key(character.codePointAt(0)!)
    },
    encodings: (...encodings: number[]) => send({ kind: 'set-encodings', encodings }),
    request: (isIncremental: boolean, x = 0, y = 0, width = viewer.width, height = viewer.height) =>
      send({ kind: 'update-request', isIncremental, x, y, width, height }),
  }
}

/** Waits until everything that is due and can be sent has been sent. */
async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(UPDATE_INTERVAL_MS)
}

/** Returns the expected picture of the screen: its colours as near as the format has them. */
function wanted(screen: Screen, format: PixelFormat): Uint32Array {
  const whole = { left: 0, top: 0, width: screen.width, height: screen.height }
  const colours = Array.from({ length: PALETTE.length / 3 }, (_, colour) => {
    const [red, green, blue] = PALETTE.subarray(3 * colour)
    if (!format.isTrueColour) return (red! << 16) | (green! << 8) | blue!
    const { redMax, greenMax, blueMax, redShift, greenShift, blueShift } = format
    const pixel = pixelOf(format, red!, green!, blue!)
    const part = (max: number, shift: number) => Math.round((((pixel >>> shift) & max) * 255) / max)
    return (part(redMax, redShift) << 16) | (part(greenMax, greenShift) << 8) | part(blueMax, blueShift)
  })
  return Uint32Array.from(screen.paint(whole).pixels, (colour) => colours[colour]!)
}

function expectPicture(viewer: FakeViewer, screen: Screen): void {
  const expected = wanted(screen, viewer.format)
  expect([viewer.width, viewer.height]).toEqual([screen.width, screen.height])
  expect(viewer.pixels.filter((pixel, at) => pixel !== expected[at]).length, 'pixels that differ').toBe(0)
}

describe('pixels', () => {
  test.each(Object.keys(FORMATS))('in %s, by Raw and by Hextile', async (name) => {
    const format = FORMATS[name]!
    for (const encodings of [[], [ENCODING.HEXTILE, ENCODING.CURSOR]]) {
      const { viewer, display, send, encodings: know, request, type } = setting()
      const screen = list()
      send({ kind: 'set-pixel-format', format })
      viewer.format = format
      know(...encodings)
      display.show(screen)
      request(false)
      await settled()
      expectPicture(viewer, screen)
      request(true)
      type('web-7')
      await settled()
      expectPicture(viewer, screen)
      expect(viewer.encodings.includes(ENCODING.HEXTILE)).toBe(encodings.length > 0)
      display.close()
    }
  })

  test('the nearest colours of a format: black and white are what they are in all', () => {
    for (const format of Object.values(FORMATS).filter(({ isTrueColour }) => isTrueColour)) {
      const { redMax, greenMax, blueMax, redShift, greenShift, blueShift } = format
      const all = ((redMax << redShift) | (greenMax << greenShift) | (blueMax << blueShift)) >>> 0
      expect(pixelOf(format, 0, 0, 0)).toBe(0)
      expect(pixelOf(format, 255, 255, 255)).toBe(all)
    }
    expect(pixelOf(RGB888, 1, 2, 3)).toBe(0x010203)
  })

  test('Hextile of any picture comes back as it was, and is never longer than Raw by more than a byte a tile', () => {
    const picture = fc
      .record({ width: fc.integer({ min: 1, max: 70 }), height: fc.integer({ min: 1, max: 40 }) })
      .chain(({ width, height }) =>
        fc
          .record({
            colours: fc.integer({ min: 1, max: 14 }),
            seed: fc.integer(),
            shape: fc.constantFrom(1, 5, 9),
          })
          .map(({ colours, seed, shape }) => {
            const canvas = new Canvas(width, height)
            canvas.pixels.forEach((_, at) => {
              const place = Math.floor((at % width) / shape) + 91 * Math.floor(at / width / shape)
              canvas.pixels[at] = (Math.imul(place + seed, 2654435761) >>> 16) % colours
            })
            return canvas
          }),
      )
    fc.assert(
      fc.property(picture, fc.constantFrom(...Object.keys(FORMATS)), (canvas, name) => {
        const format = {
          ...FORMATS[name]!,
          isTrueColour: true,
          redMax: 0,
          greenMax: 0,
          blueMax: 15,
          blueShift: 0,
        }
        const size = format.bitsPerPixel / 8
        const pixels = Array.from({ length: 14 }, (_, colour) => {
          const bytes = Buffer.alloc(size)
          bytes[format.isBigEndian ? size - 1 : 0] = colour
          return bytes
        })
        const encoded = encodeHextile(canvas, pixels, format)
        const tiles = Math.ceil(canvas.width / 16) * Math.ceil(canvas.height / 16)
        expect(encoded.length).toBeLessThanOrEqual(canvas.pixels.length * size + tiles)
        const viewer = new FakeViewer(canvas.width, canvas.height, format)
        const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0, canvas.width, 0, canvas.height, 0, 0, 0, 5])
        viewer.take(Buffer.concat([head, encoded]))
        expect(viewer.isWhole).toBe(true)
        expect([...viewer.pixels].map((colour) => Math.round((colour * 15) / 255))).toEqual([
          ...canvas.pixels,
        ])
      }),
      { numRuns: 150 },
    )
  })

  test('an incremental request is answered when something changes, and with the change only', async () => {
    const { viewer, display, request, key } = setting()
    display.show(list())
    request(false)
    await settled()
    expect(viewer.updates).toBe(1)
    request(true)
    await settled()
    expect(viewer.updates).toBe(1)
    key(DOWN)
    await settled()
    expect(viewer.updates).toBe(2)
    key(DOWN)
    await settled()
    expect(viewer.updates, 'without a request').toBe(2)
    request(true)
    await settled()
    expect(viewer.updates).toBe(3)
    display.close()
  })

  test('only what was asked for is sent, and the rest when that is', async () => {
    const { viewer, display, request } = setting()
    const screen = list()
    display.show(screen)
    request(false, 0, 0, 640, 100)
    await settled()
    expect(viewer.pixels.subarray(0, 640 * 100).every((pixel) => pixel !== 0)).toBe(true)
    expect(viewer.pixels.subarray(640 * 100).every((pixel) => pixel === 0)).toBe(true)
    request(true, 0, 100, 640, 380)
    await settled()
    expectPicture(viewer, screen)
    display.close()
  })

  test('a request from outside of the screen is no error', async () => {
    const { viewer, display, request } = setting()
    display.show(list())
    request(false, 60_000, 60_000, 65_535, 65_535)
    await settled()
    expect(viewer.updates).toBe(0)
    request(false)
    await settled()
    expect(viewer.updates).toBe(1)
    display.close()
  })
})

describe('back-pressure', () => {
  test('nothing is written while the stream is full, and it goes on where it was', async () => {
    const { viewer, stream, display, request } = setting({ size: { width: 1920, height: 1080 } })
    const screen = list({ width: 1920, height: 1080 })
    const write = stream.write.bind(stream)
    stream.write = (bytes) => {
      write(bytes)
      stream.congested = true
    }
    display.show(screen)
    request(false)
    await settled()
    expect(stream.written).toBe(1)
    for (let last = 0; stream.written > last; ) {
      last = stream.written
      stream.congested = false
      display.drained()
      await settled()
      expect(stream.written).toBeLessThanOrEqual(last + 1)
    }
    expect(viewer.isWhole).toBe(true)
    expectPicture(viewer, screen)
    display.close()
  })

  test('requests without end get an update in each interval, not more', async () => {
    const { viewer, display, request } = setting()
    display.show(list())
    for (let count = 0; count < 1000; count++) request(false)
    await vi.advanceTimersByTimeAsync(10 * UPDATE_INTERVAL_MS)
    expect(viewer.updates).toBe(2)
    for (let count = 0; count < 100; count++) {
      request(false)
      await vi.advanceTimersByTimeAsync(UPDATE_INTERVAL_MS / 10)
    }
    expect(viewer.updates).toBeLessThanOrEqual(2 + 12)
    display.close()
  })

  test('a flood of keys has turns, and an end', async () => {
    const { display, key, send } = setting()
    const screen = list()
    const seen = vi.spyOn(screen, 'key')
    display.show(screen)
    for (let count = 0; count < 3 * MAX_EVENTS; count++) key(0x61)
    expect(seen.mock.calls.length).toBeLessThan(50)
    await vi.advanceTimersByTimeAsync(100)
    expect(seen.mock.calls.length).toBeLessThanOrEqual(MAX_EVENTS + 50)
    expect(seen.mock.calls.length).toBeGreaterThanOrEqual(MAX_EVENTS)
    send({ kind: 'pointer', x: 1, y: 1, buttons: 0 })
    display.close()
  })
})

describe('sizes', () => {
  const other = { width: 800, height: 600 }

  test.each([[ENCODING.DESKTOP_SIZE], [ENCODING.EXTENDED_DESKTOP_SIZE]])(
    'a screen of another size by %d',
    async (encoding) => {
      const { viewer, display, encodings, request } = setting()
      encodings(encoding)
      display.show(list())
      request(false)
      await settled()
      request(false)
      await settled()
      const screen = list(other)
      display.show(screen)
      request(true)
      await settled()
      expect({ width: viewer.width, height: viewer.height }).toEqual(other)
      expect(
        viewer.pixels.every((pixel) => pixel === 0),
        'pixels beside a change of size',
      ).toBe(true)
      request(true)
      await settled()
      expectPicture(viewer, screen)
      expect(display.size).toEqual(other)
      display.close()
    },
  )

  test('a viewer that knows neither keeps its size, and the screen gets it', async () => {
    const { viewer, display, encodings, request } = setting()
    encodings(ENCODING.RAW)
    const screen = list(other)
    display.show(screen)
    request(false)
    await settled()
    expect(display.canResize).toBe(false)
    expectPicture(viewer, screen)
    expect(shownText(screen)).toContain('root@local:web-7:vnc')
    display.close()
  })

  test("the viewer's wish is granted before there is a target, within limits", async () => {
    const { viewer, display, encodings, request, send } = setting()
    encodings(ENCODING.EXTENDED_DESKTOP_SIZE)
    const screen = list()
    display.show(screen)
    request(false)
    await settled()
    expect(viewer.sizes).toEqual([[0, 0]])
    send({ kind: 'set-desktop-size', ...other, screens: [] })
    request(true)
    await settled()
    expect(viewer.sizes.at(-1)).toEqual([1, 0])
    request(true)
    await settled()
    expectPicture(viewer, screen)
    for (const [width, height] of [
      [65_535, 65_535],
      [0, 10],
      [16_384, 16_384],
    ] as const) {
      send({ kind: 'set-desktop-size', width, height, screens: [] })
      request(true)
      await settled()
      expect(viewer.sizes.at(-1)).toEqual([1, 1])
    }
    expect({ width: viewer.width, height: viewer.height }).toEqual(other)
    display.close()
  })

  test('with a target it is kept for the relay', async () => {
    const { viewer, display, encodings, request, send } = setting({ mayResize: false })
    encodings(ENCODING.EXTENDED_DESKTOP_SIZE)
    display.show(list())
    request(false)
    await settled()
    const screens = [{ id: 7, x: 0, y: 0, ...other, flags: 0 }]
    send({ kind: 'set-desktop-size', ...other, screens })
    request(true)
    await settled()
    expect(viewer.sizes).toEqual([[0, 0]])
    expect((await display.release()).wish).toMatchObject({ ...other, screens })
  })

  test('a new name, where the viewer takes one', async () => {
    const { viewer, display, encodings, request } = setting()
    display.show(list())
    display.rename('web-7')
    request(false)
    await settled()
    expect(viewer.name).toBe('')
    encodings(ENCODING.DESKTOP_NAME)
    request(true)
    await settled()
    expect(viewer.name).toBe('web-7')
    display.close()
  })
})

describe('outcomes and the hand-over', () => {
  const message = (seconds?: number) =>
    new MessageScreen(
      {
        bastion: 'Sallyport',
        heading: 'Hello',
        text: '',
        tone: 'plain',
        button: 'OK',
        ...(seconds && { seconds }),
      },
      SIZE,
    )

  test('keys choose', async () => {
    const { display, type, key } = setting()
    const chosen = display.ask(list())
    type('web-42')
    key(RETURN)
    await expect(chosen).resolves.toEqual({ choice: entries[42] })
    display.close()
  })

  test('time goes by without a viewer that asks', async () => {
    const { display } = setting()
    const closed = vi.fn()
    display.show(message(3), closed)
    await vi.advanceTimersByTimeAsync(2900)
    expect(closed).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(500)
    expect(closed).toHaveBeenCalledOnce()
    display.close()
  })

  test('an outcome after another screen was shown, or after the end, is nobody’s', async () => {
    const { display, key } = setting()
    const first = vi.fn()
    const second = vi.fn()
    display.show(message(), first)
    key(RETURN)
    display.show(message(), second)
    await settled()
    expect(first).not.toHaveBeenCalled()
    key(RETURN)
    display.close()
    await settled()
    expect(second).not.toHaveBeenCalled()
  })

  test('a button that was held when a screen came does not click it', async () => {
    const { display, send } = setting()
    const closed = vi.fn()
    const pointer = (buttons: number) => send({ kind: 'pointer', x: 5, y: 5, buttons })
    display.show(list())
    pointer(1)
    display.show(message(), closed)
    pointer(1)
    pointer(0)
    await settled()
    expect(closed).not.toHaveBeenCalled()
    pointer(1)
    await settled()
    expect(closed).toHaveBeenCalledOnce()
    display.close()
  })

  test('what the relay is told', async () => {
    const { display, send, encodings, request } = setting({ mayResize: false })
    encodings(ENCODING.TIGHT, ENCODING.RAW, -30)
    send({ kind: 'set-pixel-format', format: FORMATS['16 bits']! })
    const text = Buffer.from('copied')
    send({ kind: 'cut-text', text })
    text.fill(0)
    request(true, 1, 2, 3, 4)
    expect(await display.release()).toEqual({
      size: SIZE,
      format: FORMATS['16 bits'],
      encodings: [ENCODING.TIGHT, ENCODING.RAW, -30],
      request: { isIncremental: true, area: { x: 1, y: 2, width: 3, height: 4 } },
      wish: undefined,
      cutText: Uint8Array.from(Buffer.from('copied')),
    })
  })

  test('an update that has begun is whole before it is over, in the format in which it began', async () => {
    const { viewer, stream, display, send, request } = setting({ size: { width: 1920, height: 1080 } })
    const screen = list({ width: 1920, height: 1080 })
    display.show(screen)
    stream.congested = false
    const write = stream.write.bind(stream)
    let room = 2
    stream.write = (bytes) => {
      write(bytes)
      stream.congested = --room <= 0
    }
    request(false)
    await settled()
    expect(viewer.isWhole).toBe(false)
    send({ kind: 'set-pixel-format', format: FORMATS['16 bits']! })
    request(true)
    const released = vi.fn()
    void display.release().then(released)
    await settled()
    expect(released).not.toHaveBeenCalled()
    room = 1000
    stream.congested = false
    display.drained()
    await settled()
    expect(released).toHaveBeenCalledOnce()
    expect(released.mock.calls[0]![0]).toMatchObject({
      request: { isIncremental: true },
    })
    expect(viewer.isWhole).toBe(true)
    expectPicture(viewer, screen)
    const { written } = stream
    request(false)
    await vi.advanceTimersByTimeAsync(1000)
    expect(stream.written, 'after the end').toBe(written)
  })
})

test('a viewer that does not take the rest of an update is not waited for', async () => {
  const { stream, display, request } = setting({ size: { width: 1920, height: 1080 } })
  display.show(list({ width: 1920, height: 1080 }))
  const write = stream.write.bind(stream)
  stream.write = (bytes) => {
    write(bytes)
    stream.congested = true
  }
  request(false)
  await settled()
  const released = expect(display.release()).rejects.toThrow('has not read its screen')
  await vi.advanceTimersByTimeAsync(RELEASE_MS)
  await released
  display.close()
})

describe('keys', () => {
  test.each([
    [0x61, 'a'],
    [0xe9, 'é'],
    [0x10020ac, '€'],
    [0x20ac, '€'],
    [0x101f600, '😀'],
    [0x1b3, 'ł'],
    [0x1ea, 'ę'],
    [0x1be, 'ž'],
    [0x6c1, 'а'],
    [0x6e1, 'А'],
    [0x6a3, 'ё'],
    [0x6b3, 'Ё'],
    [0x7e1, 'α'],
    [0x7f2, 'σ'],
    [0x7b1, 'ά'],
    [0xce0, 'א'],
    [0x5c8, 'ب'],
    [0xda1, 'ก'],
    [0x13bd, 'œ'],
    [0xffb7, '7'],
    [0xffae, '.'],
    [0xff80, ' '],
  ])('keysym %i writes %s', (keysym, text) => {
    expect(pressOf(keysym, false)).toEqual({ text })
  })

  test('named keys, with those of the keypad', () => {
    expect(pressOf(0xff8d, false)).toEqual({ key: 'Enter', shift: false })
    expect(pressOf(0xff9c, true)).toEqual({ key: 'End', shift: true })
    expect(pressOf(0xfe20, false)).toEqual({ key: 'Tab', shift: true })
    expect(pressOf(0xffbe, false), 'F1').toBeUndefined()
    expect(pressOf(0, false)).toBeUndefined()
    expect(markOf(0x61)).toBeUndefined()
  })

  test('with Ctrl or Alt there is no text; both are AltGr; a dead key goes over the next letter', () => {
    const input = new ViewerInput()
    const press = (keysym: number) => input.key(true, keysym)
    press(CONTROL)
    expect(press(0x61)).toBeUndefined()
    press(ALT)
    expect(press(0x40)).toEqual({ text: '@' })
    input.key(false, CONTROL)
    input.key(false, ALT)
    expect(press(0x61)).toEqual({ text: 'a' })
    expect(input.key(false, 0x61)).toBeUndefined()
    press(0xfe51)
    press(SHIFT)
    expect(press(0x45)).toEqual({ text: 'É' })
    press(0xfe52)
    expect(press(0x20)).toEqual({ text: '^' })
    expect(press(0xff09)).toEqual({ key: 'Tab', shift: true })
  })

  test('no keysym makes it throw', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ isDown: fc.boolean(), keysym: fc.oneof(fc.nat(0xffff), fc.nat(0xffffffff)) })),
        (keys) => {
          const input = new ViewerInput()
          for (const { isDown, keysym } of keys) input.key(isDown, keysym)
        },
      ),
    )
  })
})
