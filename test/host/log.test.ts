import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { JsonLogSink } from '../../src/audit/sinks/json-log.ts'
import { loggerTo, openLog } from '../../src/host/log.ts'
import { Secret } from '../../src/model/secret.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-log-'))
})
afterEach(() => rmSync(folder, { recursive: true }))
const file = () => join(folder, 'sallyport.log')
const lines = () =>
  readFileSync(file(), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
const fail = (error: Error) => {
  throw error
}

test('is one JSON object a line, from the level on, in a file for its owner only', () => {
  const { logger, flush } = openLog({ level: 'warn', file: file() }, fail)
  logger.info('not this')
  logger.warn({ port: 22 }, 'in use')
  logger.error(new Error('lost'))
  flush()
  expect(lines()).toEqual([
    { level: 'warn', time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/), port: 22, msg: 'in use' },
    {
      level: 'error',
      time: expect.any(String),
      error: expect.objectContaining({ message: 'lost' }),
      msg: 'lost',
    },
  ])
  expect(statSync(file()).mode & 0o777).toBe(0o600)
})

test('goes on at the end of the file', () => {
  openLog({ level: 'info', file: file() }, fail).logger.info('first')
  openLog({ level: 'info', file: file() }, fail).logger.info('second')
  expect(lines().map(({ msg }) => msg)).toEqual(['first', 'second'])
})

test('is a new file once the old one was moved away and it is opened again', () => {
  const { logger, reopen } = openLog({ level: 'info', file: file() }, fail)
  logger.info('first')
  renameSync(file(), `${file()}.1`)
  logger.info('second')
  reopen()
  logger.info('third')
  expect(lines().map(({ msg }) => msg)).toEqual(['third'])
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect(readFileSync(`${file()}.1`, 'utf8')).toMatch(/first.*\n.*second/)
})

test('goes on in the old file if the new one cannot be opened, and says so', () => {
  const failures: string[] = []
  const { logger, reopen } = openLog({ level: 'info', file: file() }, ({ message }) => failures.push(message))
  renameSync(file(), `${file()}.1`)
  mkdirSync(file())
  reopen()
  logger.info('still here')
  expect(failures).toEqual([expect.stringContaining('EISDIR')])
  expect(readFileSync(`${file()}.1`, 'utf8')).toContain('still here')
})

test('shows no secret', () => {
  openLog({ level: 'info', file: file() }, fail).logger.info({ password: Secret.of('hunter2') }, 'x')
  expect(readFileSync(file(), 'utf8')).not.toContain('hunter2')
})

test('drives no terminal, whatever an error says', () => {
  const lines: string[] = []
  const logger = loggerTo('info', { write: (line) => lines.push(line) })
  logger.child({ of: 'the API' }).error({ error: new Error('said \u009b2J\u202e\x1b]0;x\x07') }, 'failed')
  expect(lines[0]).toContain('said \\u009b2J\\u202e\\u001b]0;x\\u0007')
  expect(lines[0]).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/)
})

test('a file that cannot be opened is an error at once', () => {
  expect(() => openLog({ level: 'info', file: join(folder, 'no', 'such', 'folder') }, fail)).toThrow(/ENOENT/)
})

test('has events whatever the level is, with their fields and sentence', async () => {
  const sink = new JsonLogSink(openLog({ level: 'error', file: file() }, fail).logger)
  const time = Date.UTC(2026, 10, 20)
  const settled: number[] = []
  const connection = await sink.connect({ settled: (sequence) => settled.push(sequence), broken: () => {} })
  await connection.send([
    { sequence: 1, time, code: 'auth.success', fields: { user: 'a"\\', method: 'password' } },
    { sequence: 2, time, code: 'auth.failure', fields: { user: 'b' } },
    { sequence: 3, time, code: 'recording.failed', fields: { session: '01A', reason: 'disk full' } },
  ])
  expect(settled).toEqual([1, 2, 3])
  expect(lines()).toEqual([
    {
      level: 'info',
      time: expect.any(String),
      event: 'auth.success',
      severity: 'notice',
      sequence: 1,
      occurred: '2026-11-20T00:00:00.000Z',
      user: 'a"\\',
      method: 'password',
      msg: 'a"\\ signed in by password',
    },
    expect.objectContaining({ level: 'warn', event: 'auth.failure', severity: 'warning' }),
    expect.objectContaining({
      level: 'error',
      event: 'recording.failed',
      severity: 'alert',
      session: '01A',
      reason: 'disk full',
    }),
  ])
})

test('an event is not taken for written while the log cannot be', async () => {
  const failure = { error: undefined as Error | undefined }
  const sink = new JsonLogSink(openLog({ level: 'info', file: file() }, fail).logger, () => failure.error)
  const settled: number[] = []
  const connection = await sink.connect({ settled: (sequence) => settled.push(sequence), broken: () => {} })
  failure.error = new Error('no space left on device')
  const event = { sequence: 1, time: 0, code: 'service.stop', fields: {} } as const
  await expect(connection.send([event])).rejects.toThrow('no space left')
  expect(settled).toEqual([])
})

test('says why its last line could not be written', () => {
  const failures: string[] = []
  const log = openLog({ level: 'info', file: '/dev/full' }, ({ message }) => failures.push(message))
  log.logger.info('nowhere')
  expect(log.failure()?.message).toMatch(/ENOSPC/)
  // the line is written again
  expect(failures.at(-1)).toMatch(/ENOSPC/)
})
