/** Processes of plugins: how many there are, and what a fault in one ends. */
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CageReport } from '../../../src/confine/report.ts'
import { MESSAGES_DESCRIPTOR } from '../../../src/contract/worker.ts'
import { ChangerProcesses, type ProcessesOptions } from '../../../src/rotation/processes.ts'
import { until } from '../../until.ts'
import { signInOf, targetAt } from './targets.ts'

const PROGRAM = fileURLToPath(new URL('../../peers/faulty-changer.ts', import.meta.url))

let begun: CageReport[]
let warnings: unknown[]
let changers: ChangerProcesses
const started = (more: Partial<ProcessesOptions> = {}) =>
  new ChangerProcesses({
    command: () => ({ file: process.execPath, arguments: [PROGRAM], env: {} }),
    descriptor: MESSAGES_DESCRIPTOR,
    warn: (message, details) => warnings.push(message, details),
    onBegun: (report) => begun.push(report),
    ...more,
  })
beforeEach(() => {
  begun = []
  warnings = []
  changers = started()
})
afterEach(() => changers.close())

const verify = (login: string) => changers.verify('LDAP', targetAt(1), signInOf(login, 'Secret-Pass1'))
const codeOf = (job: Promise<unknown>) => job.catch(({ code, message }) => [code, message])

test('report the bounds that hold them', async () => {
  expect(await verify('good')).toBe('valid')
  expect(begun).toMatchObject([{ uid: process.getuid?.(), missing: expect.any(Array) }])
})

test('lose the job of a fault in a callback, and no other; and end when those are done', async () => {
  const waiting = Array.from({ length: 4 }, () => verify('waits'))
  await until('four processes', () => begun.length === 4)
  const faults = await Promise.all(Array.from({ length: 4 }, () => codeOf(verify('throws'))))
  expect(faults).toEqual(Array(4).fill(['unclear', 'the plugin failed: TypeError']))
  expect(await Promise.all(waiting)).toEqual(Array(4).fill('valid'))
  expect(JSON.stringify(warnings)).toContain('TypeError')
  expect(JSON.stringify(warnings)).not.toContain('Secret-Pass1')
  expect(await verify('good')).toBe('valid')
  expect(begun).toHaveLength(5)
})

test('keep their other jobs when a job that has ended has left a fault', async () => {
  const waiting = Array.from({ length: 4 }, () => verify('waits'))
  await until('four processes', () => begun.length === 4)
  expect(await Promise.all(Array.from({ length: 4 }, () => verify('loses')))).toEqual(Array(4).fill('valid'))
  expect(await Promise.all(waiting)).toEqual(Array(4).fill('valid'))
})

test('are four at most, with eight jobs each; others wait for their turn', async () => {
  const all = await Promise.all(Array.from({ length: 100 }, () => verify('counts')))
  expect(all).toEqual(Array(100).fill('valid'))
  expect(begun).toHaveLength(4)
})

test('give a job up in time, and end when there is nothing to do', async () => {
  changers.close()
  changers = started({ jobMs: 100, idleMs: 1 })
  expect(await codeOf(verify('hangs'))).toEqual(['timeout', 'the target did not answer in time'])
  await until('another process', async () => {
    expect(await verify('good')).toBe('valid')
    return begun.length > 1
  })
})

test('fail their jobs when the broker stops', async () => {
  const job = codeOf(verify('hangs'))
  await until('a process', () => begun.length === 1)
  changers.close()
  expect(await job).toEqual(['unclear', 'the changer ends: the bastion is stopping'])
  expect(await codeOf(verify('good'))).toEqual(['unclear', 'the bastion is stopping'])
})
