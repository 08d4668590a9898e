/** The bastion's screens at an RDP client: desktop, pixels, keys, pointer, back-pressure and hand-over. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { signInForm, signInOf } from '../../../../proxies/desktop/screens/form.ts'
import { MessageScreen } from '../../../../proxies/desktop/screens/message.ts'
import { PALETTE } from '../../../../proxies/desktop/screens/palette.ts'
import type { Screen, Size } from '../../../../proxies/desktop/screens/screen.ts'
import { TargetList } from '../../../../proxies/desktop/screens/targets.ts'
import { MAX_EVENTS, RELEASE_MS, UPDATE_INTERVAL_MS } from '../../../../proxies/desktop/stage.ts'
import { POINTER_FLAG } from '../../../../proxies/rdp/codec/input.ts'
import { buildSynchronize, ERROR_INFO } from '../../../../proxies/rdp/codec/session-pdus.ts'
import { DATA_PDU } from '../../../../proxies/rdp/codec/share.ts'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { LocalDisplay } from '../../../../proxies/rdp/local/display.ts'
import { readText, shownText } from '../../desktop/screens/reading.ts'
import { FakeClient, type FakeClientOptions } from './client.ts'

const SIZE = { width: 640, height: 480 }
const ENTER = 0x1c
const TAB = 0x0f

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const entries = Array.from({ length: 100 }, (_, n) => ({
  target: `root@local:win-${n}:rdp`,
  description: '',
}))
const list = (size: Size = SIZE) =>
  new TargetList({ bastion: 'Sallyport', user: 'alice', targets: entries, total: entries.length }, size)
const message = (seconds?: number, size: Size = SIZE) =>
  new MessageScreen(
    {
      bastion: 'Sallyport',
      heading: 'Hello',
      text: '',
      tone: 'plain',
      button: 'OK',
      ...(seconds && { seconds }),
    },
    size,
  )

function setting(options: FakeClientOptions & { own?: Size } = {}) {
  const client = new FakeClient(options)
  const display = new LocalDisplay({
    client,
    now: () => Date.now(),
    ...(options.own && { size: options.own }),
  })
  client.display = display
  return { client, display }
}

/** Runs everything that is due and can be drawn. */
const settled = () => vi.advanceTimersByTimeAsync(UPDATE_INTERVAL_MS)

/** Counts the client's pixels that differ from the screen's in five bits of each colour. */
function wrongPixels({ picture }: FakeClient, screen: Screen): number {
  const { framebuffer } = picture!
  expect([framebuffer.width, framebuffer.height]).toEqual([screen.width, screen.height])
  const { pixels } = screen.paint({ left: 0, top: 0, width: screen.width, height: screen.height })
  let wrong = 0
  for (const [at, colour] of pixels.entries()) {
    const isRight = [0, 1, 2].every(
      (part) => Math.abs(framebuffer.bytes[4 * at + part]! - PALETTE[3 * colour + part]!) <= 7,
    )
    if (!isRight) wrong++
  }
  return wrong
}

