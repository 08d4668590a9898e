import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Chain } from '../../../recordings/container/chain.ts'
import { KIND } from '../../../recordings/container/format/checkpoint.ts'
import { FAULTS, RecordingError } from '../../../recordings/container/format/error.ts'
import { encodeHeader, signerMetadata } from '../../../recordings/container/format/header.ts'
import { LINK_LENGTH } from '../../../recordings/container/format/limits.ts'
import type { PlacedRecord } from '../../../recordings/container/format/parser.ts'
import { RECORD } from '../../../recordings/container/format/record.ts'
import { type VerifyOptions, verifyStream } from '../../../recordings/container/verify.ts'
import { makeSample, rebuild, type Sample } from '../samples.ts'
import { framesOf, inPieces, makeSigner, removeRoots, SESSION } from '../support.ts'

afterAll(removeRoots)

const verify = (bytes: Uint8Array, options: VerifyOptions = {}) =>
  verifyStream(inPieces(bytes, 10_000), options)
const faultOf = async (bytes: Uint8Array, options: VerifyOptions = {}) =>
  (await verify(bytes, options)).fault?.code

let sample: Sample
let other: Sample
beforeAll(async () => {
  sample = await makeSample(4)
  other = await makeSample(2, '01JD0000000000000000000002', sample.signer)
})

describe('a recording in order', () => {
  test('verifies in pieces of any size, and so does its rebuilt twin', async () => {
    expect(sample.records.length).toBeGreaterThan(8)
    for (const size of [1_000_000_000, 4096, 777]) {
      const verification = await verifyStream(inPieces(sample.bytes, size), {
        trusted: [sample.signer.raw],
        session: SESSION,
      })
      expect(verification).toMatchObject({ ok: true, state: 'sealed', records: sample.records.length })
    }
    expect((await rebuild(sample.metadata, sample.records)).equals(sample.bytes)).toBe(true)
    expect((await verify(await rebuild(sample.metadata, sample.records, sample.signer))).ok).toBe(true)
  })
})

describe('each fault has its name', () => {
  test('a flipped bit anywhere, with the record that it is in', async () => {
    // Every byte of the small records and of every header, and some bytes within each group.
    const positions = new Set<number>()
    for (const { offset, end } of sample.records) {
      for (let at = offset; at < Math.min(end, offset + 40); at++) positions.add(at)
      for (let at = end - 50; at < end; at++) positions.add(at)
      positions.add(Math.floor((offset + end) / 2))
    }
    const header = sample.records[0]?.offset ?? 0
    for (let at = 0; at < header; at += 3) positions.add(at)
    const picked = [...positions].filter((_, index) => index % 3 === 0)
    expect(picked.length).toBeGreaterThan(300)
    for (const at of picked) {
      const changed = Buffer.from(sample.bytes)
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8))
      const { ok, fault } = await verifyStream(inPieces(changed, 300_000), {})
      expect(ok, `byte ${at}`).toBe(false)
      const record = sample.records.find((candidate) => at >= candidate.offset && at < candidate.end)
      if (record) {
        expect(fault?.code, `byte ${at}`).toMatch(/^damaged_(header|record)$/)
        expect(fault?.offset, `byte ${at}`).toBe(record.offset)
        expect(fault?.code === 'damaged_header', `byte ${at}`).toBe(at < record.offset + 12)
      } else {
        expect(fault?.code).toMatch(/^(not_a_recording|unsupported_version|damaged_header|cut_tail)$/)
      }
    }
  }, 300_000)

  test('a tail that was cut, at every boundary and beside it', async () => {
    const header = sample.records[0]?.offset ?? 0
    for (const size of [0, 7, 15, 16, header - 1])
      expect(await faultOf(sample.bytes.subarray(0, size))).toBe('cut_tail')
    expect(await faultOf(sample.bytes.subarray(0, header))).toBe('not_closed')
    for (const { end } of sample.records.slice(0, -1)) {
      expect(await verify(sample.bytes.subarray(0, end))).toMatchObject({
        goodSize: end,
        fault: { code: 'not_closed' },
      })
      expect((await verify(sample.bytes.subarray(0, end), { mayBeOpen: true })).ok).toBe(true)
      for (const size of [end - 1, end + 1, end + 11, end + 13]) {
        expect(await faultOf(sample.bytes.subarray(0, size)), `at ${size}`).toBe('cut_tail')
      }
    }
    expect(await faultOf(sample.bytes.subarray(0, sample.bytes.length - 1))).toBe('cut_tail')
  })

  test('records that were removed, repeated, swapped', async () => {
    const { bytes, records } = sample
    const without = (index: number) =>
      Buffer.concat([bytes.subarray(0, records[index]?.offset), bytes.subarray(records[index]?.end)])
    for (let index = 0; index < records.length - 1; index++) {
      const verification = await verify(without(index))
      expect(verification.fault, `record ${index}`).toMatchObject({
        code: 'missing_records',
        offset: records[index]?.offset,
      })
    }
    const [, second, third] = records
    if (!second || !third) throw new Error('the sample is too short')
    const part = (record: PlacedRecord) => bytes.subarray(record.offset, record.end)
    const swapped = [bytes.subarray(0, second.offset), part(third), part(second), bytes.subarray(third.end)]
    expect(await faultOf(Buffer.concat(swapped))).toBe('misplaced_record')
    const repeated = [bytes.subarray(0, second.end), part(second), bytes.subarray(second.end)]
    expect(await faultOf(Buffer.concat(repeated))).toBe('misplaced_record')
  })

  test('records that were changed with all links repaired', async () => {
    const groups = sample.records.filter(({ type }) => type === RECORD.group)
    const removed = sample.records.filter((record) => record !== groups[1])
    expect(await faultOf(await rebuild(sample.metadata, removed))).toBe('bad_signature')
    const foreign = other.records.find(({ type }) => type === RECORD.group)
    if (!foreign) throw new Error('the other sample has no group')
    const inserted = sample.records.map((record) => (record === groups[0] ? foreign : record))
    expect(await faultOf(await rebuild(sample.metadata, inserted))).toBe('bad_signature')
    expect(await faultOf(await rebuild({ ...sample.metadata, user: 'mallory' }, sample.records))).toBe(
      'bad_signature',
    )
    const renumbered = await rebuild(sample.metadata, removed, sample.signer)
    expect(await faultOf(renumbered)).toBe('bad_group')
  })

  test("another recording's checkpoint, and a checkpoint of another place", async () => {
    const index = sample.records.findIndex(({ type }) => type === RECORD.checkpoint)
    const foreign = other.records.find(({ type }) => type === RECORD.checkpoint)
    const records = sample.records.map((record, at) => (at === index && foreign ? foreign : record))
    expect(await faultOf(await rebuild(sample.metadata, records))).toBe('bad_signature')
    expect(await faultOf(await rebuild({ ...sample.metadata, session: 'other' }, sample.records))).toBe(
      'bad_signature',
    )
  })

  test('the recording of another session, one signed by a stranger, one that was replaced', async () => {
    const options = { session: SESSION, trusted: [sample.signer.raw] }
    expect(await faultOf(other.bytes, options)).toBe('wrong_session')
    const stranger = makeSigner()
    const resigned = await rebuild(
      { ...sample.metadata, ...signerMetadata(stranger.raw) },
      sample.records,
      stranger,
    )
    expect((await verify(resigned)).ok).toBe(true)
    expect(await faultOf(resigned, options)).toBe('unknown_signer')
    expect(await faultOf(await rebuild(sample.metadata, sample.records, stranger), options)).toBe(
      'bad_signature',
    )
    const { size, digest } = await verify(sample.bytes, options)
    expect((await verify(sample.bytes, { ...options, expected: { size, digest } })).ok).toBe(true)
    const again = await makeSample(1, SESSION, sample.signer)
    expect(await faultOf(again.bytes, { ...options, expected: { size, digest } })).toBe('replaced_file')
  })

  test('bytes behind the end', async () => {
    expect(await faultOf(Buffer.concat([sample.bytes, Buffer.of(0)]))).toBe('trailing_data')
    const last = sample.records.at(-1)
    expect(KIND.sealed).toBe(last?.body[0])
    expect(await faultOf(Buffer.concat([sample.bytes, sample.bytes.subarray(last?.offset)]))).toBe(
      'trailing_data',
    )
  })

  test('a file that is none, and one of a later version', async () => {
    expect(await faultOf(randomBytes(5000))).toBe('not_a_recording')
    const later = Buffer.from(sample.bytes)
    later.writeUInt16BE(2, 8)
    expect(await faultOf(later)).toBe('unsupported_version')
  })
})

