import { Buffer } from 'node:buffer'
import { mkdirSync, writeFileSync } from 'node:fs'
import { copyFile, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { RecordParser } from '../../../recordings/container/format/parser.ts'
import { RECORD } from '../../../recordings/container/format/record.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import { missingPart, verifyStream } from '../../../recordings/container/verify.ts'
import { findRecording, recordingsIn } from '../../../recordings/storage/catalog.ts'
import { type RecoverOptions, recoverAll, recoverRecording } from '../../../recordings/storage/recover.ts'
import { recordsOf } from '../samples.ts'
import {
  BEGIN,
  framesOf,
  inPieces,
  makeRoot,
  makeSigner,
  makeWriter,
  removeRoots,
  SESSION,
  until,
} from '../support.ts'

afterAll(removeRoots)

const signer = makeSigner()
const options: RecoverOptions = { sign: signer.sign, trusted: [signer.raw], now: () => BEGIN + 60_000 }
const verify = (bytes: Uint8Array) =>
  verifyStream(inPieces(bytes), { session: SESSION, trusted: [signer.raw] })

/** Makes a session's folder with these bytes as its recording. */
function folderWith(bytes: Uint8Array, root = makeRoot()): string {
  const directory = join(root, '2026', '11', '20', SESSION)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, FILE_NAME), bytes)
  return directory
}

let open: Buffer
let closed: Buffer
let key: Uint8Array
/** Offsets after the header and after each record of `open`. */
const boundaries: number[] = []
let header = 0

beforeAll(async () => {
  const { writer, path, clock, grant } = await makeWriter({ signer })
  for (let index = 0; index < 3; index++) {
    clock.time += 200_000
    for (let part = 0; part < 5; part++) writer.write(FRAME.output, 1, Buffer.alloc(60_000, `${index}`))
    await until(() => writer.backlog < 250_000)
  }
  await until(() => writer.backlog === 0)
  open = await readFile(path)
  await writer.close({ result: 'success' })
  closed = await readFile(path)
  key = grant.key
  const parser = new RecordParser()
  parser.push(open)
  parser.header()
  header = parser.offset
  for (let record = parser.next(); record; record = parser.next()) boundaries.push(record.end)
})

describe('a recording that nobody closed', () => {
  test('is cut at its last whole record, and a signed record says what is missing', async () => {
    expect(boundaries.length).toBeGreaterThan(4)
    for (const boundary of [header, ...boundaries]) {
      for (const size of [boundary - 1, boundary, boundary + 1, boundary + 13]) {
        if (size < header || size > open.length) continue
        const good = Math.max(header, ...boundaries.filter((end) => end <= size))
        const directory = folderWith(open.subarray(0, size))
        const recovery = await recoverRecording(directory, SESSION, options)
        expect(recovery, `cut at ${size}`).toMatchObject({ outcome: 'recovered', droppedBytes: size - good })
        const bytes = await readFile(join(directory, FILE_NAME))
        const verification = await verify(bytes)
        expect(verification).toMatchObject({ ok: true, state: 'recovered' })
        expect(recovery).toMatchObject({
          size: bytes.length,
          digest: verification.digest,
          frames: verification.frames,
        })
        expect(missingPart(verification)).toContain(
          `${size - good} bytes of an unfinished record were dropped`,
        )
        expect((await framesOf(bytes, key)).length).toBe(verification.frames)
        expect(await findRecording(dirname(dirname(dirname(dirname(directory)))), SESSION)).toMatchObject({
          state: 'recovered',
          frames: verification.frames,
          digest: verification.digest,
        })
        expect(await recoverRecording(directory, SESSION, options)).toEqual({ outcome: 'closed' })
      }
    }
  })

  test('may end in a page that never reached the disk', async () => {
    const end = boundaries.at(-2) ?? 0
    const torn = Buffer.from(open)
    torn.fill(0, end + 20)
    const directory = folderWith(torn)
    const recovery = await recoverRecording(directory, SESSION, options)
    expect(recovery).toMatchObject({ outcome: 'recovered', droppedBytes: open.length - end })
    expect(await verify(await readFile(join(directory, FILE_NAME)))).toMatchObject({
      ok: true,
      state: 'recovered',
    })
  })

  test('whose recovery was interrupted is recovered all the same', async () => {
    const directory = folderWith(open.subarray(0, open.length - 3))
    await recoverRecording(directory, SESSION, options)
    const path = join(directory, FILE_NAME)
    const sealed = await readFile(path)
    writeFileSync(path, Buffer.concat([sealed, open.subarray(sealed.length, open.length), Buffer.alloc(9)]))
    expect(await recoverRecording(directory, SESSION, options)).toEqual({ outcome: 'closed' })
    expect((await readFile(path)).equals(sealed)).toBe(true)
  })

  test('without a whole header is no recording: its session never began', async () => {
    for (const size of [0, 10, header - 1]) {
      const directory = folderWith(open.subarray(0, size))
      expect(await recoverRecording(directory, SESSION, options)).toEqual({ outcome: 'empty' })
      await expect(stat(join(directory, FILE_NAME))).rejects.toThrow('ENOENT')
    }
  })
})

