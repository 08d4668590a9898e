/**
 * The stand-alone verifier against the broker's own: two programs, written separately, with one name for
 * every fault.
 */
import { Buffer } from 'node:buffer'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keyOf, verifyAudit as standAloneAudit, verifyRecording } from '../../bin/verify.mjs'
import type { Noted } from '../../recordings/container/evidence.ts'
import { signerMetadata } from '../../recordings/container/format/header.ts'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import type { PlacedRecord } from '../../recordings/container/format/parser.ts'
import { RECORD } from '../../recordings/container/format/record.ts'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { type Verification, verifyStream } from '../../recordings/container/verify.ts'
import { chainCheckpoint, chainRows } from '../../src/audit/chain.ts'
import { exportAudit, exportLine } from '../../src/audit/export.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import type { AuditRow } from '../../src/store/store.ts'
import { MemoryAudit } from '../audit/memory.ts'
import { run } from '../peers/process.ts'
import { makeSample, rebuild, type Sample } from '../recordings/samples.ts'
import { inPieces, makeSigner, removeRoots, SESSION } from '../recordings/support.ts'

const VERIFIER = join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs')
const OTHER = '01JD0000000000000000000002'
/** An auditor's machine may have an older Node than the bastion's. */
const NODES = [process.execPath, ...['/usr/bin/node'].filter((path) => existsSync(path))]

const folder = mkdtempSync(join(tmpdir(), 'sallyport-verify-'))
let sample: Sample
let other: Sample
beforeAll(async () => {
  sample = await makeSample(3)
  other = await makeSample(1, OTHER, sample.signer)
})
afterAll(() => {
  removeRoots()
  rmSync(folder, { recursive: true })
})

interface Expectations {
  session?: string
  expected?: { size: number; digest: string }
  noted?: Noted
  /** The audit log has no end of the session yet. */
  mayBeOpen?: boolean
  keys?: Uint8Array[]
}

/** Returns the code that both verifiers find, at the same offset, or `ok` if neither finds one. */
async function bothFind(bytes: Uint8Array, about = '', options: Expectations = {}): Promise<string> {
  const path = join(folder, 'one.rec')
  writeFileSync(path, bytes)
  const { keys: trusted = [sample.signer.raw], session, expected, noted, mayBeOpen } = options
  const own = session === undefined ? {} : { session }
  const known = { ...(expected && { expected }), ...(noted && { noted }) }
  const here = await verifyStream(inPieces(bytes, 100_000), {
    trusted,
    ...own,
    ...known,
    mayBeOpen: mayBeOpen ?? false,
  })
  const evidence = {
    ...(expected && { closed: expected }),
    ...(noted && { noted }),
    ended: mayBeOpen !== true,
  }
  const there = verifyRecording(path, { keys: trusted.map(keyOf), ...own, expected: evidence })
  expect(there.fault?.code, `${about}: ${here.fault?.message}`).toBe(here.fault?.code)
  if (here.fault?.code !== 'replaced_file') expect(there.fault?.offset, about).toBe(here.fault?.offset)
  expect(there.ok).toBe(here.ok)
  // In a file that is being written, the last record may be incomplete.
  const size = here.state === 'open' ? here.goodSize : here.size
  if (here.ok) expect(there).toMatchObject({ state: here.state, digest: here.digest, size })
  return here.fault?.code ?? 'ok'
}