describe('the desktop', () => {
  test.each([
    [15, 15, false],
    [16, 16, true],
    [24, 24, false],
    [32, 32, true],
    [8, 16, false],
  ])(
    'is what the client asks for (%d bits: %d), and shows the screen; an old client: %s',
    async (colourDepth, depth, isOld) => {
      const size = { width: 636, height: 477 }
      const { client, display } = setting({ size, colourDepth, isOld })
      expect(client.isLicensed).toBe(true)
      expect(client.desktop).toEqual({ ...size, depth })
      expect(display.size).toEqual(size)
      const screen = list()
      display.show(screen)
      await settled()
      expect(wrongPixels(client, screen)).toBe(0)
      expect(client.updates[0], 'the pointer may be hidden by what came before').toBe(UPDATE.pointerDefault)
      const { bytes } = client
      client.key(0x50, 1)
      await settled()
      expect(wrongPixels(client, screen)).toBe(0)
      expect(client.bytes - bytes, 'only what has changed').toBeLessThan(bytes / 2)
      expect(shownText(screen)).toContain('root@local:win-1:rdp')
      display.close()
    },
  )

  test('has the size that it is given, and the license only once', async () => {
    const client = new FakeClient()
    client.license()
    const own = { width: 1400, height: 1050 }
    const display = new LocalDisplay({ client, size: own, depth: 32, now: () => Date.now() })
    client.display = display
    const screen = message()
    display.show(screen)
    await vi.advanceTimersByTimeAsync(200)
    expect(client.desktop).toEqual({ ...own, depth: 32 })
    expect(wrongPixels(client, screen)).toBe(0)
    display.close()
  })

  test.each([
    [{ width: 1, height: 1 }],
    [{ width: 3, height: 200 }],
    [{ width: 200, height: 5 }],
    [{ width: 8192, height: 8 }],
  ])('of %j is drawn', async (size) => {
    const { client, display } = setting({ size })
    const screens: Screen[] = [list(size), message(3, size), signInForm({ bastion: 'S' }, size)]
    for (const screen of screens) {
      display.show(screen)
      await vi.advanceTimersByTimeAsync(200)
      expect(wrongPixels(client, screen)).toBe(0)
    }
    display.close()
  })

  test('is drawn when the client takes it, late or not', async () => {
    const { client, display } = setting({ isSlow: true })
    const screen = list()
    display.show(screen)
    client.input({ kind: 'character', code: 0x61, isDown: true })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(client.updates).toEqual([])
    client.confirm()
    await settled()
    expect(wrongPixels(client, screen)).toBe(0)
    const typed = 'nothing was typed on a desktop that was not there'
    expect(
      shownText(screen).filter((line) => line.endsWith(' of 100 targets')),
      typed,
    ).toHaveLength(1)
    display.close()
  })

  test('what was on its way for a target’s desktop is left out, and no input', async () => {
    const { client, display } = setting({ isSlow: true })
    const closed = vi.fn()
    display.show(message(), closed)
    client.data(DATA_PDU.input, Buffer.from('0100000000000000040000001c000000', 'hex'))
    client.key(ENTER)
    client.confirm(0x00010001)
    await settled()
    expect(client.updates).toEqual([])
    client.confirm()
    await settled()
    expect(closed).not.toHaveBeenCalled()
    client.key(ENTER)
    await settled()
    expect(closed).toHaveBeenCalledOnce()
    display.close()
  })

  test.each([
    [SIZE, 9],
    [{ width: 1920, height: 1080 }, 6],
  ])(
    'of %j is drawn again when the client asks without end, %d times in ten seconds',
    async (size, times) => {
      const { client, display } = setting({ size })
      display.show(message(undefined, size))
      await settled()
      const whole = client.bytes
      const refresh = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 9, 0])
      for (let count = 0; count < 1000; count++) {
        client.data(DATA_PDU.refreshRectangle, refresh)
        await vi.advanceTimersByTimeAsync(10)
      }
      const repaints = client.updates.filter((code) => code === UPDATE.pointerDefault).length - 1
      expect(repaints).toBe(times)
      expect(client.bytes).toBeLessThan((times + 2) * whole)
      await vi.advanceTimersByTimeAsync(5_000)
      const { bytes } = client
      await vi.advanceTimersByTimeAsync(10_000)
      expect(client.bytes, 'nobody has asked').toBe(bytes)
      display.close()
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  test('is drawn again for a window that was hidden', async () => {
    const { client, display } = setting()
    const screen = list()
    display.show(screen)
    await vi.advanceTimersByTimeAsync(5_000)
    client.picture!.framebuffer.bytes.fill(0)
    client.data(DATA_PDU.suppressOutput, Buffer.from([0, 0, 0, 0]))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(wrongPixels(client, screen)).toBeGreaterThan(0)
    client.data(DATA_PDU.suppressOutput, Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 9, 0]))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(wrongPixels(client, screen)).toBe(0)
    display.close()
  })

  test('a client that asks for answers without end is malformed', async () => {
    const { client, display } = setting()
    await settled()
    const { type, body } = buildSynchronize(0, 0)
    expect(() => {
      for (let count = 0; count < 100; count++) client.data(type, body)
    }).toThrow(MalformedError)
    display.close()
  })
})