describe('what no crash leaves behind is reported and left as it is', () => {
  const untouched = async (bytes: Buffer, code: string, changed: Partial<RecoverOptions> = {}) => {
    const directory = folderWith(bytes)
    const recovery = await recoverRecording(directory, SESSION, { ...options, ...changed })
    expect(recovery).toMatchObject({ outcome: 'damaged', fault: { code } })
    expect((await readFile(join(directory, FILE_NAME))).equals(bytes)).toBe(true)
  }

  test('a byte changed before checkpoints that came later', async () => {
    const changed = Buffer.from(open)
    changed[header + 60] = (changed[header + 60] ?? 0) ^ 1
    await untouched(changed, 'damaged_record')
  })

  test('a byte changed before exactly two of them; before the last one alone it may be torn', async () => {
    const records = recordsOf(open)
    const checkpoints = records.filter(({ type }) => type === RECORD.checkpoint)
    const flipped = ({ offset }: { offset: number }) => {
      const changed = Buffer.from(open)
      changed[offset + 20] = (changed[offset + 20] ?? 0) ^ 1
      return changed
    }
    const behind = (end: number) => checkpoints.filter(({ offset }) => offset > end).length
    const groups = records.filter(({ type }) => type === RECORD.group)
    const two = groups.filter(({ end }) => behind(end - 1) === 2)
    const one = groups.filter(({ end }) => behind(end - 1) === 1)
    expect([two.length > 0, one.length > 0]).toEqual([true, true])
    for (const group of two) await untouched(flipped(group), 'damaged_record')
    for (const group of one) {
      const directory = folderWith(flipped(group))
      expect(await recoverRecording(directory, SESSION, options)).toMatchObject({ outcome: 'recovered' })
    }
  })

  test('a record taken out, another session, a stranger, bytes behind the end', async () => {
    await untouched(
      Buffer.concat([open.subarray(0, boundaries[0]), open.subarray(boundaries[1])]),
      'missing_records',
    )
    await untouched(open, 'unknown_signer', { trusted: [makeSigner().raw] })
    await untouched(Buffer.concat([closed, Buffer.of(1)]), 'trailing_data')
    await untouched(Buffer.alloc(500, 'x'), 'not_a_recording')
    const directory = folderWith(open)
    const recovery = await recoverRecording(directory, '01JD000000000000000000000X', options)
    expect(recovery).toMatchObject({ outcome: 'damaged', fault: { code: 'wrong_session' } })
  })

  test('and does not keep the others from being sealed', async () => {
    const root = makeRoot()
    for (const [session, bytes] of Object.entries({ A: open, B: Buffer.alloc(99), C: closed })) {
      const directory = join(root, '2026', '11', '20', session)
      mkdirSync(directory, { recursive: true })
      writeFileSync(join(directory, FILE_NAME), bytes)
    }
    await copyFile(join(folderWith(open), FILE_NAME), join(folderWith(open, root), FILE_NAME))
    const outcomes: Record<string, string> = {}
    for await (const { session, recovery } of recoverAll(root, options)) outcomes[session] = recovery.outcome
    expect(outcomes).toEqual({ A: 'damaged', B: 'damaged', [SESSION]: 'recovered' })
    const refused = { ...options, sign: () => Promise.reject(new Error('no signer')) }
    folderWith(open, root)
    for await (const { session, recovery } of recoverAll(root, refused)) outcomes[session] = recovery.outcome
    expect(outcomes[SESSION]).toBe('failed')
    expect((await readFile(join(root, '2026', '11', '20', SESSION, FILE_NAME))).equals(open)).toBe(true)
    const states = []
    for await (const { state } of recordingsIn(root)) states.push(state)
    expect(states).toEqual(['open', 'open', 'damaged', 'sealed'])
  })
})