describe('recordings: both verifiers find', () => {
  test('nothing in one that is in order, whoever wrote it', async () => {
    expect(await bothFind(sample.bytes, '', { session: SESSION })).toBe('ok')
    const vectors = join(import.meta.dirname, '..', 'recordings', 'vectors')
    const keys = [
      Buffer.from(JSON.parse(readFileSync(join(vectors, 'vectors.json'), 'utf8')).signing_public_key, 'hex'),
    ]
    expect(await bothFind(readFileSync(join(vectors, 'session.rec')), '', { keys })).toBe('ok')
  })

  test('a flipped bit, in every region of the file', async () => {
    const { bytes, records } = sample
    const positions = new Set<number>()
    const header = records[0]?.offset ?? 0
    for (let at = 0; at < header; at += 7) positions.add(at)
    for (const { offset, end } of records) {
      for (let at = offset; at < Math.min(end, offset + 40); at += 3) positions.add(at)
      for (let at = end - 50; at < end; at += 7) positions.add(at)
      positions.add(Math.floor((offset + end) / 2))
    }
    const found = new Set<string>()
    for (const at of positions) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8))
      found.add(await bothFind(changed, `byte ${at}`))
    }
    expect(found).not.toContain('ok')
    expect([...found]).toEqual(
      expect.arrayContaining(['damaged_header', 'damaged_record', 'not_a_recording']),
    )
  }, 300_000)

  test('a cut tail, at every boundary and beside it, and bytes behind the end', async () => {
    for (const { end } of [{ end: 16 }, ...sample.records]) {
      for (const size of [end - 1, end, end + 1, end + 13]) {
        if (size >= sample.bytes.length) continue
        expect(await bothFind(sample.bytes.subarray(0, size), `at ${size}`)).toMatch(
          /^(cut_tail|not_closed)$/,
        )
      }
    }
    expect(await bothFind(Buffer.concat([sample.bytes, Buffer.of(0)]))).toBe('trailing_data')
  })

  test('records that were removed, swapped, repeated', async () => {
    const { bytes, records } = sample
    const part = (record: PlacedRecord) => bytes.subarray(record.offset, record.end)
    for (const [i, record] of records.slice(0, -1).entries()) {
      const before = bytes.subarray(0, record.offset)
      const next = records[i + 1]!
      const rest = bytes.subarray(next.end)
      const about = `record ${i}`
      expect(await bothFind(Buffer.concat([before, part(next), rest]), about)).toBe('missing_records')
      const swapped = Buffer.concat([before, part(next), part(record), rest])
      expect(await bothFind(swapped, about)).toBe('misplaced_record')
      const repeated = Buffer.concat([before, part(record), part(record), part(next), rest])
      expect(await bothFind(repeated, about)).toBe('misplaced_record')
    }
  })

  test('what was written anew with all links repaired, by somebody without the key or with one of his own', async () => {
    const { metadata, records } = sample
    const without = records.filter((record) => record !== records.find(({ type }) => type === RECORD.group))
    expect(await bothFind(await rebuild(metadata, without))).toBe('bad_signature')
    expect(await bothFind(await rebuild({ ...metadata, user: 'mallory' }, records))).toBe('bad_signature')
    expect(await bothFind(await rebuild(metadata, without, sample.signer))).toBe('bad_group')
    const stranger = makeSigner()
    const resigned = await rebuild({ ...metadata, ...signerMetadata(stranger.raw) }, records, stranger)
    expect(await bothFind(resigned)).toBe('unknown_signer')
    expect(await bothFind(resigned, '', { keys: [stranger.raw] })).toBe('ok')
  })

  test('one that ends before what the audit log has noted of it, one that was written anew, and one that runs', async () => {
    const { bytes, records } = sample
    const marks = records.filter(({ type, end }) => type === RECORD.checkpoint && end < bytes.length)
    const notedAt = ({ end }: PlacedRecord): Noted => ({
      size: end,
      digest: bytes.subarray(end - 32, end).toString('hex'),
      milliseconds: 5_000,
    })
    expect(marks.length).toBeGreaterThan(1)
    for (const [i, mark] of marks.entries()) {
      const noted = notedAt(mark)
      const upTo = bytes.subarray(0, mark.end)
      expect(await bothFind(bytes, 'whole', { noted })).toBe('ok')
      expect(await bothFind(upTo, 'runs', { noted, mayBeOpen: true })).toBe('ok')
      expect(await bothFind(bytes.subarray(0, mark.end + 7), 'torn', { noted, mayBeOpen: true })).toBe('ok')
      expect(await bothFind(upTo, 'ended', { noted })).toBe('not_closed')
      const before = bytes.subarray(0, marks[i - 1]?.end ?? records[0]!.offset)
      expect(await bothFind(before, 'cut', { noted, mayBeOpen: true })).toBe('lost_tail')
      const other = { ...noted, digest: 'f'.repeat(64) }
      expect(await bothFind(bytes, 'another', { noted: other })).toBe('replaced_file')
      expect(await bothFind(upTo, 'another', { noted: other, mayBeOpen: true })).toBe('replaced_file')
    }
  })

  test("another session's recording, and another recording of the session", async () => {
    expect(await bothFind(other.bytes, '', { session: SESSION })).toBe('wrong_session')
    const expected = { size: sample.bytes.length, digest: 'f'.repeat(64) }
    expect(await bothFind(sample.bytes, '', { expected })).toBe('replaced_file')
  })

  test('the same in whatever bytes', async () => {
    const small = other.bytes
    const piece = fc.record({
      at: fc.nat(small.length),
      cut: fc.nat(400),
      put: fc.uint8Array({ maxLength: 90 }),
    })
    await fc.assert(
      fc.asyncProperty(piece, async ({ at, cut, put }) => {
        await bothFind(Buffer.concat([small.subarray(0, at), put, small.subarray(at + cut)]))
      }),
    )
  })
})

