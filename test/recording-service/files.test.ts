/** Files of running recordings, as a proxy in another process may ask for them. */
import { Buffer } from 'node:buffer'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { MAX_APPEND, MAX_APPEND_PARTS } from '../../recordings/container/recording-file.ts'
import { verifyStream } from '../../recordings/container/verify.ts'
import { BACKLOG_HARD_LIMIT } from '../../recordings/container/writer.ts'
import { MAX_AFTER_FAULT, MAX_IN_FLIGHT, RecordingFiles } from '../../src/recording-service/files.ts'
import { mountSmall } from '../mount-small.ts'
import { inPieces, makeRoot, makeSigner, makeWriter, removeRoots, until } from '../recordings/support.ts'

afterAll(removeRoots)

const MIB = 1024 * 1024
const bytes = (text: string) => Buffer.from(text)
const begun = async (files: RecordingFiles, session = 'one') => {
  const directory = makeRoot()
  await files.begin(session, directory, [bytes('head')])
  return join(directory, FILE_NAME)
}

/** Whether this process has a file below this path open. */
const isOpen = (path: string) =>
  readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path)
    } catch {
      return false
    }
  })

describe('the file of a running recording', () => {
  test('grows by what is appended, however it is cut into parts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { minLength: 1 })),
        async (appends) => {
          const files = new RecordingFiles({ minimumFree: 0 })
          const path = await begun(files)
          let expected = bytes('head')
          for (const parts of appends) {
            expect(await files.append('one', expected.length, parts)).toEqual({})
            expected = Buffer.concat([expected, ...parts])
          }
          await files.close('one')
          expect(readFileSync(path).equals(expected)).toBe(true)
        },
      ),
      { numRuns: 30 },
    )
  })

  test('refuses an append out of order, and keeps its bytes', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    const path = await begun(files)
    for (const offset of [0, 3, 5, -1, Number.NaN]) {
      await expect(files.append('one', offset, [bytes('x')])).rejects.toThrow('expected an append at byte 4')
    }
    await files.append('one', 4, [bytes('more')])
    await expect(files.append('one', 4, [bytes('more')])).rejects.toThrow('expected an append at byte 8')
    expect(readFileSync(path, 'utf8')).toBe('headmore')
    await files.close('one')
  })

  test('is begun once, and never over another file', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    const path = await begun(files)
    await expect(files.begin('one', makeRoot(), [bytes('again')])).rejects.toThrow('only once')
    await expect(files.begin('two', join(path, '..'), [bytes('again')])).rejects.toThrow('EEXIST')
    await files.close('one')
    await expect(files.begin('one', makeRoot(), [bytes('again')])).rejects.toThrow('only once')
    expect(readFileSync(path, 'utf8')).toBe('head')
  })

  test('accepts nothing before its beginning and after its end', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    await expect(files.append('one', 0, [bytes('x')])).rejects.toThrow('expected a recording that is open')
    const path = await begun(files)
    await files.close('one')
    await files.close('one')
    await expect(files.append('one', 4, [bytes('x')])).rejects.toThrow('expected a recording that is open')
    files.onClosed('one')
    await expect(files.append('one', 4, [bytes('x')])).rejects.toThrow('expected a recording that is open')
    expect(readFileSync(path, 'utf8')).toBe('head')
  })

  test('accepts no append above its limits', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    await begun(files)
    await expect(files.append('one', 4, [Buffer.alloc(MAX_APPEND + 1)])).rejects.toThrow('at most')
    const parts = Array.from({ length: MAX_APPEND_PARTS + 1 }, () => bytes('x'))
    await expect(files.append('one', 4, parts)).rejects.toThrow('at most')
    expect(await files.append('one', 4, [bytes('x')])).toEqual({})
    await files.close('one')
  })

  const volume = mountSmall('96m')
  test.skipIf(volume.path === undefined)(
    `ends soon after its volume has shown a fault${volume.why}`,
    async () => {
      try {
        const files = new RecordingFiles({ minimumFree: 60 * MIB })
        await files.begin('one', volume.path ?? '', [bytes('head')])
        const chunk = Buffer.alloc(4 * MIB)
        const faults: boolean[] = []
        let size = 4
        const fill = async () => {
          for (;;) {
            const { fault } = await files.append('one', size, [chunk])
            size += chunk.length
            if (fault) faults.push(fault.isNoSpace)
          }
        }
        await expect(fill()).rejects.toThrow('expected the end of the recording')
        expect(faults[0]).toBe(true)
        expect(size).toBeLessThanOrEqual(4 + 52 * MIB + MAX_AFTER_FAULT)
        await expect(files.begin('two', volume.path ?? '', [bytes('head')])).rejects.toThrow('min_free')
        await files.close('one')
      } finally {
        volume.release()
      }
    },
  )
})

