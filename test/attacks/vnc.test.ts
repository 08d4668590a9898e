/** Attack case 43 over VNC: targets and viewers that are broken, hostile, or never read. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { deflateSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ByteStream } from '../../proxies/net/byte-stream.ts'
import { openVncTarget } from '../../proxies/vnc/back.ts'
import {
  encodePointer,
  encodeSetEncodings,
  encodeUpdateRequest,
} from '../../proxies/vnc/codec/client-encoder.ts'
import { ACTION, encodeClipboard, FORMAT } from '../../proxies/vnc/codec/clipboard.ts'
import { ENCODING } from '../../proxies/vnc/codec/encodings.ts'
import { RGB888 } from '../../proxies/vnc/codec/pixel-format.ts'
import { encodeExtendedServerCutText } from '../../proxies/vnc/codec/server-encoder.ts'
import { encodeServerInit } from '../../proxies/vnc/codec/server-init.ts'
import { type Desktop, startDesktop } from '../e2e/desktops.ts'
import { rectangle, uint32, update } from '../proxies/vnc/codec/streams.ts'
import { trustingGate, vncSession } from '../proxies/vnc/sessions.ts'
import { until } from '../until.ts'
import { residentOf } from './setting.ts'

const INIT = { width: 1024, height: 768, format: RGB888, name: 'false' }
const ALL = { x: 0, y: 0, width: 1024, height: 768 }
const SCREENFUL = update(rectangle(ALL, ENCODING.RAW, Buffer.alloc(1024 * 768 * 4, 0x5a)))
const KIB = 1024
/** The most that one of them may add to the broker's memory, in KiB. */
const ALLOWED = 96 * KIB
/** Longer than filling that would take if nothing bounded it. */
const FLOOD_MS = 2_000

/** A target without security, up to ServerInit; `after` runs at the viewer's first request. */
class FalseTarget {
  after: (socket: Socket) => void = () => undefined
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      void this.#welcome(socket)
    })
  }

  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => resolve((this.#server.address() as { port: number }).port))
    })
  }

  async #welcome(socket: Socket): Promise<void> {
    // Version, type 1, ClientInit: 12, 1 and 1 bytes.
    const says = [Buffer.of(1, 1), Buffer.alloc(4), encodeServerInit(INIT)]
    const wants = [12, 13, 14]
    let heard = 0
    socket.write('RFB 003.008\n')
    socket.on('data', (bytes: Buffer) => {
      heard += bytes.length
      while (wants.length > 0 && heard >= wants[0]!) {
        wants.shift()
        socket.write(says.shift()!)
        if (wants.length === 0) socket.once('data', () => this.after(socket))
      }
    })
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

