/** Groups that are sealed on the sealing thread, among those that are not. */
import { Buffer } from 'node:buffer'
import { createSecretKey, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { GroupBuilder, openGroup } from '../../../recordings/container/format/group.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import { THREADED } from '../../../recordings/container/group-queue.ts'
import type { SealAnswer } from '../../../recordings/container/sealing/messages.ts'
import { Sealer } from '../../../recordings/container/sealing/sealer.ts'
import { verifyStream } from '../../../recordings/container/verify.ts'
import { BACKLOG_HARD_LIMIT } from '../../../recordings/container/writer.ts'
import { inPieces, makeSigner, makeWriter, readFrames, removeRoots, SESSION, until } from '../support.ts'

const WORKER = new URL('../../../recordings/container/sealing/worker.ts', import.meta.url)
/** A thread that takes groups and never returns one. */
const STALLED = new URL(
  `data:text/javascript,${encodeURIComponent(
    "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => undefined)",
  )}`,
)
const BIG = 250_000
const big = () => randomBytes(BIG)

let sealer: Sealer
beforeEach(() => {
  sealer = new Sealer()
})
afterEach(() => sealer.destroy())
afterAll(removeRoots)

const verified = async (path: string, trusted: Buffer) =>
  await verifyStream(inPieces(readFileSync(path)), { session: SESSION, trusted: [trusted] })

describe('a recording with large groups', () => {
  test('has all frames in order, sealed here and there', async () => {
    const size = fc.oneof(
      fc.nat(200),
      fc.integer({ min: THREADED - 100, max: 3 * THREADED }),
      fc.nat(400_000),
    )
    const step = fc.record({ size, flushes: fc.boolean(), turns: fc.nat(2) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { writer, grant, path, signer, failures } = await makeWriter({ sealer })
        const written: Buffer[] = []
        const flushes: Promise<void>[] = []
        for (const { size: length, flushes: isFlushed, turns } of steps) {
          const payload = randomBytes(length)
          written.push(Buffer.from(payload))
          writer.write(FRAME.output, 1, payload)
          payload.fill(0)
          if (isFlushed) flushes.push(writer.flush())
          for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
        }
        const { state, digest } = await writer.close({ result: 'success' })
        await Promise.all(flushes)
        expect([state, failures]).toEqual(['sealed', []])
        const output = (await readFrames(path, grant.key)).filter(({ type }) => type === FRAME.output)
        expect(Buffer.concat(output.map(({ payload }) => payload)).equals(Buffer.concat(written))).toBe(true)
        expect(await verified(path, signer.raw)).toMatchObject({ ok: true, state: 'sealed', digest })
        expect(writer.backlog).toBe(0)
      }),
      { numRuns: 25 },
    )
  })

  test('is sealed here if the system starts no more threads', async () => {
    const seal = () => {
      throw new Error('the thread cannot be started')
    }
    const none = { recording: () => ({ seal, close: () => undefined }) } as unknown as Sealer
    const { writer, path, signer, failures } = await makeWriter({ sealer: none })
    for (let n = 0; n < 3; n++) writer.write(FRAME.output, 1, big())
    expect(await writer.close({ result: 'success' })).toMatchObject({ state: 'sealed' })
    expect(failures).toEqual([])
    expect(await verified(path, signer.raw)).toMatchObject({ ok: true, state: 'sealed' })
  })

  test('starts no thread for small ones', async () => {
    const { writer } = await makeWriter({ sealer })
    for (let count = 0; count < 20; count++) writer.write(FRAME.output, 1, Buffer.alloc(1000))
    await writer.close({ result: 'success' })
    expect(sealer.isRunning).toBe(false)
  })

  test('is compressed there too', async () => {
    const { writer, path, signer } = await makeWriter({ sealer })
    writer.write(FRAME.output, 1, Buffer.alloc(BIG, 'text '))
    const { size } = await writer.close({ result: 'success' })
    expect(size).toBeLessThan(BIG / 10)
    expect(sealer.isRunning).toBe(true)
    expect((await verified(path, signer.raw)).ok).toBe(true)
  })

  test('shares the thread with others, each by its own key', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => makeWriter({ sealer })))
    const payloads = all.map(big)
    for (let round = 0; round < 3; round++) {
      for (const [i, { writer }] of all.entries()) writer.write(FRAME.output, 1, payloads[i]!)
    }
    for (const [i, { writer, path, grant, signer }] of all.entries()) {
      await writer.close({ result: 'success' })
      const frames = await readFrames(path, grant.key)
      const bytes = Buffer.concat(
        frames.filter(({ type }) => type === FRAME.output).map(({ payload }) => payload),
      )
      expect(bytes.equals(Buffer.concat([payloads[i]!, payloads[i]!, payloads[i]!]))).toBe(true)
      expect((await verified(path, signer.raw)).ok).toBe(true)
    }
  })

  test('goes on after the thread has ended for want of work', async () => {
    sealer = new Sealer({ idleMs: 20 })
    const { writer, grant, path, signer } = await makeWriter({ sealer })
    for (let round = 0; round < 3; round++) {
      writer.write(FRAME.output, 1, big())
      await writer.flush()
      await until(() => !sealer.isRunning)
    }
    expect((await writer.close({ result: 'success' })).state).toBe('sealed')
    expect((await verified(path, signer.raw)).ok).toBe(true)
    expect(await readFrames(path, grant.key)).toHaveLength(3 * 4 + 1)
  })
})

