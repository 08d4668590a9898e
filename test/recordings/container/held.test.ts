/** Groups that the sealing thread holds, and writes to its descriptor by itself. */
import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import { createSecretKey, randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync, writevSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { FRAME } from '../../../recordings/container/frames.ts'
import { THREADED } from '../../../recordings/container/group-queue.ts'
import { HeldBytes, type Part } from '../../../recordings/container/held.ts'
import type { CreateFile } from '../../../recordings/container/recording-file.ts'
import { Sealer } from '../../../recordings/container/sealing/sealer.ts'
import { verifyStream } from '../../../recordings/container/verify.ts'
import { inPieces, makeRoot, makeWriter, readFrames, removeRoots, SESSION, until } from '../support.ts'

const BIG = 250_000

afterAll(removeRoots)

/** A recording's file that is the outlet of a sealing thread. */
function outletFile() {
  const path = join(makeRoot(), 'session.rec')
  const descriptor = openSync(path, 'ax')
  const torn: string[] = []
  const sealer = new Sealer({ outlet: { descriptor, onTorn: () => torn.push('torn') } })
  let held = 0
  /** Appends that fail before anything of them is written. */
  const faults: Error[] = []
  const append = async (offset: number, parts: readonly Part[]) => {
    const fault = faults.pop()
    if (fault) throw fault
    expect(fstatSync(descriptor).size).toBe(offset)
    const count = parts.filter((part) => part instanceof HeldBytes).length
    held += count
    if (count > 0) sealer.write(parts)
    else writevSync(descriptor, parts as Uint8Array[])
    const end = parts.reduce((sum, { length }) => sum + length, offset)
    await until(() => fstatSync(descriptor).size === end)
    return {}
  }
  const create: CreateFile = async (first) => {
    await append(0, first)
    return { append, close: async () => undefined }
  }
  const end = async () => {
    await sealer.destroy()
    closeSync(descriptor)
  }
  return { path, sealer, torn, create, faults, end, held: () => held }
}

test('a recording with held groups has all frames in order, and proves itself', async () => {
  const size = fc.oneof(fc.nat(200), fc.integer({ min: THREADED, max: 3 * THREADED }), fc.nat(600_000))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ size, flushes: fc.boolean() }), { maxLength: 20 }),
      async (steps) => {
        const { path, sealer, torn, create, end, held } = outletFile()
        try {
          const { writer, grant, signer, failures } = await makeWriter({ sealer, create })
          const written: Buffer[] = []
          for (const { size: length, flushes } of steps) {
            const payload = randomBytes(length)
            written.push(payload)
            writer.write(FRAME.output, 1, payload)
            if (flushes) await writer.flush()
          }
          const { state, digest } = await writer.close({ result: 'success' })
          expect([state, failures, torn]).toEqual(['sealed', [], []])
          const output = (await readFrames(path, grant.key)).filter(({ type }) => type === FRAME.output)
          expect(Buffer.concat(output.map(({ payload }) => payload)).equals(Buffer.concat(written))).toBe(
            true,
          )
          const checked = verifyStream(inPieces(readFileSync(path)), {
            session: SESSION,
            trusted: [signer.raw],
          })
          expect(await checked).toMatchObject({ ok: true, state: 'sealed', digest })
          if (steps.some((step) => step.size >= THREADED)) expect(held()).toBeGreaterThan(0)
        } finally {
          await end()
        }
      },
    ),
    { numRuns: 20 },
  )
})

test('held groups of an append that failed are there for the next try', async () => {
  const { path, sealer, create, faults, end } = outletFile()
  const { writer, grant, failures } = await makeWriter({ sealer, create })
  faults.push(new Error('the disk has a fault'))
  const payload = randomBytes(BIG)
  writer.write(FRAME.output, 1, payload)
  await expect(writer.flush()).rejects.toThrow('the disk has a fault')
  expect((await writer.close({ result: 'failure' })).state).toBe('failed')
  expect(failures).toHaveLength(1)
  const output = (await readFrames(path, grant.key)).filter(({ type }) => type === FRAME.output)
  expect(Buffer.concat(output.map((frame) => frame.payload)).equals(payload)).toBe(true)
  await end()
})

test('held groups of a thread that has ended are not written by the next one', async () => {
  const { sealer, create, torn, end } = outletFile()
  const parts: Part[][] = []
  const { writer } = await makeWriter({
    sealer,
    create: async (first) => {
      const file = await create(first)
      const append = async (_: number, said: readonly Part[]) => {
        parts.push([...said])
        throw new Error('not now')
      }
      return { ...file, append }
    },
  })
  writer.write(FRAME.output, 1, randomBytes(BIG))
  await expect(writer.flush()).rejects.toThrow('not now')
  await sealer.destroy()
  expect(parts[0]!.some((part) => part instanceof HeldBytes)).toBe(true)
  expect(() => sealer.write(parts[0]!)).toThrow('the sealing thread has ended')
  expect(torn).toEqual([])
  await writer.close({ result: 'failure' })
  await end()
})

test('a thread that dies amid a write is reported: the descriptor cannot be used any more', async () => {
  const pipe = join(makeRoot(), 'pipe')
  execFileSync('mkfifo', [pipe])
  const reading = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  const descriptor = openSync(pipe, constants.O_WRONLY)
  const torn: string[] = []
  const sealer = new Sealer({ outlet: { descriptor, onTorn: () => torn.push('torn') } })
  // The pipe, which is not read, takes less.
  const sealing = sealer.recording(createSecretKey(randomBytes(32)))
  const plain = Buffer.from(new ArrayBuffer(BIG))
  const { body } = await sealing.seal(0, { plain, first: 0, last: 0, frames: 1 }, false)
  sealer.write(body)
  const ended = sealer.destroy()
  expect(torn).toEqual(['torn'])
  closeSync(reading)
  await ended
  closeSync(descriptor)
})
