/** The statements that may be signed for a running recording, in order. */
import { Buffer } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type CheckpointPlace,
  encodeCheckpoint,
  encodeStatement,
  parseStatement,
} from '../../recordings/container/format/checkpoint.ts'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { SessionFile } from '../../recordings/container/session-file.ts'
import { RecordingWriter, type WriterOptions } from '../../recordings/container/writer.ts'
import { RecordingService } from '../../src/recording-service/service.ts'
import type { Reached } from '../../src/recording-service/signed.ts'
import {
  BEGIN,
  identity,
  ManualClock,
  makeRoot,
  makeSigner,
  recipient,
  removeRoots,
  SESSION,
} from '../recordings/support.ts'
import { until } from '../until.ts'
import { serviceFile } from './service-file.ts'

const OTHER = '01JD0000000000000000000002'
const signer = makeSigner()
const clock = new ManualClock()
let recordingService: RecordingService
let directory: string
/** The statements that the writer requested. */
let asked: Uint8Array[]
beforeEach(() => {
  const keys = {
    signing: signer.key,
    signer: signer.raw,
    trusted: [signer.raw],
    identities: [identity],
    recipient,
  }
  recordingService = new RecordingService({
    root: makeRoot(),
    keys,
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  asked = []
})
afterAll(removeRoots)

async function writing(
  sign: WriterOptions['sign'] = (statement) => recordingService.sign(SESSION, statement),
) {
  const prepared = await recordingService.prepare(SESSION, BEGIN, { user: 'ops1' })
  directory = prepared.directory
  const failures: Error[] = []
  const writer = await RecordingWriter.open(prepared.grant, {
    create: serviceFile(recordingService, SESSION),
    sign: (statement) => {
      asked.push(Buffer.from(statement))
      return sign(statement)
    },
    clock,
    onFailure: (error) => failures.push(error),
  })
  return { writer, failures }
}
const output = (writer: RecordingWriter, text: string) => {
  clock.time += 1000
  writer.write(FRAME.output, 1, Buffer.from(text))
  return writer.flush()
}
const signed = () => [...recordingService.open].find(([session]) => session === SESSION)![1].signed
const place = ({ sequence, size, digest }: Reached): CheckpointPlace => ({
  session: SESSION,
  sequence: sequence + 1,
  offset: size,
  head: Buffer.from(digest, 'hex'),
})
const closing = { frames: 3, droppedBytes: 0, unsignedBytes: 0, lastFrame: 1 }
const ask = (
  at: CheckpointPlace,
  kind: 'interim' | 'sealed' | 'failed' | 'recovered',
  change = {},
  more = {},
) =>
  recordingService.sign(
    SESSION,
    encodeStatement(
      at,
      encodeCheckpoint({
        kind,
        wallTime: clock.now(),
        time: 9_000_000_000,
        ...more,
        ...(kind !== 'interim' && { closing: { ...closing, ...change } }),
      }),
    ),
  )

describe('a running recording', () => {
  test('is known by its statements as it lies on the disk', async () => {
    const { writer } = await writing()
    for (const text of ['one', 'two', 'three']) await output(writer, text)
    const { latest, settled } = signed()
    const bytes = readFileSync(join(directory, FILE_NAME))
    expect(latest).toMatchObject({ size: bytes.length, digest: bytes.subarray(-32).toString('hex') })
    expect(settled!.size).toBeLessThan(latest!.size)
    expect(bytes.subarray(settled!.size - 32, settled!.size).toString('hex')).toBe(settled!.digest)
    const done = await writer.close({ result: 'success' })
    expect(signed().ends).toEqual([done])
    expect(await recordingService.ended(SESSION)).toEqual(done)
  })

  test('gets no signature for a statement of another recording, or before its first', async () => {
    const { writer } = await writing()
    await output(writer, 'one')
    await recordingService.prepare(OTHER, BEGIN, { user: 'ops2' })
    for (const statement of asked) {
      await expect(recordingService.sign(OTHER, statement)).rejects.toThrow('of a checkpoint of this session')
    }
    const body = encodeCheckpoint({ kind: 'interim', wallTime: 1, time: 1 })
    const first = { session: OTHER, sequence: 5, offset: 900, head: Buffer.alloc(32) }
    await expect(recordingService.sign(OTHER, encodeStatement(first, body))).rejects.toThrow(
      'the first one is record 0',
    )
  })

  test('gets no second signature for what was signed, nor one that goes back, skips or says it was recovered', async () => {
    const { writer } = await writing()
    for (const text of ['one', 'two', 'three']) await output(writer, text)
    for (const statement of asked)
      await expect(recordingService.sign(SESSION, statement)).rejects.toThrow('is not behind')
    const { latest, settled } = signed()
    const next = place(latest!)
    await expect(ask(place(settled!), 'interim')).rejects.toThrow('is not behind')
    await expect(ask(place(settled!), 'sealed')).rejects.toThrow('is not behind')
    await expect(ask({ ...next, offset: next.offset - 1 }, 'interim')).rejects.toThrow('is not behind byte')
    await expect(ask({ ...next, offset: next.offset + 1 }, 'interim')).rejects.toThrow('does not go on')
    await expect(ask({ ...next, head: Buffer.alloc(32) }, 'sealed')).rejects.toThrow('does not go on')
    await expect(ask(next, 'interim', {}, { time: 1 })).rejects.toThrow('its time is before')
    await expect(ask(next, 'recovered')).rejects.toThrow('only the broker')
    await expect(ask(next, 'sealed', { droppedBytes: 9 })).rejects.toThrow('bytes were dropped')
    await expect(recordingService.signRecovered(SESSION, asked.at(-1)!)).rejects.toThrow(
      'that a crash has left',
    )
    expect(await writer.close({ result: 'success' })).toMatchObject({ state: 'sealed' })
  })

  test('that is closed gets one more, when it could not be written, and none that is about less than lies there', async () => {
    const { writer } = await writing()
    await output(writer, 'one')
    const before = signed().settled!
    await writer.close({ result: 'success' })
    const { latest, settled } = signed()
    await expect(ask(place(latest!), 'interim')).rejects.toThrow('is closed')
    await expect(ask(place(latest!), 'sealed')).rejects.toThrow('is closed')
    await expect(ask(place(before), 'failed')).rejects.toThrow('is not behind')
    await ask(place(settled!), 'failed')
    await expect(ask(place(settled!), 'failed')).rejects.toThrow('is closed')
    // The file has the first statement.
    expect(await recordingService.ended(SESSION)).toMatchObject({ state: 'sealed', size: latest!.size })
  })

  test('that was noted up to its last checkpoint does not give that up either', async () => {
    const { writer } = await writing()
    await output(writer, 'one')
    const { latest, settled } = signed()
    signed().settle(latest!)
    await expect(ask(place(settled!), 'failed')).rejects.toThrow('is not behind')
    expect(await writer.close({ result: 'success' })).toMatchObject({ state: 'sealed' })
  })
})

describe('a writer whose flush fails', () => {
  test.each([
    ['before its signature comes', false],
    ['after it was signed', true],
  ])('%s still gets its closing checkpoint, and the broker knows it', async (_, isSigned) => {
    let fails = false
    const { writer, failures } = await writing(async (statement) => {
      if (fails && !isSigned) {
        fails = false
        throw new Error('no signature now')
      }
      const signature = await recordingService.sign(SESSION, statement)
      if (!fails) return signature
      fails = false
      throw new Error('it was lost on the way')
    })
    await output(writer, 'one')
    fails = true
    await expect(output(writer, 'two')).rejects.toThrow()
    expect(failures).toHaveLength(1)
    const done = await writer.close({ result: 'failure' })
    expect(done.state).toBe('failed')
    expect(await recordingService.ended(SESSION)).toEqual(done)
  })
})

describe('the end of a recording', () => {
  test('is not what was signed and never written', async () => {
    const { writer } = await writing()
    await output(writer, 'one')
    const { size } = statSync(join(directory, FILE_NAME))
    await writer.close({ result: 'success' })
    await truncate(join(directory, FILE_NAME), size)
    expect(await recordingService.ended(SESSION)).toEqual({ state: 'failed', size, frames: 0, digest: '' })
  })
})

test('a recording whose end is on its way to the disk is sealed, and not failed', async () => {
  const { writer } = await writing()
  writer.write(FRAME.channelOpen, 0, Buffer.from('{}'))
  await writer.flush()
  const disk = Promise.withResolvers<void>()
  const isLast = () => parseStatement(Buffer.from(asked.at(-1)!))?.checkpoint.kind === 'sealed'
  const append = SessionFile.prototype.append
  const slow = vi.spyOn(SessionFile.prototype, 'append').mockImplementation(async function (
    this: SessionFile,
    ...given
  ) {
    if (isLast()) await disk.promise
    return await append.apply(this, given)
  })
  const closing = writer.close({ result: 'success' })
  await until('the last append', () => (isLast() ? true : undefined))
  await new Promise((resolve) => setImmediate(resolve))
  const ended = recordingService.ended(SESSION)
  const late = new Promise((resolve) => setTimeout(resolve, 300, 'waits'))
  expect(await Promise.race([ended, late])).toBe('waits')
  disk.resolve()
  const { size, digest } = await closing
  slow.mockRestore()
  expect(await ended).toMatchObject({ state: 'sealed', size, digest })
})