describe('a sealing thread that dies', () => {
  test('fails the recordings that had groups in it, once, with all before them, and no other', async () => {
    const signer = makeSigner()
    const quiet = await makeWriter({ signer, sealer })
    quiet.writer.write(FRAME.output, 1, big())
    await quiet.writer.flush()
    const busy = await makeWriter({ signer, sealer })
    busy.writer.write(FRAME.output, 1, Buffer.from('before'))
    await busy.writer.flush()
    busy.writer.write(FRAME.output, 1, big())
    const flushed = expect(busy.writer.flush()).rejects.toThrow('the sealing thread has ended')
    busy.writer.write(FRAME.output, 1, big())
    await sealer.destroy()
    await flushed
    expect(busy.failures.map(({ message }) => message)).toEqual(['the sealing thread has ended'])
    expect(busy.writer.backlog).toBeLessThan(300_000)
    await expect(busy.writer.flush()).rejects.toThrow('the sealing thread has ended')
    const result = await busy.writer.close({ result: 'failure' })
    expect(result.state).toBe('failed')
    expect(await verified(busy.path, signer.raw)).toMatchObject({
      ok: true,
      state: 'failed',
      digest: result.digest,
    })
    const [first] = await readFrames(busy.path, busy.grant.key)
    expect(Buffer.from(first!.payload).toString()).toBe('before')

    quiet.writer.write(FRAME.output, 1, big())
    expect(await quiet.writer.close({ result: 'success' })).toMatchObject({ state: 'sealed', frames: 9 })
    expect(quiet.failures).toEqual([])
    expect((await verified(quiet.path, signer.raw)).ok).toBe(true)
  })

  test('fails a recording that is being closed', async () => {
    const { writer, failures, path, signer } = await makeWriter({ sealer })
    writer.write(FRAME.output, 1, big())
    const closed = writer.close({ result: 'success' })
    await sealer.destroy()
    expect(await closed).toMatchObject({ state: 'failed', frames: 0 })
    expect(failures).toHaveLength(1)
    expect(await verified(path, signer.raw)).toMatchObject({ ok: true, state: 'failed' })
  })
})

test('groups in the thread count as backlog, and fail the recording at its bound', async () => {
  sealer = new Sealer({ program: STALLED })
  const { writer, failures } = await makeWriter({ sealer })
  const chunk = Buffer.alloc(65_536)
  for (let sent = 0; sent <= 8 * BIG; sent += chunk.length) writer.write(FRAME.output, 1, chunk)
  expect(writer.backlog).toBeGreaterThan(8 * BIG)
  for (let sent = 0; sent <= BACKLOG_HARD_LIMIT; sent += chunk.length) writer.write(FRAME.output, 1, chunk)
  expect(failures[0]?.message).toMatch('slower than the session')
  let isDrained = false
  writer.onDrain(() => {
    isDrained = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isDrained).toBe(false)
  const closed = writer.close({ result: 'failure' })
  await sealer.destroy()
  expect((await closed).state).toBe('failed')
})

test('the thread has no key of a recording that is closed, and none after its keys were wiped', async () => {
  const key = randomBytes(32)
  const group = () => {
    const builder = new GroupBuilder()
    builder.append(FRAME.output, 1, 5, Buffer.from('x'))
    const { plain, ...fields } = builder.take()
    return {
      ...fields,
      recording: 7,
      number: 0,
      compress: false,
      buffer: plain.buffer as ArrayBuffer,
      length: plain.length,
    }
  }
  for (const end of [{ kind: 'close', recording: 7 }, { kind: 'wipe' }]) {
    const worker = new Worker(WORKER)
    try {
      worker.postMessage({ kind: 'open', recording: 7, key: Uint8Array.from(key) })
      worker.postMessage({ kind: 'seal', groups: [{ id: 1, ...group() }] })
      const { groups } = await new Promise<{ groups: SealAnswer[] }>((resolve) =>
        worker.once('message', resolve),
      )
      const [sealed] = groups
      if (sealed?.kind !== 'sealed') throw new Error('expected a sealed group')
      const body = Buffer.concat([sealed.head, sealed.ciphertext, sealed.tag])
      expect(openGroup(createSecretKey(key), body, 0)).toMatchObject([{ type: FRAME.output, time: 5 }])
      worker.postMessage(end)
      const lost = new Promise((resolve) => {
        worker.on(
          'message',
          (message: { groups?: SealAnswer[] }) => message.groups && resolve(message.groups),
        )
      })
      worker.postMessage({ kind: 'seal', groups: [{ id: 2, ...group() }] })
      expect(await lost).toMatchObject([
        { kind: 'lost', message: expect.stringContaining('expected the key') },
      ])
    } finally {
      await worker.terminate()
    }
  }
})
