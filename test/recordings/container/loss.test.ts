/**
 * The limit of a crash's loss: recording processes are killed at random instants, and bytes that were not
 * synced are then torn, zeroed or cut as by a power cut. Bytes that the writer reported as synced are there,
 * byte for byte; of the other frames at most the last second is missing; the recovery seals and reports it.
 */
import { Buffer } from 'node:buffer'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import { missingPart, type Verification, verifyStream } from '../../../recordings/container/verify.ts'
import { findRecording } from '../../../recordings/storage/catalog.ts'
import { type RecoverOptions, recoverRecording } from '../../../recordings/storage/recover.ts'
import { times } from '../../times.ts'
import {
  BEGIN,
  framesOf,
  inPieces,
  ManualClock,
  makeRoot,
  makeSigner,
  makeWriter,
  removeRoots,
  until,
} from '../support.ts'

afterAll(removeRoots)

/** Number of recordings that are killed, and the least number if a slow machine uses up the time before. */
const KILLS = times(80, 200)
const LEAST = 60
const BUDGET_MS = 60_000
/** Number of recordings per process, and of processes at a time. */
const SESSIONS = 5
const AT_ONCE = 3
const PAGE = 4096
/** The part of the second for signing and the disk, after half of it was spent in a group. */
const FLUSH_MS = 500

const signer = makeSigner()
const pkcs8 = signer.key.export({ format: 'der', type: 'pkcs8' }).toString('base64')
const options: RecoverOptions = { sign: signer.sign, trusted: [signer.raw], now: () => BEGIN + 60_000 }

/** Output of a process until it was killed. */
interface Said {
  keys: Map<string, Buffer>
  /** Bytes on the disk, as the writer reported. */
  synced: Map<string, number>
  firstTick: number
  lastTick: number
  /** The longest time that the process stood still. */
  stall: number
  /** The longest sync of the disk, including one that was running at the kill. */
  disk: number
}

function heard(text: string): Said {
  const said: Said = { keys: new Map(), synced: new Map(), firstTick: 0, lastTick: 0, stall: 0, disk: 0 }
  const waits = new Map<string, number>()
  // A line that the kill has cut is ignored.
  for (const line of text.split('\n').slice(0, -1)) {
    const [what, ...words] = line.split(' ')
    if (what === 'key') said.keys.set(words[0]!, Buffer.from(words[1]!, 'hex'))
    if (what === 'synced') said.synced.set(words[0]!, Number(words[1]))
    if (what === 'disk') {
      const begin = waits.get(words[0]!)
      if (begin === undefined) waits.set(words[0]!, Number(words[1]))
      else {
        said.disk = Math.max(said.disk, Number(words[1]) - begin)
        waits.delete(words[0]!)
      }
    }
    if (what === 'tick') {
      const time = Number(words[1])
      if (said.firstTick === 0) said.firstTick = time
      else said.stall = Math.max(said.stall, time - said.lastTick)
      said.lastTick = time
    }
  }
  for (const begin of waits.values()) said.disk = Math.max(said.disk, said.lastTick - begin)
  return said
}

/** Runs a recording process, and kills it `delay` milliseconds after its first frame. */
async function killed(root: string, sessions: string[], delay: number): Promise<Said> {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, 'writing-child.ts'), root, pkcs8, ...sessions],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let text = ''
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (data: Buffer) => {
      text += data.toString('latin1')
      if (text.includes('\ntick ')) resolve()
    })
    child.once('exit', () => reject(new Error('the process ended by itself')))
  })
  await new Promise((resolve) => setTimeout(resolve, delay))
  child.kill('SIGKILL')
  await ended
  return heard(text)
}

/** Returns possible remains of bytes that were not synced: cut anywhere, with pages never written. */
function torn(bytes: Buffer, synced: number): Buffer {
  const size = synced + Math.floor(Math.random() * (bytes.length - synced + 1))
  // The size of a file may be on the disk before its content.
  const left = Math.random() < 0.5 ? Buffer.from(bytes) : Buffer.from(bytes.subarray(0, size))
  for (let page = Math.floor(synced / PAGE) * PAGE; page < left.length; page += PAGE) {
    if (Math.random() < 0.3) left.fill(0, Math.max(page, synced), Math.min(page + PAGE, left.length))
  }
  return left
}