const key = generateKeyPairSync('ed25519').privateKey
const raw = rawPublicKey(key)

/** Makes a log with these recordings, closed by a checkpoint. */
async function makeLog(closed: [session: string, verification: Verification][] = []): Promise<MemoryAudit> {
  const repository = new MemoryAudit()
  let time = 1_795_000_000_000
  const checkpoints = { key, anchor: { note: async () => {} }, onError: () => {} }
  const audit = new AuditLog({ repository, now: () => ++time, checkpoints })
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 4; i++) await audit.record('command', { object: `ls "é" ${round} ${i}` })
    await audit.checkpoint()
  }
  for (const [session, { size, digest }] of closed) {
    await audit.record('session.open', { session })
    await audit.record('recording.sealed', { session, size, digest })
  }
  await audit.close()
  return repository
}

describe('exported audit logs: both verifiers find', () => {
  let rows: AuditRow[]
  beforeAll(async () => {
    rows = (await makeLog()).rows
  })
  const heads = () => [{ sequence: rows.length, hash: rows.at(-1)!.hash }]
  const bothFindIn = async (changed: AuditRow[], known = heads(), keys = [raw]): Promise<string> => {
    const repository = new MemoryAudit()
    repository.rows = changed
    const path = join(folder, 'log.jsonl')
    writeFileSync(path, changed.map(exportLine).join(''))
    const here = (await verifyAudit(repository, { trusted: keys, known })).fault
    const there = standAloneAudit(path, {
      keys: keys.map(keyOf),
      heads: known.map(({ sequence, hash }) => ({ sequence, hash: Buffer.from(hash).toString('hex') })),
    }).fault
    expect([there?.code, there?.row]).toEqual([here?.code, here?.sequence])
    return here?.code ?? 'ok'
  }
  const rewritten = (from: number, events: AuditRow[], by?: KeyObject): AuditRow[] => {
    const made = rows.slice(0, from)
    for (const { code, time, json } of events) {
      if (code === 'audit.checkpoint' && by) made.push(chainCheckpoint(made.at(-1), time, by).row)
      else
        made.push(
          ...chainRows(made.at(-1), [{ time, code: code as 'command', fields: JSON.parse(json).fields }]),
        )
    }
    return made
  }

  test('nothing in one that is in order', async () => expect(await bothFindIn(rows)).toBe('ok'))

  test('an event that was changed, removed, swapped, repeated', async () => {
    for (const at of [0, 3, 4, 8, 13]) {
      const row = rows[at]!
      const changed = { ...row, json: row.json.replace('"fields":{', '"fields":{"account":"x",') }
      expect(await bothFindIn(rows.with(at, changed))).toBe('changed_event')
      expect(await bothFindIn(rows.toSpliced(at, 1))).toBe('missing_events')
      const next = rows[at + 1]!
      const swapped = rows
        .with(at, { ...next, sequence: row.sequence })
        .with(at + 1, { ...row, sequence: next.sequence })
      expect(await bothFindIn(swapped)).toBe('misplaced_event')
      expect(await bothFindIn(rows.with(at + 1, { ...row, sequence: next.sequence }))).toBe('misplaced_event')
    }
  })

  test('a log that was written anew from some event on, and signed by nobody or by somebody else', async () => {
    expect(await bothFindIn(rewritten(6, rows.slice(7)))).toBe('bad_signature')
    const stranger = generateKeyPairSync('ed25519').privateKey
    expect(await bothFindIn(rewritten(6, rows.slice(7), stranger))).toBe('unknown_signer')
    const unsigned = rows.filter(({ code }) => code === 'command')
    expect(await bothFindIn(rewritten(0, [...unsigned, ...unsigned]))).toBe('replaced_log')
  })

  test('a checkpoint by a key that was replaced: it counts up to the event that says so, and no further', async () => {
    const fresh = generateKeyPairSync('ed25519').privateKey
    const keys = [rawPublicKey(fresh), raw]
    const signer = signerMetadata(rawPublicKey(fresh)).signing_key
    const repository = new MemoryAudit()
    repository.rows = [...rows]
    const write = async (
      by: KeyObject,
      fields: Record<string, string>,
      code: 'command' | 'secret.change',
    ) => {
      const checkpoints = { key: by, anchor: { note: async () => {} }, onError: () => {} }
      const audit = new AuditLog({ repository, now: () => 1_796_000_000_000, checkpoints })
      await audit.record(code, fields)
      await audit.close()
    }
    await write(fresh, { object_type: 'signing_key', signer }, 'secret.change')
    expect(await bothFindIn(repository.rows, [], keys)).toBe('ok')
    // A log that only the replaced key has signed: its thief leaves out the event.
    expect(await bothFindIn(rows, [], keys)).toBe('unknown_signer')
    expect(await bothFindIn(repository.rows, [], [...keys].reverse())).toBe('unknown_signer')
    await write(fresh, { object: 'ls' }, 'command')
    expect(await bothFindIn(repository.rows, [], keys)).toBe('ok')
    await write(key, { object: 'by a thief of the old key' }, 'command')
    expect(await bothFindIn(repository.rows, [], keys)).toBe('unknown_signer')
  })

  test('a cut tail, wherever it was cut', async () => {
    for (let length = 0; length < rows.length; length++) {
      expect(await bothFindIn(rows.slice(0, length))).toBe('cut_tail')
    }
  })

  test('an export that does not end with a checkpoint, though nothing else is known of it', () => {
    const path = join(folder, 'cut.jsonl')
    writeFileSync(path, rows.slice(0, -1).map(exportLine).join(''))
    expect(standAloneAudit(path, { keys: [keyOf(raw)] }).fault).toMatchObject({ code: 'cut_tail', row: 15 })
    writeFileSync(path, '')
    expect(standAloneAudit(path, { keys: [keyOf(raw)] }).fault).toMatchObject({ code: 'cut_tail', row: 1 })
    writeFileSync(path, rows.map(exportLine).join('').slice(0, -40))
    expect(standAloneAudit(path, { keys: [keyOf(raw)] }).fault).toMatchObject({ code: 'bad_event', row: 15 })
  })
})

