/**
 * The vectors of docs/recording-format.md. Made once and kept: a change here is a change of the format, and
 * needs another version number.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Chain } from '../../recordings/container/chain.ts'
import {
  type CheckpointKind,
  encodeCheckpoint,
  encodeStatement,
} from '../../recordings/container/format/checkpoint.ts'
import {
  GroupBuilder,
  openGroup,
  parseGroupHeader,
  sealGroup,
} from '../../recordings/container/format/group.ts'
import {
  encodeHeader,
  parseHeader,
  signerId,
  signerMetadata,
} from '../../recordings/container/format/header.ts'
import { LINK_LENGTH } from '../../recordings/container/format/limits.ts'
import { RECORD } from '../../recordings/container/format/record.ts'
import { writeVarint } from '../../recordings/container/format/varint.ts'
import { unwrapKey } from '../../recordings/container/keys.ts'
import { verifyStream } from '../../recordings/container/verify.ts'
import { Secret } from '../../src/model/secret.ts'
import { progressEntry } from '../../src/recording-service/progress.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { recordsOf } from './samples.ts'
import { framesOf, inPieces, signerOfSeed } from './support.ts'

interface VectorFrame {
  type: number
  channel: number
  time: number
  payload: string
}
interface Vectors {
  varints: { value: number; bytes: string }[]
  session_key: string
  signing_seed: string
  signing_public_key: string
  signing_key: string
  age_identity: string
  metadata: Record<string, string | number>
  groups: { frames: VectorFrame[] }[]
  checkpoints: {
    kind: CheckpointKind
    wall_time: number
    time: number
    after_group: number
    statement: string
  }[]
  digest: string
  zstd_group: { number: number; body: string; frames: VectorFrame[] }
}

const folder = join(import.meta.dirname, 'vectors')
const vectors = JSON.parse(readFileSync(join(folder, 'vectors.json'), 'utf8')) as Vectors
const recording = readFileSync(join(folder, 'session.rec'))
const key = Buffer.from(vectors.session_key, 'hex')
const signer = signerOfSeed(Buffer.from(vectors.signing_seed, 'hex'))
const frames = vectors.groups.flatMap((group) => group.frames)
const shown = ({
  type,
  channel,
  time,
  payload,
}: {
  type: number
  channel: number
  time: number
  payload: Uint8Array
}) => ({
  type,
  channel,
  time,
  payload: Buffer.from(payload).toString('hex'),
})

test('the keys of the vectors', async () => {
  expect(signer.raw.toString('hex')).toBe(vectors.signing_public_key)
  expect(signerId(signer.raw)).toBe(vectors.signing_key)
  const wrapped = readFileSync(join(folder, 'key.age'))
  expect(Buffer.from(await unwrapKey(wrapped, Secret.of(vectors.age_identity)))).toEqual(key)
})

test('varints', () => {
  for (const { value, bytes } of vectors.varints) {
    const target = Buffer.alloc(8)
    expect(target.subarray(0, writeVarint(target, 0, value)).toString('hex'), String(value)).toBe(bytes)
  }
})

test('the writer makes these bytes', async () => {
  const header = encodeHeader({ ...vectors.metadata, ...signerMetadata(signer.raw) })
  const chain = new Chain(
    String(vectors.metadata['session']),
    header.subarray(-LINK_LENGTH),
    0,
    header.length,
  )
  const parts: Buffer[] = [header]
  const statements: string[] = []
  const builder = new GroupBuilder()
  let count = 0
  let last = 0
  for (const [number, group] of [{ frames: [] }, ...vectors.groups].entries()) {
    if (number > 0) {
      for (const { type, channel, time, payload } of group.frames) {
        builder.append(type, channel, time, Buffer.from(payload, 'hex'))
        last = time
      }
      count += group.frames.length
      parts.push(
        ...chain.add(RECORD.group, sealGroup(createSecretKey(key), number - 1, builder.take(), false).body),
      )
    }
    for (const { kind, wall_time: wallTime, time, after_group: after } of vectors.checkpoints) {
      if (after !== number) continue
      const closing = { frames: count, droppedBytes: 0, unsignedBytes: 0, lastFrame: last }
      const body = encodeCheckpoint({ kind, wallTime, time, ...(kind === 'interim' ? {} : { closing }) })
      statements.push(encodeStatement(chain.place, body).toString('hex'))
      parts.push(...(await chain.checkpoint(body, signer.sign)))
    }
  }
  expect(statements).toEqual(vectors.checkpoints.map(({ statement }) => statement))
  expect(Buffer.from(chain.head).toString('hex')).toBe(vectors.digest)
  expect(Buffer.concat(parts).equals(recording)).toBe(true)
})

test('the verifier and the reader take them', async () => {
  const verification = await verifyStream(inPieces(recording), { trusted: [signer.raw] })
  expect(verification).toMatchObject({
    ok: true,
    state: 'sealed',
    digest: vectors.digest,
    frames: frames.length,
  })
  expect((await framesOf(recording, key)).map(shown)).toEqual(frames)
})

test('a compressed group opens', () => {
  const body = Buffer.from(vectors.zstd_group.body, 'hex')
  expect(parseGroupHeader(body)).toMatchObject({ compressed: true, number: vectors.zstd_group.number })
  expect(openGroup(createSecretKey(key), body, 0).map(shown)).toEqual(vectors.zstd_group.frames)
})

// paramiko depends on the module `cryptography`, which the program needs.
describeWithPeers('a program that knows only the document', ['python3', 'python3-paramiko'], () => {
  test('reads and verifies them', async () => {
    const program = join(import.meta.dirname, 'independent_reader.py')
    const read = await run(findProgram('python3'), [
      program,
      join(folder, 'session.rec'),
      vectors.session_key,
    ])
    expect(read.stderr).toBe('')
    expect(JSON.parse(read.stdout)).toEqual({
      kind: 1,
      frames,
      digest: vectors.digest,
      checkpoints: vectors.checkpoints.length,
    })
  })

  test('holds them against what the audit log has noted of them', async () => {
    const program = join(import.meta.dirname, 'independent_reader.py')
    const read = (entry: string) =>
      run(findProgram('python3'), [program, join(folder, 'session.rec'), vectors.session_key, entry])
    const { offset, end } = recordsOf(recording)[0]!
    const { session } = parseHeader(recording.subarray(0, offset))
    const digest = recording.subarray(end - 32, end).toString('hex')
    expect((await read(progressEntry(session, { size: end, digest, time: 0 }))).code).toBe(0)
    for (const [size, hash, fault] of [
      [end, 'f'.repeat(64), 'not what was noted'],
      [recording.length + 1, digest, 'it ends before what was noted'],
    ] as const) {
      const { stderr, code } = await read(progressEntry(session, { size, digest: hash, time: 0 }))
      expect(code).toBe(1)
      expect(stderr).toContain(fault)
    }
  })
})