describe('a reader', () => {
  test('refuses another key, and gives what stands before a fault', async () => {
    await expect(framesOf(sample.bytes, randomBytes(32))).rejects.toMatchObject({ code: 'wrong_key' })
    await expect(framesOf(sample.bytes, randomBytes(16))).rejects.toMatchObject({ code: 'wrong_key' })
    const third = sample.records.filter(({ type }) => type === RECORD.group)[2]
    const cut = await framesOf(sample.bytes.subarray(0, third?.end), sample.key)
    expect(cut.length).toBeGreaterThan(5)
    await expect(framesOf(sample.bytes.subarray(0, 100), sample.key)).rejects.toMatchObject({
      code: 'cut_tail',
    })
  })

  test('takes groups of another place for what they are', async () => {
    const groups = sample.records.filter(({ type }) => type === RECORD.group)
    const [first, second] = groups
    const swapped = sample.records.map((record) =>
      record === first ? second : record === second ? first : record,
    )
    const bytes = await rebuild(sample.metadata, swapped as PlacedRecord[])
    await expect(framesOf(bytes, sample.key)).rejects.toMatchObject({ code: 'bad_group' })
  })
})

describe('whatever the bytes', () => {
  const namedOnly = async (bytes: Uint8Array) => {
    const verification = await verify(bytes)
    expect(verification.fault === undefined || verification.fault.code in FAULTS).toBe(true)
    try {
      await framesOf(bytes, sample.key, 1000)
    } catch (error) {
      expect(error).toBeInstanceOf(RecordingError)
    }
  }

  test('random files', async () => {
    const magic = Buffer.concat([sample.bytes.subarray(0, 12)])
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3000 }), fc.boolean(), async (bytes, genuine) =>
        namedOnly(genuine ? Buffer.concat([magic, bytes]) : bytes),
      ),
    )
  })

  test('random records behind a genuine header, with their links right', async () => {
    const record = fc.record({ type: fc.constantFrom(1, 2), body: fc.uint8Array({ maxLength: 400 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 10 }), async (records) => {
        const header = encodeHeader(sample.metadata)
        const chain = new Chain(SESSION, header.subarray(-LINK_LENGTH), 0, header.length)
        const parts = records.flatMap(({ type, body }) => chain.add(type === 1 ? 1 : 2, [Buffer.from(body)]))
        await namedOnly(Buffer.concat([header, ...parts]))
      }),
    )
  })

  test('a genuine file with pieces overwritten, cut out, doubled', async () => {
    const small = (await makeSample(1)).bytes
    await fc.assert(
      fc.asyncProperty(
        fc.nat(small.length),
        fc.nat(500),
        fc.uint8Array({ maxLength: 200 }),
        async (at, cut, put) =>
          namedOnly(Buffer.concat([small.subarray(0, at), put, small.subarray(at + cut)])),
      ),
    )
  })
})