describe('back-pressure', () => {
  test.each([false, true])(
    'nothing is written while the stream is full, and it goes on where it was',
    async (isOld) => {
      const size = { width: 1920, height: 1080 }
      const { client, display } = setting({ size, isOld })
      await settled()
      const screen = list(size)
      let writes = 0
      client.onWrite = () => {
        writes++
        client.stream.congested = true
      }
      display.show(screen)
      await settled()
      const perTurn = writes
      expect(writes).toBeGreaterThan(0)
      for (let last = 0; writes > last; ) {
        last = writes
        client.stream.congested = false
        display.drained()
        await vi.advanceTimersByTimeAsync(200)
        // One band of the screen per turn, in one or a few updates.
        expect(writes).toBeLessThanOrEqual(last + 2 * perTurn + 8)
      }
      expect(wrongPixels(client, screen)).toBe(0)
      display.close()
    },
  )

  test('a flood of keys has turns, and an end', async () => {
    const { client, display } = setting()
    const screen = list()
    const seen = vi.spyOn(screen, 'key')
    display.show(screen)
    await settled()
    for (let count = 0; count < 3 * MAX_EVENTS; count++) client.type('a')
    expect(seen.mock.calls.length).toBeLessThan(50)
    await vi.advanceTimersByTimeAsync(100)
    expect(seen.mock.calls.length).toBeLessThanOrEqual(MAX_EVENTS + 50)
    expect(seen.mock.calls.length).toBeGreaterThanOrEqual(MAX_EVENTS)
    display.close()
  })

  test('keys after the outcome are nobody’s, and cost nothing', async () => {
    const { client, display } = setting()
    const closed = vi.fn()
    const screen = message()
    const seen = vi.spyOn(screen, 'key')
    display.show(screen, closed)
    await settled()
    for (let count = 0; count < 100; count++) client.type('a')
    await vi.advanceTimersByTimeAsync(100)
    expect(closed).toHaveBeenCalledOnce()
    expect(seen).toHaveBeenCalledOnce()
    display.close()
  })
})

describe('the sign-in form', () => {
  const begin = async (options: FakeClientOptions, login?: string) => {
    const { client, display } = setting(options)
    const { size = SIZE } = options
    const { keyboard } = display
    const form = signInForm({ bastion: 'Sallyport', keyboard, ...(login !== undefined && { login }) }, size)
    const done = vi.fn()
    void display.ask(form).then(done)
    await settled()
    return { client, display, form, done }
  }

  test('by keys alone: what the client has said stands there already', async () => {
    const { client, form, done } = await begin({ keyboardLayout: 0x407 }, 'alice:root@win-1')
    expect(shownText(form)).toEqual(
      expect.arrayContaining(['User', 'Password', 'alice:root@win-1', 'Keyboard: German']),
    )
    // z, y, @ and ä of a German keyboard.
    client.key(0x15)
    client.key(0x2c)
    client.input({ kind: 'key', code: 0x38, extended: 1, isDown: true })
    client.key(0x10)
    client.input({ kind: 'key', code: 0x38, extended: 1, isDown: false })
    client.key(0x28)
    client.type('é😀')
    client.key(ENTER)
    await settled()
    expect(signInOf(done.mock.calls[0]![0].answers)).toEqual({
      login: 'alice:root@win-1',
      password: 'zy@äé😀',
    })
  })

  test('without a login it begins with that, and Tab goes round', async () => {
    const { client, form, done } = await begin({ keyboardLayout: 0x411 })
    expect(shownText(form)).toContain('Keyboard: US, as yours is not known here')
    client.type('bob')
    client.key(TAB)
    client.type('pass')
    client.key(TAB)
    client.key(TAB)
    client.key(TAB)
    client.type('by')
    client.key(ENTER)
    await settled()
    expect(done).not.toHaveBeenCalled()
    client.key(ENTER)
    await settled()
    expect(signInOf(done.mock.calls[0]![0].answers)).toEqual({ login: 'bobby', password: 'pass' })
  })

  test.each([[SIZE], [{ width: 3840, height: 2160 }]])('by the mouse, at %j', async (size) => {
    const { client, form, done } = await begin({ size })
    await vi.advanceTimersByTimeAsync(1000)
    const scale = size.width === 3840 ? 4 : 1
    const found = readText(form.paint({ left: 0, top: 0, ...size }), scale)
    const at = (text: string) => found.filter((one) => one.text === text).at(-1)!
    const below = 20 * scale
    client.click(at('Password').left, at('Password').top + below)
    client.type('secret')
    client.click(at('User').left, at('User').top + below)
    client.type('carol')
    client.click(at('Sign in').left, at('Sign in').top)
    await settled()
    expect(done.mock.calls[0]![0]).toEqual({ answers: ['carol', 'secret'] })
  })

  test('is cancelled by Escape', async () => {
    const { client, done } = await begin({})
    client.key(1)
    await settled()
    expect(done).toHaveBeenCalledExactlyOnceWith('cancelled')
  })
})

test('the wheel moves the list, by notches and by less than one', async () => {
  const { client, display } = setting()
  const screen = list()
  display.show(screen)
  await settled()
  const wheel = (way: number) =>
    client.input({ kind: 'pointer', flags: POINTER_FLAG.wheel | (way & 0x1ff), x: 0, y: 0 })
  const first = () => shownText(screen).find((line) => line.startsWith('root@'))
  wheel(-120)
  await settled()
  expect(first()).toBe('root@local:win-3:rdp')
  for (let count = 0; count < 3; count++) wheel(-40)
  await settled()
  expect(first()).toBe('root@local:win-6:rdp')
  wheel(120)
  await settled()
  expect(first()).toBe('root@local:win-3:rdp')
  client.input({ kind: 'pointer', flags: POINTER_FLAG.horizontalWheel | 120, x: 0, y: 0 })
  await settled()
  expect(first()).toBe('root@local:win-3:rdp')
  display.close()
})

