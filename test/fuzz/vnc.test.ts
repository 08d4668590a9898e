/**
 * VNC from peers that send anything: units or the one error, the same wherever chunks end, with only an
 * incomplete unit kept.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import {
  encodeClientCutText,
  encodeClientFence,
  encodeContinuousUpdates,
  encodeExtendedClientCutText,
  encodeKey,
  encodePointer,
  encodeSetDesktopSize,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../../proxies/vnc/codec/client-encoder.ts'
import { ClientMessageReader } from '../../proxies/vnc/codec/client-messages.ts'
import { ACTION, encodeClipboard, parseClipboard } from '../../proxies/vnc/codec/clipboard.ts'
import { ENCODING } from '../../proxies/vnc/codec/encodings.ts'
import { RGB888 } from '../../proxies/vnc/codec/pixel-format.ts'
import {
  encodeBell,
  encodeColourMap,
  encodeDesktopName,
  encodeExtendedDesktopSize,
} from '../../proxies/vnc/codec/server-encoder.ts'
import { encodeServerInit, parseServerInit } from '../../proxies/vnc/codec/server-init.ts'
import { cut, type Event, hex } from '../proxies/stream-events.ts'
import {
  encodeEndOfContinuousUpdates,
  encodeServerCutText,
  encodeServerFence,
} from '../proxies/vnc/codec/encoders.ts'
import { compactLength, rectangle, tell, uint32, update } from '../proxies/vnc/codec/streams.ts'
import { edited, edits } from './corpus.ts'

const SCREEN = { width: 64, height: 48 }
const places = fc.array(fc.nat(3_000), { maxLength: 12 })
const some = (maxLength: number) => fc.uint8Array({ maxLength })
const blob = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const prefixed = (bytes: Uint8Array) => Buffer.concat([uint32(bytes.length), bytes])
const compact = (bytes: Uint8Array) => Buffer.concat([compactLength(bytes.length), bytes])

const area = fc
  .record({ x: fc.nat(63), y: fc.nat(47), width: fc.nat(33), height: fc.nat(33) })
  .map(({ x, y, width, height }) => ({
    x,
    y,
    width: Math.min(width, 64 - x),
    height: Math.min(height, 48 - y),
  }))

const pixels = area.chain((at) => {
  const size = at.width * at.height
  const hextile = fc
    .array(
      fc.oneof(
        fc.nat(255).map((byte) => Buffer.of(0x02, byte, 0, 0, 0)),
        fc.constant(Buffer.of(0)),
        fc
          .array(blob(2), { maxLength: 3 })
          .map((list) => Buffer.concat([Buffer.of(8, list.length), ...list])),
        fc
          .array(blob(6), { maxLength: 3 })
          .map((list) => Buffer.concat([Buffer.of(24, list.length), ...list])),
      ),
      {
        minLength: Math.ceil(at.width / 16) * Math.ceil(at.height / 16),
        maxLength: Math.ceil(at.width / 16) * Math.ceil(at.height / 16),
      },
    )
    .map((tiles) => Buffer.concat(tiles))
  const tight = fc.oneof(
    blob(3).map((colour) => Buffer.concat([Buffer.of(0x80), colour])),
    size * 3 < 12
      ? blob(size * 3).map((data) => Buffer.concat([Buffer.of(0x20), data]))
      : some(400).map((data) => Buffer.concat([Buffer.of(0x20), compact(data)])),
    some(400).map((data) => Buffer.concat([Buffer.of(0x90), compact(data)])),
  )
  return fc.oneof(
    blob(size * 4).map((data) => rectangle(at, ENCODING.RAW, data)),
    fc.constant(rectangle(at, ENCODING.COPY_RECT, Buffer.alloc(4))),
    fc
      .nat(Math.min(size, 5))
      .chain((count) => blob(4 + count * 12).map((data) => rectangle(at, ENCODING.RRE, uint32(count), data))),
    hextile.map((data) => rectangle(at, ENCODING.HEXTILE, data)),
    some(300).map((data) => rectangle(at, ENCODING.ZLIB, prefixed(data))),
    some(300).map((data) => rectangle(at, ENCODING.ZRLE, prefixed(data))),
    tight.map((data) => rectangle(at, ENCODING.TIGHT, data)),
  )
})
const none = { x: 0, y: 0, width: 0, height: 0 }
const pseudo = fc.oneof(
  fc.string({ maxLength: 20 }).map(encodeDesktopName),
  fc.constant(encodeExtendedDesktopSize(0, 0, 64, 48, [])),
  fc.nat(7).map((state) => rectangle(none, ENCODING.QEMU_LED, Buffer.of(state))),
  blob(9 * 2 * 4 + 4).map((data) => rectangle({ ...none, width: 9, height: 2 }, ENCODING.CURSOR, data)),
)
const message = fc.oneof(
  fc.array(fc.oneof(pixels, pseudo), { maxLength: 4 }).map((list) => update(...list)),
  fc.constant(encodeBell()),
  fc.constant(encodeEndOfContinuousUpdates()),
  some(100).map(encodeServerCutText),
  some(64).map((payload) => encodeServerFence(1, payload)),
  fc.constant(encodeColourMap(3, [{ red: 1, green: 2, blue: 3 }])),
)
const stream = fc.array(message, { maxLength: 8 }).map((list) => Buffer.concat(list))

function outcome(chunks: readonly Uint8Array[]): { events: Event[]; error: string | undefined } {
  const events: Event[] = []
  try {
    tell(chunks, SCREEN, undefined, events)
    return { events, error: undefined }
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError)
    return { events, error: (error as Error).message }
  }
}

test('a server’s stream is the same wherever chunks end, and no byte is lost', () => {
  fc.assert(
    fc.property(stream, places, (bytes, ends) => {
      const whole = outcome([bytes])
      expect(whole.error).toBeUndefined()
      expect(outcome(cut(bytes, ends))).toEqual(whole)
      expect(whole.events.map((event) => event[2] ?? '').join('')).toBe(hex(bytes))
    }),
    { numRuns: 1_500 },
  )
})

test('a server’s stream that was tampered with ends in the same error wherever chunks end', () => {
  let refused = 0
  fc.assert(
    fc.property(stream, edits, places, (bytes, changes, ends) => {
      const sent = edited(bytes, changes)
      const whole = outcome([sent])
      expect(outcome(cut(sent, ends))).toEqual(whole)
      if (whole.error !== undefined) refused += 1
    }),
    { numRuns: 3_000 },
  )
  expect(refused).toBeGreaterThan(100)
})

const viewerMessage = fc.oneof(
  fc.constant(encodeSetPixelFormat(RGB888)),
  fc.array(fc.integer(), { maxLength: 9 }).map(encodeSetEncodings),
  area.map((at) => encodeUpdateRequest(true, at)),
  area.map((at) => encodeContinuousUpdates(false, at)),
  fc.tuple(fc.boolean(), fc.nat(0xffff)).map(([isDown, keysym]) => encodeKey(isDown, keysym)),
  fc.tuple(fc.nat(0xffff), fc.nat(0x7f)).map(([x, buttons]) => encodePointer(x, 1, buttons)),
  fc.constant(Buffer.from('0581000a001402', 'hex')),
  some(100).map(encodeClientCutText),
  some(60).map((body) => encodeExtendedClientCutText(ACTION.NOTIFY, body)),
  some(64).map((payload) => encodeClientFence(0, payload)),
  fc.nat(3).map((count) =>
    encodeSetDesktopSize(
      9,
      9,
      Array.from({ length: count }, (_, id) => ({ id, ...none, flags: 0 })),
    ),
  ),
  fc.constant(Buffer.from('ff0000010000ff0d0000001c', 'hex')),
)

function viewerOutcome(chunks: readonly Uint8Array[]): { events: string[]; error: string | undefined } {
  const events: string[] = []
  const reader = new ClientMessageReader((read, bytes) =>
    events.push(`${JSON.stringify(read)} ${hex(bytes)}`),
  )
  reader.hasExtendedButtons = true
  reader.hasExtendedClipboard = true
  try {
    for (const chunk of chunks) reader.feed(Buffer.from(chunk))
    return { events, error: undefined }
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError)
    return { events, error: (error as Error).message }
  }
}

test('a viewer’s messages are the same wherever chunks end, tampered with or not', () => {
  let refused = 0
  fc.assert(
    fc.property(
      fc.array(viewerMessage, { maxLength: 10 }).map((list) => Buffer.concat(list)),
      fc.option(edits),
      places,
      (bytes, changes, ends) => {
        const sent = changes ? edited(bytes, changes) : bytes
        const whole = viewerOutcome([sent])
        expect(viewerOutcome(cut(sent, ends))).toEqual(whole)
        if (!changes) expect(whole.error).toBeUndefined()
        if (whole.error !== undefined) refused += 1
      },
    ),
    { numRuns: 3_000 },
  )
  expect(refused).toBeGreaterThan(100)
})

test('ServerInit and clipboards are read or refused', () => {
  fc.assert(
    fc.property(some(40), edits, fc.nat(), (bytes, changes, flags) => {
      const init = encodeServerInit({ ...SCREEN, format: RGB888, name: hex(bytes) })
      const provided = encodeClipboard({ action: 'provide', items: new Map([[1, bytes]]) })
      const attempts = [
        () => parseServerInit(edited(init, changes)),
        () => parseClipboard(provided.flags, edited(provided.body, changes)),
        () => parseClipboard(flags, bytes),
      ]
      for (const attempt of attempts) {
        try {
          attempt()
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedError)
        }
      }
    }),
    { numRuns: 2_000 },
  )
})
