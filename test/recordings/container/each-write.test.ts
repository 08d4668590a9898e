/** kill -9 at each write: of a recording, and of its recovery. */
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { verifyStream } from '../../../recordings/container/verify.ts'
import { findRecording } from '../../../recordings/storage/catalog.ts'
import { recoverRecording } from '../../../recordings/storage/recover.ts'
import { run } from '../../peers/process.ts'
import { BEGIN, framesOf, inPieces, makeRoot, makeSigner, removeRoots, SESSION } from '../support.ts'

afterAll(removeRoots)

const LONG = { timeout: 300_000 }
const signer = makeSigner()
const pkcs8 = signer.key.export({ format: 'der', type: 'pkcs8' }).toString('base64')
const options = { sign: signer.sign, trusted: [signer.raw], now: () => BEGIN + 60_000 }

/** Lets a process die at its write of that number. Returns its output, and whether it finished. */
async function dies(what: 'record' | 'recover', root: string, write: number) {
  const child = join(import.meta.dirname, 'dying-child.ts')
  const args = ['--disable-warning=ExperimentalWarning', child, what, root, pkcs8, SESSION, String(write)]
  const done = await run(process.execPath, args)
  expect([0, null], done.stderr).toContain(done.code)
  expect(done.code === 0 || done.signal === 'SIGKILL', done.stderr).toBe(true)
  const key = Buffer.from(/^key (.*)$/m.exec(done.stdout)?.[1] ?? '', 'hex')
  const proved = [...done.stdout.matchAll(/^proved (\d+)$/gm)].at(-1)?.[1]
  return { ended: done.code === 0, key, proved: Number(proved ?? -1) }
}

/**
 * Checks that the recording exists, is in order, and has at least this many frames. With `proved` -1 it may
 * not have begun.
 */
async function expectSound(root: string, key: Buffer, proved: number, context: string): Promise<void> {
  const entry = await findRecording(root, SESSION)
  const path = entry && join(entry.directory, FILE_NAME)
  if (!path || !existsSync(path)) {
    expect(proved, context).toBe(-1)
    return
  }
  const recovery = await recoverRecording(entry.directory, SESSION, options)
  expect(['recovered', 'closed', 'empty'], `${context}: ${JSON.stringify(recovery)}`).toContain(
    recovery.outcome,
  )
  if (recovery.outcome === 'empty') {
    expect(proved, context).toBe(-1)
    return
  }
  const bytes = readFileSync(path)
  const verified = await verifyStream(inPieces(bytes), { session: SESSION, trusted: [signer.raw] })
  expect(verified, context).toMatchObject({ ok: true })
  const texts = (await framesOf(bytes, key)).map(({ payload }) => Buffer.from(payload).toString())
  const frames = texts.filter((text) => text.startsWith('frame'))
  expect(frames.length, context).toBeGreaterThanOrEqual(proved)
  for (const [index, text] of frames.entries()) expect(text).toBe(`frame ${index + 1} `.repeat(200))
}

describe('kill -9 at each write', () => {
  test('of a recording: what was said to be on the disk is there, and it is sealed', LONG, async () => {
    let write = 1
    for (let ended = false; !ended; write++) {
      const root = makeRoot()
      const died = await dies('record', root, write)
      ended = died.ended
      await expectSound(root, died.key, died.proved, `killed at write ${write}`)
    }
    // The folder, the key, the header, four flushes and the end, each written and synced.
    expect(write).toBeGreaterThan(14)
  })

  test('of its recovery: the next one finishes it', LONG, async () => {
    const torn = makeRoot()
    const { key, proved } = await dies('record', torn, 14)
    expect(proved).toBeGreaterThan(0)
    let write = 1
    for (let ended = false; !ended; write++) {
      const root = makeRoot()
      cpSync(torn, root, { recursive: true })
      ended = (await dies('recover', root, write)).ended
      await expectSound(root, key, proved, `killed at write ${write} of the recovery`)
    }
    expect(write).toBeGreaterThan(3)
  })
})
