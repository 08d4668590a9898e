import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { KEY_FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { FRAME, type FrameType } from '../../../recordings/container/frames.ts'
import { makeIdentity, sessionDirectory, unwrapKey, wrapKey } from '../../../recordings/container/keys.ts'
import { verifyStream } from '../../../recordings/container/verify.ts'
import {
  BACKLOG_HARD_LIMIT,
  BACKLOG_LIMIT,
  GROUP_MILLISECONDS,
} from '../../../recordings/container/writer.ts'
import { mountSmall } from '../../mount-small.ts'
import { describeWithPeers, findProgram } from '../../peers/program.ts'
import {
  BEGIN,
  fileIn,
  identity,
  inPieces,
  makeRoot,
  makeSigner,
  makeWriter,
  prepare,
  readFrames,
  recipient,
  removeRoots,
  SESSION,
  until,
} from '../support.ts'

afterAll(removeRoots)

const text = (value: string) => Buffer.from(value, 'utf8')

describe('a recording', () => {
  test('has all frames that were written, with their times, and verifies', async () => {
    const stream = fc.constantFrom(FRAME.output, FRAME.errorOutput, FRAME.input)
    const action = fc.record({
      type: stream as fc.Arbitrary<FrameType>,
      channel: fc.nat(300),
      payload: fc.uint8Array({ maxLength: 60_000 }),
      delta: fc.nat(2_000_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
        const { writer, clock, grant, path, signer } = await makeWriter()
        const expected = actions.map(({ type, channel, payload, delta }) => {
          clock.time += delta
          writer.write(type, channel, payload)
          const written = { type, channel, time: clock.time - 5_000_000, payload: Buffer.from(payload) }
          payload.fill(0)
          return written
        })
        const result = await writer.close({ result: 'success' })
        expect(result).toMatchObject({
          state: 'sealed',
          frames: actions.length + 1,
          size: statSync(path).size,
        })
        const frames = await readFrames(path, grant.key)
        expect(
          frames.slice(0, -1).map((frame) => ({ ...frame, payload: Buffer.from(frame.payload) })),
        ).toEqual(expected)
        expect(JSON.parse(Buffer.from(frames.at(-1)?.payload ?? []).toString())).toEqual({
          result: 'success',
        })
        const verification = await verifyStream(inPieces(await readFile(path)), {
          session: SESSION,
          trusted: [signer.raw],
          expected: { size: result.size, digest: result.digest },
        })
        expect(verification).toMatchObject({
          ok: true,
          state: 'sealed',
          frames: result.frames,
          digest: result.digest,
        })
      }),
      { numRuns: 25 },
    )
  })

  test('splits long output, and gives a long structured payload back in one piece', async () => {
    const { writer, grant, path } = await makeWriter()
    const output = Buffer.alloc(200_000, 'x')
    const line = JSON.stringify({ line: 'y'.repeat(150_000) })
    writer.write(FRAME.output, 1, output)
    writer.write(FRAME.command, 1, text(line))
    await writer.close({ result: 'success' })
    const frames = await readFrames(path, grant.key)
    expect(frames.map(({ type, payload }) => [type, payload.length])).toEqual([
      [FRAME.output, 65_536],
      [FRAME.output, 65_536],
      [FRAME.output, 65_536],
      [FRAME.output, 200_000 - 3 * 65_536],
      [FRAME.command, line.length],
      [FRAME.end, 20],
    ])
    expect(Buffer.from(frames[4]?.payload ?? []).toString()).toBe(line)
  })

  test('lies in a folder by day, readable by its owner alone', async () => {
    const { path, directory, writer } = await makeWriter()
    await writer.close({ result: 'success' })
    expect(directory.endsWith(`/2026/11/20/${SESSION}`)).toBe(true)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(directory, KEY_FILE_NAME))).mode & 0o777).toBe(0o600)
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect(() => sessionDirectory('/r', '../../etc', BEGIN)).toThrow('session id')
  })

  test('holds no clear text but its header', async () => {
    const { writer, path } = await makeWriter()
    writer.write(FRAME.output, 1, text('canary-6f1d'))
    await writer.close({ result: 'canary-result' })
    const bytes = await readFile(path)
    expect(bytes.includes('canary')).toBe(false)
    expect(bytes.includes('root@local:srv1:ssh')).toBe(true)
  })

  test('time never goes back, whatever the clock does', async () => {
    const { writer, clock, grant, path } = await makeWriter()
    for (const time of [5_000_100, 4_000_000, 5_000_050, 5_000_200]) {
      clock.time = time
      writer.write(FRAME.output, 1, text('.'))
    }
    await writer.close({ result: 'success' })
    expect((await readFrames(path, grant.key)).map(({ time }) => time)).toEqual([100, 100, 100, 200, 200])
  })

  test('is on the disk and signed less than a second after something happened', async () => {
    const { writer, path, grant, signer } = await makeWriter()
    writer.write(FRAME.output, 1, text('first'))
    expect(writer.backlog).toBeGreaterThan(0)
    const begin = Date.now()
    await until(() => writer.backlog === 0)
    expect(Date.now() - begin).toBeLessThan(1000)
    expect(Date.now() - begin).toBeGreaterThan(GROUP_MILLISECONDS - 50)
    const verification = await verifyStream(inPieces(await readFile(path)), {
      mayBeOpen: true,
      trusted: [signer.raw],
    })
    expect(verification).toMatchObject({ ok: true, state: 'open', frames: 1, checkpoints: 2 })
    expect(verification.signedSize).toBe(verification.size)
    expect(await readFrames(path, grant.key)).toHaveLength(1)
    await writer.close({ result: 'success' })
  })

  test('closing twice gives the same answer, and later frames change nothing', async () => {
    const { writer, path } = await makeWriter()
    const first = writer.close({ result: 'success' })
    writer.write(FRAME.output, 1, text('late'))
    expect(await writer.close({ result: 'failure' })).toEqual(await first)
    expect((await stat(path)).size).toBe((await first).size)
  })

  test('tells of its backlog and when it is gone', async () => {
    const { writer } = await makeWriter()
    const chunk = Buffer.alloc(64_000, 1)
    while (writer.backlog <= BACKLOG_LIMIT) writer.write(FRAME.output, 1, chunk)
    await new Promise<void>((resolve) => writer.onDrain(resolve))
    expect(writer.backlog).toBeLessThanOrEqual(BACKLOG_LIMIT / 2)
    await new Promise<void>((resolve) => writer.onDrain(resolve))
    await writer.close({ result: 'success' })
  })
})