describe.each(NODES)('the program, run by %s', (node) => {
  const verify = (...args: string[]) => run(node, [VERIFIER, ...args])
  const audited = join(folder, 'audited')
  const log = join(audited, 'export.jsonl')
  const keys: string[] = []

  beforeAll(async () => {
    for (const [session, { bytes }] of [
      [SESSION, sample],
      [OTHER, other],
    ] as const) {
      mkdirSync(join(audited, session), { recursive: true })
      writeFileSync(join(audited, session, FILE_NAME), bytes)
    }
    const closed = await Promise.all([sample, other].map(async ({ bytes }) => verifyStream(inPieces(bytes))))
    let text = ''
    for await (const lines of exportAudit(
      await makeLog([
        [SESSION, closed[0]!],
        [OTHER, closed[1]!],
      ]),
    ))
      text += lines
    writeFileSync(log, text)
    writeFileSync(join(folder, 'key.txt'), `${Buffer.from(raw).toString('base64')} 0123456789abcdef\n`)
    keys.push('--key', join(folder, 'key.txt'), '--key', sample.signer.raw.toString('base64'))
  })

  test('verifies a folder with the audit log beside it', async () => {
    const { stdout, code } = await verify(...keys, '--audit', log, audited)
    expect(stdout).toMatch(/export\.jsonl {2}ok, \d+ rows/)
    expect(stdout.match(/ok, sealed: \d+ bytes/g)).toHaveLength(2)
    expect(code).toBe(0)
  })

  test('misses a session whose recording is gone, and says who deleted one that has a tombstone', async () => {
    const gone = join(audited, OTHER)
    rmSync(gone, { recursive: true })
    try {
      const missing = await verify(...keys, '--json', '--audit', log, audited)
      expect(missing.code).toBe(1)
      expect(missing.stdout).toMatch(
        new RegExp(`"name":"${OTHER}","ok":false,"fault":{"code":"missing_session"`),
      )
      const verification = await verifyStream(inPieces(other.bytes))
      const repository = await makeLog([[OTHER, verification]])
      const checkpoints = { key, anchor: { note: async () => {} }, onError: () => {} }
      const audit = new AuditLog({ repository, now: () => 1_796_000_000_000, checkpoints })
      await audit.record('session.open', { session: SESSION })
      const tombstone = { session: OTHER, method: 'age', reason: 'older than 30 days' }
      await audit.record('recording.deleted', { ...tombstone, digest: 'f'.repeat(64) })
      await audit.close()
      const foreign = join(folder, 'foreign.jsonl')
      writeFileSync(foreign, repository.rows.map(exportLine).join(''))
      expect((await verify(...keys, '--audit', foreign, audited)).stdout).toContain('missing_session')
      await audit.record('recording.deleted', { ...tombstone, digest: verification.digest })
      await audit.close()
      const tombstones = join(folder, 'tombstone.jsonl')
      writeFileSync(tombstones, repository.rows.map(exportLine).join(''))
      const { stdout, code } = await verify(...keys, '--audit', tombstones, audited)
      expect(stdout).toContain(`${OTHER}  ok, deleted 2026-11-30T00:53:20.000Z by age: older than 30 days`)
      expect(code).toBe(0)
    } finally {
      mkdirSync(gone)
      writeFileSync(join(gone, FILE_NAME), other.bytes)
    }
  })

  test('names a recording that was replaced, one that nobody knows, one in the wrong folder', async () => {
    const again = await makeSample(1, OTHER, sample.signer)
    writeFileSync(join(audited, OTHER, FILE_NAME), again.bytes)
    expect((await verify(...keys, '--audit', log, audited)).stdout).toContain('replaced_file')
    writeFileSync(join(audited, OTHER, FILE_NAME), other.bytes)
    const stranger = join(audited, '01JD0000000000000000000009')
    mkdirSync(stranger)
    writeFileSync(join(stranger, FILE_NAME), sample.bytes)
    expect((await verify(...keys, audited)).stdout).toContain('wrong_session')
    const unknown = await makeSample(1, '01JD0000000000000000000009', sample.signer)
    writeFileSync(join(stranger, FILE_NAME), unknown.bytes)
    const found = await verify(...keys, '--audit', log, audited)
    expect(found.stdout).toContain('unknown_session')
    expect(found.code).toBe(1)
    rmSync(stranger, { recursive: true })
  })

  test('holds a single file against the audit log, whatever it is called', async () => {
    const again = await makeSample(1, OTHER, sample.signer)
    const path = join(folder, 'handed-over.rec')
    writeFileSync(path, again.bytes)
    const { stdout, code } = await verify(...keys, '--audit', log, path)
    expect(stdout).toContain('replaced_file')
    expect(code).toBe(1)
    writeFileSync(path, other.bytes)
    expect(await verify(...keys, '--audit', log, path)).toMatchObject({ code: 0 })
  })

  test('verifies under another name and in a folder with a blank, too', async () => {
    const place = mkdtempSync(join(folder, 'my tools '))
    const copied = join(place, 'verify 1.mjs')
    copyFileSync(VERIFIER, copied)
    const linked = join(place, 'check')
    symlinkSync(VERIFIER, linked)
    for (const program of [copied, linked]) {
      const { stdout, code } = await run(node, [program, ...keys, '--audit', '/dev/null'])
      expect(stdout).toContain('cut_tail')
      expect(code).toBe(1)
    }
  })

  test('says how it is used', async () => {
    for (const args of [
      [],
      ['--key', 'x', audited],
      ['--key', keys[1]!, dirname(join(folder, 'none', 'x'))],
    ]) {
      expect(await verify(...args)).toMatchObject({ code: 2, stdout: '' })
    }
  })
})