describe('a desktop', () => {
  const target = new FalseTarget()
  let desktop: Desktop
  const streams: ByteStream[] = []

  beforeAll(async () => {
    desktop = await startDesktop({
      port: await target.listen(),
      subprotocols: ['VNC', 'VNC_CLIPBOARD_DOWN'],
      policy: { security_types: ['none'] },
    })
  })
  afterAll(async () => {
    await desktop.stop()
    target.close()
  })
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.destroy()
  })

  /** Connects a viewer, which has requested the whole desktop. */
  async function view(): Promise<ByteStream> {
    const { port, login, password } = desktop
    const viewer = vncSession({ port, login, password, types: ['tlsplain'] })
    const signal = new AbortController().signal
    const { stream } = await openVncTarget(viewer, { gate: trustingGate(), signal, isShared: true })
    streams.push(stream)
    stream.onData = () => undefined
    stream.paused = false
    stream.write(encodeSetEncodings(Object.values(ENCODING)))
    stream.write(encodeUpdateRequest(false, ALL))
    return stream
  }

  const at = (x: number, y: number, width: number, height: number, encoding: number = ENCODING.RAW) =>
    update(rectangle({ x, y, width, height }, encoding))
  const bomb = deflateSync(Buffer.alloc(64 * KIB * KIB))
  test.each([
    ['a rectangle outside of its screen', at(1000, 0, 100, 10), /a rectangle inside 1024 × 768/],
    ['a rectangle of 65535 × 65535', at(0, 0, 65535, 65535), /65535 × 65535/],
    ['a screen of 65535 × 65535', at(0, 0, 65535, 65535, ENCODING.DESKTOP_SIZE), /65535 × 65535/],
    ['an encoding that nobody asked for', at(0, 0, 1, 1, 50), /found 50/],
    ['pixels of 4 GiB', update(rectangle(ALL, ENCODING.ZRLE, uint32(0xffffffff))), /4294967295/],
    ['a text of 4 GiB', Buffer.from('030000007fffffff', 'hex'), /found 2147483647/],
    [
      'a text that inflates to 64 MiB',
      encodeExtendedServerCutText(ACTION.PROVIDE | FORMAT.TEXT, bomb),
      /zlib/,
    ],
    ['another protocol', Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), /found type 72/],
  ])('whose target sends %s ends, with the reason', async (_what, bytes, reason) => {
    const before = (await desktop.closedSessions()).length
    target.after = (socket) => socket.write(bytes)
    const memory = residentOf(desktop)
    const stream = await view()
    const row = (await desktop.closedSessions(before + 1)).at(-1)!
    expect(row.result).toBe('failure')
    expect(row.reason).toMatch(/^the target broke the RFB protocol: /)
    expect(row.reason).toMatch(reason)
    expect(residentOf(desktop) - memory).toBeLessThan(ALLOWED)
    stream.destroy()
  })

  test('whose target puts files beside a text on the clipboard passes the text alone, and tells of both', async () => {
    const text = Buffer.from('copied\0')
    const { flags, body } = encodeClipboard({
      action: 'provide',
      items: new Map([
        [FORMAT.TEXT, text],
        [FORMAT.FILES, Buffer.from('a file')],
      ]),
    })
    target.after = (socket) => socket.write(encodeExtendedServerCutText(flags, body))
    const stream = await view()
    const alone = encodeClipboard({ action: 'provide', items: new Map([[FORMAT.TEXT, text]]) })
    let read = Buffer.alloc(0)
    stream.onData = (bytes) => {
      read = Buffer.concat([read, bytes])
    }
    const [copied] = await desktop.events('clipboard', 1)
    expect(copied).toMatchObject({
      direction: 'down',
      format: 'text',
      size: 6,
      sha256: createHash('sha256').update('copied').digest('hex'),
    })
    const denied = await desktop.events('channel.denied', 1)
    expect(denied.at(-1)).toMatchObject({ reason: 'the clipboard does not pass files on' })
    await until('the text', () => read.length >= 12 + alone.body.length || undefined)
    expect(read).toEqual(encodeExtendedServerCutText(alone.flags, alone.body))
  })

  /** Returns the broker's largest memory for a while, minus its memory before. */
  async function growth(): Promise<number> {
    const before = residentOf(desktop)
    let most = before
    for (const end = Date.now() + FLOOD_MS; Date.now() < end; await sleep(50)) {
      most = Math.max(most, residentOf(desktop))
    }
    return most - before
  }

  /** Returns how much was sent when the flow stops; rejects if it does not stop. */
  function atRest(sent: () => number): Promise<number> {
    return until('an end of what is sent', async () => {
      const before = sent()
      await sleep(500)
      return sent() === before ? before : undefined
    })
  }

  test('whose target floods a viewer that has stopped reading stops, and takes no memory', async () => {
    let sent = 0
    target.after = (socket) => {
      const more = (): void => {
        sent += SCREENFUL.length
        if (socket.writable) socket.write(SCREENFUL, more)
      }
      more()
    }
    const stream = await view()
    stream.paused = true
    await until('a flood', () => sent > 2 * SCREENFUL.length || undefined)
    expect(await growth()).toBeLessThan(ALLOWED)
    const held = await atRest(() => sent)
    stream.paused = false
    await until('more', () => sent > held + 3 * SCREENFUL.length || undefined)
  })

  test('whose viewer floods a target that has stopped reading stops, and takes no memory', async () => {
    let reader: Socket | undefined
    target.after = (socket) => {
      reader = socket
    }
    const stream = await view()
    const moves = Buffer.concat(Array.from({ length: 4096 }, (_, x) => encodePointer(x % 1024, 5, 0)))
    let sent = 0
    const timer = setInterval(() => {
      if (stream.congested) return
      sent += moves.length
      stream.write(moves)
    }, 1)
    // The first flood makes the heap grow, however little of it is stored.
    await until('a flood that is read', () => sent > 200 * moves.length || undefined)
    reader?.pause()
    expect(await growth()).toBeLessThan(ALLOWED)
    await atRest(() => sent)
    clearInterval(timer)
    expect(stream.congested).toBe(true)
  })
})