describe('outcomes and the hand-over', () => {
  test('time goes by whether or not the client has its desktop', async () => {
    const { display } = setting({ isSlow: true })
    const closed = vi.fn()
    display.show(message(3), closed)
    await vi.advanceTimersByTimeAsync(3400)
    expect(closed).toHaveBeenCalledOnce()
    display.close()
  })

  test('a button that was held when a screen came does not click it', async () => {
    const { client, display } = setting()
    const closed = vi.fn()
    const left = (isDown: boolean) =>
      client.input({
        kind: 'pointer',
        flags: POINTER_FLAG.left | (isDown ? POINTER_FLAG.down : 0),
        x: 5,
        y: 5,
      })
    display.show(list())
    await settled()
    left(true)
    display.show(message(), closed)
    client.input({ kind: 'pointer', flags: POINTER_FLAG.move, x: 7, y: 5 })
    left(false)
    await settled()
    expect(closed).not.toHaveBeenCalled()
    left(true)
    await settled()
    expect(closed).toHaveBeenCalledOnce()
    display.close()
  })

  test('the client is told to give the desktop back, and nothing is drawn after it', async () => {
    const { client, display } = setting()
    const closed = vi.fn()
    display.show(message(), closed)
    await settled()
    client.key(ENTER)
    await display.release()
    expect(client.deactivations).toBe(1)
    const { bytes } = client
    client.key(ENTER)
    client.data(DATA_PDU.refreshRectangle, Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 9, 0]))
    display.show(list())
    await vi.advanceTimersByTimeAsync(1000)
    expect(client.bytes).toBe(bytes)
    expect(closed).not.toHaveBeenCalled()
  })

  test('while the client is taking the desktop it is waited for, but not for ever', async () => {
    const one = setting({ isSlow: true })
    const released = vi.fn()
    void one.display.release().then(released)
    await vi.advanceTimersByTimeAsync(RELEASE_MS - 100)
    expect(one.client.deactivations).toBe(0)
    one.client.confirm()
    await settled()
    expect(released).toHaveBeenCalledOnce()
    expect(one.client.deactivations).toBe(1)
    const other = setting({ isSlow: true })
    const late = expect(other.display.release()).rejects.toThrow('does not confirm the desktop')
    await vi.advanceTimersByTimeAsync(RELEASE_MS)
    await late
    const gone = setting({ isSlow: true })
    const over = gone.display.release()
    gone.display.close()
    await over
    expect(gone.client.deactivations).toBe(0)
  })

  test('why the connection ends is told to who has a desktop', async () => {
    const { client, display } = setting({ isSlow: true })
    display.tellError(ERROR_INFO.serverDenied)
    expect(client.errors).toEqual([])
    client.confirm()
    display.tellError(ERROR_INFO.serverDenied)
    expect(client.errors).toEqual([ERROR_INFO.serverDenied])
    display.close()
  })

  test('closing the window, and a sign of life', async () => {
    const { client, display } = setting()
    display.onShutdown = vi.fn()
    display.onInput = vi.fn()
    display.show(list())
    await settled()
    expect(display.onInput).not.toHaveBeenCalled()
    client.click(1, 1)
    expect(display.onInput).toHaveBeenCalled()
    client.data(DATA_PDU.shutdownRequest, Buffer.alloc(0))
    expect(display.onShutdown).toHaveBeenCalledOnce()
    display.close()
  })
})

test('any input is taken or malformed', async () => {
  const { client, display } = setting()
  display.show(signInForm({ bastion: 'Sallyport' }, SIZE))
  await settled()
  const tried = (receive: () => void) => {
    try {
      receive()
    } catch (error) {
      expect(error).toBeInstanceOf(MalformedError)
    }
  }
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 60 }),
      fc.constantFrom(...Object.values(DATA_PDU)),
      (bytes, type) => {
        tried(() =>
          display.fastPath(Buffer.concat([Buffer.of(bytes[0]! & 0x3c, bytes.length + 1), bytes.subarray(1)])),
        )
        tried(() => client.data(type, bytes))
        tried(() => display.io(bytes))
      },
    ),
  )
  display.close()
})