describeWithPeers("a session's key", ['age'], () => {
  test('opens with the ordinary age program and with the identity, and with no other', async () => {
    const { grant, directory, writer } = await makeWriter()
    await writer.close({ result: 'success' })
    const path = join(directory, KEY_FILE_NAME)
    const identityFile = join(makeRoot(), 'identity')
    writeFileSync(identityFile, `${identity.revealText()}\n`)
    const opened = execFileSync(findProgram('age'), ['--decrypt', '--identity', identityFile, path])
    expect(opened.equals(grant.key)).toBe(true)
    const wrapped = await readFile(path)
    expect(Buffer.from(await unwrapKey(wrapped, identity)).equals(grant.key)).toBe(true)
    await expect(unwrapKey(wrapped, await makeIdentity())).rejects.toMatchObject({ code: 'wrong_key' })
    await expect(unwrapKey(wrapped.subarray(0, 100), identity)).rejects.toMatchObject({
      code: 'bad_key_file',
    })
    const short = await wrapKey(Buffer.alloc(16), [recipient])
    await expect(unwrapKey(short, identity)).rejects.toMatchObject({ code: 'bad_key_file' })
  })

  test('made by the ordinary age program for two recipients opens here', async () => {
    const folder = makeRoot()
    execFileSync(`${findProgram('age')}-keygen`, ['-o', join(folder, 'auditor')], { stdio: 'pipe' })
    const auditor = execFileSync(`${findProgram('age')}-keygen`, ['-y', join(folder, 'auditor')])
      .toString()
      .trim()
    const key = Buffer.alloc(32, 9)
    const wrapped = Buffer.from(await wrapKey(key, [auditor, recipient]))
    writeFileSync(join(folder, 'key.age'), wrapped)
    expect(
      execFileSync(findProgram('age'), ['-d', '-i', join(folder, 'auditor'), join(folder, 'key.age')]),
    ).toEqual(key)
    expect(Buffer.from(await unwrapKey(wrapped, identity))).toEqual(key)
  })
})

