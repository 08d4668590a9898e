import { Buffer } from 'node:buffer'
import { createSecretKey, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Checkpoint,
  encodeCheckpoint,
  encodeStatement,
  parseCheckpoint,
  parseStatement,
} from '../../../recordings/container/format/checkpoint.ts'
import { RecordingError } from '../../../recordings/container/format/error.ts'
import {
  GroupBuilder,
  openGroup,
  parseGroupHeader,
  sealGroup,
} from '../../../recordings/container/format/group.ts'
import {
  encodeHeader,
  headerLength,
  parseHeader,
  signerMetadata,
} from '../../../recordings/container/format/header.ts'
import { MAX_FRAME_PAYLOAD } from '../../../recordings/container/format/limits.ts'
import { parseRecordHeader, writeRecordHeader } from '../../../recordings/container/format/record.ts'
import { readVarint, varintLength, writeVarint } from '../../../recordings/container/format/varint.ts'
import { BEGIN, SESSION } from '../support.ts'

describe('varints', () => {
  test('what is written is read, and is as long as promised', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.nat(5), (value, offset) => {
        const bytes = new Uint8Array(16)
        const end = writeVarint(bytes, offset, value)
        expect(end - offset).toBe(varintLength(value))
        expect(readVarint(bytes, offset)).toEqual({ value, offset: end })
      }),
    )
  })

  test.each([
    ['cut', '80'],
    ['not in its shortest form', '8000'],
    ['over 2^53 - 1', 'ffffffffffffff7f'],
    ['longer than eight bytes', 'ffffffffffffffff01'],
    ['empty', ''],
  ])('%s is refused', (_, hex) => {
    expect(readVarint(Buffer.from(hex, 'hex'), 0)).toBeUndefined()
  })

  test('a limit is the largest number that passes', () => {
    expect(readVarint(Buffer.from([100]), 0, 100)?.value).toBe(100)
    expect(readVarint(Buffer.from([101]), 0, 100)).toBeUndefined()
  })
})

describe('groups', () => {
  const frame = fc.record({
    type: fc.integer({ min: 1, max: 127 }),
    channel: fc.integer({ min: 0, max: 0xffff_ffff }),
    delta: fc.integer({ min: 0, max: 1_000_000 }),
    payload: fc.uint8Array({ maxLength: 300 }),
  })

  test('frames come back as they went in, compressed or not', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { minLength: 1, maxLength: 40 }),
        fc.boolean(),
        fc.nat(),
        (frames, compress, number) => {
          const key = createSecretKey(randomBytes(32))
          const builder = new GroupBuilder()
          let time = 1_000_000
          const written = frames.map(({ delta, ...rest }) => {
            time += delta
            expect(builder.append(rest.type, rest.channel, time, rest.payload)).toBe(true)
            return { ...rest, time }
          })
          const sealed = sealGroup(key, number, builder.take(), compress)
          const body = Buffer.concat(sealed.body)
          expect(parseGroupHeader(body)).toMatchObject({
            number,
            first: written[0]?.time,
            last: time,
            frames: frames.length,
          })
          const opened = openGroup(key, body, 0).map((read) => ({
            ...read,
            payload: new Uint8Array(read.payload),
          }))
          expect(opened).toEqual(written)
          expect(builder.length).toBe(0)
        },
      ),
    )
  })

  test('a full group takes no more, and what repeats is compressed', () => {
    const builder = new GroupBuilder()
    const payload = Buffer.alloc(MAX_FRAME_PAYLOAD, 'a')
    let taken = 0
    while (builder.append(2, 1, taken, payload)) taken++
    expect(taken).toBe(3)
    const body = Buffer.concat(sealGroup(createSecretKey(randomBytes(32)), 0, builder.take(), true).body)
    expect(parseGroupHeader(body)?.compressed).toBe(true)
    expect(body.length).toBeLessThan(1000)
  })

  test('another key, and a changed header, do not open it', () => {
    const key = createSecretKey(randomBytes(32))
    const builder = new GroupBuilder()
    builder.append(2, 1, 0, Buffer.from('root:x:0:0'))
    const body = Buffer.concat(sealGroup(key, 7, builder.take(), true).body)
    expect(() => openGroup(createSecretKey(randomBytes(32)), body, 0)).toThrow(RecordingError)
    for (let at = 0; at < body.length; at++) {
      const changed = Buffer.from(body)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => openGroup(key, changed, 0)).toThrow(RecordingError)
    }
  })
})

describe('records and headers', () => {
  test('every flipped bit of a record header is noticed', () => {
    const header = Buffer.alloc(12)
    writeRecordHeader(header, { type: 2, length: 81, sequence: 4711 })
    expect(parseRecordHeader(header, 0)).toEqual({ type: 2, length: 81, sequence: 4711 })
    for (let bit = 0; bit < 96; bit++) {
      const changed = Buffer.from(header)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(parseRecordHeader(changed, 0)).toBeUndefined()
    }
  })

  test('the header carries its metadata and refuses to be without a signer', () => {
    const metadata = { session: SESSION, user: 'jos\u00e9', port: 22, ...signerMetadata(randomBytes(32)) }
    const bytes = encodeHeader(metadata)
    expect(headerLength(bytes)).toBe(bytes.length)
    expect(parseHeader(bytes)).toMatchObject({ session: SESSION, metadata })
    expect(() => encodeHeader({ session: SESSION })).toThrow('signing_public_key')
    expect(() => encodeHeader({ ...metadata, signing_key: '0000000000000000' })).toThrow('signing_key')
    expect(() => encodeHeader({ ...metadata, note: 'x'.repeat(70_000) })).toThrow('at most 65536 bytes')
  })
})

describe('checkpoints', () => {
  const closing = { frames: 3, droppedBytes: 17, unsignedBytes: 400, lastFrame: 999 }
  const checkpoints: Checkpoint[] = [
    { kind: 'interim', wallTime: BEGIN, time: 1234 },
    { kind: 'sealed', wallTime: BEGIN, time: 1234, closing },
    { kind: 'recovered', wallTime: BEGIN, time: 1234, closing },
    { kind: 'failed', wallTime: BEGIN, time: 1234, closing },
  ]

  test.each(checkpoints)('a signer can read what it signs: $kind', (checkpoint) => {
    const place = { session: SESSION, sequence: 9, offset: 77_777, head: randomBytes(32) }
    const body = encodeCheckpoint(checkpoint)
    expect(parseStatement(encodeStatement(place, body))).toEqual({ ...place, checkpoint, body })
    expect(parseCheckpoint(Buffer.concat([body, Buffer.alloc(64, 1)]))?.checkpoint).toEqual(checkpoint)
  })

  test('what is no statement is told from one: a signer signs nothing else', () => {
    const place = { session: SESSION, sequence: 9, offset: 77_777, head: randomBytes(32) }
    const statement = encodeStatement(place, encodeCheckpoint({ kind: 'interim', wallTime: BEGIN, time: 0 }))
    for (let length = 0; length < statement.length; length++) {
      expect(parseStatement(statement.subarray(0, length))).toBeUndefined()
    }
    expect(parseStatement(Buffer.concat([statement, Buffer.of(0)]))).toBeUndefined()
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        (bytes) => parseStatement(Buffer.from(bytes)) === undefined,
      ),
    )
  })
})