describe('a disk that hangs', () => {
  let datasync: FileHandle['datasync']
  let prototype: FileHandle
  let release: () => void
  let waiting = 0
  beforeEach(async () => {
    const handle = await open(import.meta.filename)
    prototype = Object.getPrototypeOf(handle)
    await handle.close()
    datasync = prototype.datasync
  })
  afterEach(() => {
    release?.()
    prototype.datasync = datasync
  })
  const hang = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    release = resolve
    waiting = 0
    prototype.datasync = async function (this: FileHandle) {
      waiting++
      await promise
      return await datasync.call(this)
    }
  }

  test('holds one append of a recording at a time, and a bounded number of bytes of all', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    const count = Math.floor(MAX_IN_FLIGHT / MAX_APPEND)
    const sessions = Array.from({ length: count + 1 }, (_, i) => `s${i}`)
    for (const session of sessions) await begun(files, session)
    hang()
    const chunk = Buffer.alloc(MAX_APPEND)
    const appends = sessions.slice(0, count).map((session) => files.append(session, 4, [chunk]))
    await expect(files.append('s0', 4, [bytes('x')])).rejects.toThrow('one append to a recording at a time')
    await expect(files.append(`s${count}`, 4, [chunk])).rejects.toThrow('slower than the sessions')
    release()
    await Promise.all(appends)
    expect(await files.append(`s${count}`, 4, [chunk])).toEqual({})
    await Promise.all(sessions.map((session) => files.close(session)))
  })

  test('does not delay the end of a session, and the file is closed when the disk is back', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    const path = await begun(files)
    hang()
    const append = files.append('one', 4, [bytes('more')])
    await until(() => waiting === 1)
    files.onClosed('one')
    await expect(files.append('one', 8, [bytes('late')])).rejects.toThrow('expected a recording that is open')
    release()
    await append
    expect(readFileSync(path, 'utf8')).toBe('headmore')
    await until(() => !isOpen(path))
  })

  test('while the file is created leaves no file open', async () => {
    const files = new RecordingFiles({ minimumFree: 0 })
    hang()
    const directory = makeRoot()
    const beginning = files.begin('one', directory, [bytes('head')])
    await until(() => waiting === 1)
    expect(isOpen(directory)).toBe(true)
    files.onClosed('one')
    release()
    await beginning
    await until(() => !isOpen(directory))
  })

  test('fails a recording at its bound, and all that was accepted is there when the disk is back', async () => {
    const signer = makeSigner()
    const files = new RecordingFiles({ minimumFree: 0 })
    const { writer, failures } = await makeWriter({
      signer,
      create: async (first) => {
        await files.begin('one', made, first)
        return {
          append: (offset, parts) => files.append('one', offset, parts as Uint8Array[]),
          close: () => files.close('one'),
        }
      },
    })
    hang()
    const chunk = Buffer.alloc(65_536)
    for (let sent = 0; sent <= BACKLOG_HARD_LIMIT + 1_000_000; sent += chunk.length) {
      writer.write(FRAME.output, 1, chunk)
    }
    expect(failures.map(({ message }) => message)).toEqual([expect.stringMatching('slower than the session')])
    const closed = writer.close({ result: 'failure' })
    release()
    const { state, frames, digest } = await closed
    expect(state).toBe('failed')
    expect(frames).toBeGreaterThan(BACKLOG_HARD_LIMIT / chunk.length)
    const verification = await verifyStream(inPieces(readFileSync(join(made, FILE_NAME))))
    expect(verification).toMatchObject({ ok: true, state: 'failed', frames, digest })
  })
  const made = makeRoot()
})