describe('a recording that cannot go on', () => {
  afterEach(() => vi.useRealTimers())

  test('does not begin without a signature by the key in its header', async () => {
    const signer = makeSigner()
    const prepared = await prepare(signer)
    const other = makeSigner()
    await expect(makeWriter({ signer, prepared, sign: other.sign })).rejects.toThrow('is not by the key')
    await expect(
      makeWriter({ signer, prepared, sign: () => Promise.reject(new Error('no signer')) }),
    ).rejects.toThrow('no signer')
    const { writer } = await makeWriter({ signer, prepared })
    expect((await writer.close({ result: 'success' })).state).toBe('sealed')
    await expect(makeWriter({ signer, prepared })).rejects.toThrow('EEXIST')
  })

  test('does not begin on a volume that is too full', async () => {
    const signer = makeSigner()
    const prepared = await prepare(signer)
    const create = fileIn(prepared.directory, { minimumFree: Number.MAX_SAFE_INTEGER })
    await expect(makeWriter({ signer, prepared, create })).rejects.toThrow('min_free')
  })

  test('fails once when signing fails, and keeps what it had', async () => {
    const signer = makeSigner()
    let signatures = 0
    const sign = (statement: Uint8Array) =>
      ++signatures === 1 ? signer.sign(statement) : Promise.reject(new Error('the signer is gone'))
    const { writer, failures, path, grant } = await makeWriter({ signer, sign })
    writer.write(FRAME.output, 1, text('evidence'))
    await until(() => failures.length > 0)
    writer.write(FRAME.output, 1, text('ignored'))
    expect(writer.backlog).toBe(0)
    const result = await writer.close({ result: 'failure', reason: 'recording failed' })
    expect(result.state).toBe('failed')
    expect(failures.map(({ message }) => message)).toEqual(['the signer is gone'])
    const verification = await verifyStream(inPieces(await readFile(path)), { mayBeOpen: true })
    expect(verification).toMatchObject({ ok: true, frames: 2, checkpoints: 1 })
    expect(verification).toMatchObject({ digest: result.digest, size: result.size })
    expect(await readFrames(path, grant.key)).toHaveLength(2)
  })

  test('fails when a signature does not come, and when it has the wrong length', async () => {
    const signer = makeSigner()
    for (const answer of [() => new Promise<never>(() => undefined), async () => new Uint8Array(63)]) {
      let signatures = 0
      const sign = (statement: Uint8Array) => (++signatures === 1 ? signer.sign(statement) : answer())
      const { writer, failures } = await makeWriter({ sign, signer })
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      writer.write(FRAME.output, 1, text('x'))
      const closed = writer.close({ result: 'success' })
      await vi.advanceTimersByTimeAsync(20_000)
      vi.useRealTimers()
      expect((await closed).state).toBe('failed')
      expect(failures).toHaveLength(1)
      expect(failures[0]?.message).toMatch(/signature/)
    }
  })

  test('closed while a flush waits for its signature is one chain, with all frames', async () => {
    const signer = makeSigner()
    const { promise: stalled, resolve: release } = Promise.withResolvers<void>()
    let signatures = 0
    const sign = async (statement: Uint8Array) => {
      if (++signatures === 2) await stalled
      return signer.sign(statement)
    }
    const { writer, path, grant, failures } = await makeWriter({ sign, signer })
    writer.write(FRAME.output, 1, text('one'))
    const flushed = writer.flush()
    await until(() => signatures === 2)
    writer.write(FRAME.output, 1, text('two'))
    const closed = writer.close({ result: 'success' })
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(signatures).toBe(2)
    release()
    await flushed
    const { state, digest } = await closed
    expect([state, failures]).toEqual(['sealed', []])
    const verification = await verifyStream(inPieces(await readFile(path)), { trusted: [signer.raw] })
    expect(verification).toMatchObject({ ok: true, state: 'sealed', frames: 3, digest })
    expect(await readFrames(path, grant.key)).toHaveLength(3)
  })

  test('fails rather than to hold more than its bound when the disk does not follow', async () => {
    const signer = makeSigner()
    const { promise: stalled, resolve: release } = Promise.withResolvers<void>()
    let signatures = 0
    const sign = async (statement: Uint8Array) => {
      if (++signatures > 1) await stalled
      return signer.sign(statement)
    }
    const { writer, failures, path } = await makeWriter({ sign, signer })
    const chunk = Buffer.alloc(65_536)
    for (let sent = 0; sent <= BACKLOG_HARD_LIMIT + 1_000_000; sent += chunk.length)
      writer.write(FRAME.output, 1, chunk)
    expect(failures).toHaveLength(1)
    expect(failures[0]?.message).toMatch('slower than the session')
    const closed = writer.close({ result: 'failure' })
    release()
    expect((await closed).state).toBe('failed')
    const verification = await verifyStream(inPieces(await readFile(path)))
    expect(verification).toMatchObject({ ok: true, state: 'failed', frames: (await closed).frames })
    expect(verification.frames).toBeGreaterThan(BACKLOG_HARD_LIMIT / chunk.length)
  })

  test('an oversized structured frame fails it instead of being cut', async () => {
    const { writer, failures, path } = await makeWriter()
    writer.write(FRAME.command, 1, Buffer.alloc(3 * 1024 * 1024))
    expect(failures).toHaveLength(1)
    const result = await writer.close({ result: 'failure' })
    expect(result).toMatchObject({ state: 'failed', frames: 1 })
    expect(await verifyStream(inPieces(await readFile(path)))).toMatchObject({ ok: true, state: 'failed' })
  })

  const volume = mountSmall('1m')
  test.skipIf(volume.path === undefined)(
    `a full disk ends it, and what was written verifies${volume.why}`,
    async () => {
      const root = join(volume.path ?? '', 'recordings')
      mkdirSync(root)
      try {
        const { writer, failures, path, grant, signer } = await makeWriter({ root })
        const chunk = Buffer.alloc(4096)
        let sent = 0
        for (; failures.length === 0 && sent < 64 * 1024 * 1024; sent += chunk.length) {
          // Bytes that do not compress, to fill the disk.
          chunk.fill(`${sent}-`).set(Buffer.from(crypto.getRandomValues(new Uint8Array(4096))))
          writer.write(FRAME.output, 1, chunk)
          if (sent % 65_536 === 0) await new Promise((resolve) => setImmediate(resolve))
        }
        expect(failures).toHaveLength(1)
        expect(failures[0]).toMatchObject({ code: 'ENOSPC' })
        const result = await writer.close({ result: 'failure', reason: 'disk full' })
        expect(result.state).toBe('failed')
        const bytes = await readFile(path)
        expect(bytes.length).toBe(result.size)
        const verification = await verifyStream(inPieces(bytes), { mayBeOpen: true, trusted: [signer.raw] })
        expect(verification).toMatchObject({ ok: true, digest: result.digest, frames: result.frames })
        expect(bytes.length).toBeGreaterThan(500_000)
        expect(await readFrames(path, grant.key)).toHaveLength(result.frames)
      } finally {
        volume.release()
      }
    },
  )

  const floor = mountSmall('1m')
  test.skipIf(floor.path === undefined)(
    `it ends in order above the floor of free space${floor.why}`,
    async () => {
      try {
        const signer = makeSigner()
        const prepared = await prepare(signer, { root: floor.path ?? '' })
        let time = 0
        const create = fileIn(prepared.directory, { minimumFree: 600_000, monotonic: () => time })
        const { writer, failures, path } = await makeWriter({ signer, prepared, create })
        writer.write(FRAME.output, 1, crypto.getRandomValues(new Uint8Array(60_000)))
        for (let count = 0; count < 8; count++)
          writer.write(FRAME.output, 1, crypto.getRandomValues(new Uint8Array(60_000)))
        time += 3000
        writer.write(FRAME.output, 1, text('more'))
        await until(() => failures.length > 0)
        expect(failures[0]?.message).toMatch('min_free')
        const result = await writer.close({ result: 'failure', reason: 'disk nearly full' })
        expect(result).toMatchObject({ state: 'failed', frames: 11 })
        expect(await verifyStream(inPieces(await readFile(path)))).toMatchObject({
          ok: true,
          state: 'failed',
        })
      } finally {
        floor.release()
      }
    },
  )
})