/** Recovers a recording's file. It must be sealed, in order, and begin with the synced bytes. */
async function recovered(
  directory: string,
  session: string,
  synced: Buffer,
  context: string,
): Promise<{ bytes: Buffer; verification: Verification }> {
  const before = readFileSync(join(directory, FILE_NAME))
  const recovery = await recoverRecording(directory, session, options)
  expect(recovery.outcome, `${context}: ${JSON.stringify(recovery)}`).toBe('recovered')
  const bytes = readFileSync(join(directory, FILE_NAME))
  const verification = await verifyStream(inPieces(bytes), { session, trusted: [signer.raw] })
  expect(verification, context).toMatchObject({ ok: true, state: 'recovered' })
  expect(bytes.subarray(0, synced.length).equals(synced), `${context}: acknowledged bytes are gone`).toBe(
    true,
  )
  const closing = verification.lastCheckpoint?.closing
  expect(before.length - (closing?.droppedBytes ?? 0), context).toBeGreaterThanOrEqual(synced.length)
  expect(missingPart(verification), context).toMatch(
    /ends \d+\.\d{3} s after its beginning, \d+ bytes .* were dropped/,
  )
  return { bytes, verification }
}

/** Returns the numbers and times in the frames; they are consecutive from 0. */
async function ticksIn(bytes: Buffer, key: Buffer, context: string): Promise<number[][]> {
  const frames = (await framesOf(bytes, key)).filter(({ channel }) => channel === 1)
  const ticks = frames.map(({ payload }) => Buffer.from(payload).toString().split(' ').map(Number))
  expect(
    ticks.every(([count], i) => count === i),
    context,
  ).toBe(true)
  return ticks
}

describe('kill -9 at random instants', () => {
  test(`loses nothing that was on the disk, and of the rest a second at most, ${KILLS} times`, async () => {
    const root = makeRoot()
    const deadline = Date.now() + BUDGET_MS
    let count = 0
    const one = async (number: number) => {
      const bulk = number % 4 === 0 ? 'B' : 'S'
      const sessions = Array.from({ length: SESSIONS }, (_, i) => `${i === 0 ? bulk : 'S'}${number}-${i}`)
      const delay = Math.random() * 2200
      const said = await killed(root, sessions, delay)
      for (const session of sessions) {
        const synced = said.synced.get(session)
        const context = `${session} killed after ${Math.round(delay)} ms, synced ${synced}`
        const directory = (await findRecording(root, session))?.directory ?? ''
        const path = join(directory, FILE_NAME)
        const left = readFileSync(path)
        const safe = Buffer.from(left.subarray(0, synced))
        expect(safe.length, context).toBe(synced)
        const key = said.keys.get(session)!
        const { bytes } = await recovered(directory, session, safe, context)
        const ticks = await ticksIn(bytes, key, context)
        const lost = said.lastTick - (ticks.at(-1)?.[1] ?? said.firstTick)
        // Add the time that the machine stood still, and that its disk took beyond half a second.
        const slow = said.stall + Math.max(0, said.disk - FLUSH_MS)
        expect(lost, `${context}, the machine stood still for ${slow} ms`).toBeLessThanOrEqual(1000 + slow)
        for (let cut = 0; safe.length > 0 && cut < 2; cut++) {
          writeFileSync(path, torn(left, safe.length))
          await recovered(directory, session, safe, `${context}, torn`)
        }
        count++
      }
    }
    for (let number = 0; count < KILLS && (Date.now() < deadline || count < LEAST); number += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => one(number + i)))
    }
    expect(count).toBeGreaterThanOrEqual(LEAST)
  }, 300_000)
})

describe('a clock that jumps', () => {
  test.each([
    ['back by an hour', -3600e3],
    ['on by ten years', 315_360_000e3],
  ])('%s while a session is recorded changes neither its times nor that it verifies', async (_, jump) => {
    const clock = new ManualClock()
    let wall = BEGIN
    const jumping = { now: () => wall, monotonic: () => clock.monotonic() }
    const { writer, path, grant, failures } = await makeWriter({ signer, clock: jumping })
    for (let i = 0; i < 6; i++) {
      clock.time += 100_000
      if (i === 3) wall += jump
      writer.write(FRAME.output, 1, Buffer.alloc(200_000, 'x'))
      await until(() => writer.backlog < 300_000)
    }
    expect(await writer.close({ result: 'success' })).toMatchObject({ state: 'sealed' })
    expect(failures).toEqual([])
    const bytes = readFileSync(path)
    expect(await verifyStream(inPieces(bytes), { trusted: [signer.raw] })).toMatchObject({
      ok: true,
      lastFrame: 600_000,
    })
    const times = (await framesOf(bytes, grant.key)).map(({ time }) => time)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })
})
