/** Work of many callers that is done together. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MissingReferenceError } from '../../../src/store/engine/errors.ts'
import { gathered } from '../../../src/store/engine/gathered.ts'
import { type TemporaryStore, temporaryStore } from '../temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const running = (id: string) => ({
  id,
  begin: 1,
  user: 'ops1',
  sourceIp: '::1',
  protocol: 'SSH' as const,
  subprotocols: ['SSH_SHELL' as const],
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  targetHost: '192.0.2.1',
  authorization: 'ops:servers',
  isRecorded: true,
  bytesIn: 0,
  bytesOut: 0,
})

it('is done in pieces of the limit, none of which has a key twice, and each gets its own result', async () => {
  const pieces: string[][] = []
  const work = gathered(
    3,
    (text: string) => text,
    async (all) => {
      pieces.push([...all])
      return all.map((text) => `${text}!`)
    },
  )
  expect(await Promise.all(['a', 'b', 'a', 'c', 'd'].map(work))).toEqual(['a!', 'b!', 'a!', 'c!', 'd!'])
  expect(pieces).toEqual([
    ['a', 'b', 'c'],
    ['a', 'd'],
  ])
})

it('fails alone', async () => {
  const work = gathered(
    3,
    (text: string) => text,
    async (all) => {
      if (all.includes('bad')) throw new Error('it is bad')
      return [...all]
    },
  )
  const settled = await Promise.allSettled(['a', 'bad', 'b'].map(work))
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('ends of sessions at once are each their own, also twice, and one without a session fails alone', async () => {
  const { sessions } = temp.store
  for (const id of ['S1', 'S2', 'S3']) await sessions.create(running(id))
  const settled = await Promise.allSettled([
    sessions.update('S1', { end: 5, result: 'killed', reason: 'by admin' }),
    sessions.update('S2', { end: 6, result: 'success', bytesIn: 7 }),
    sessions.update('S4', { end: 6, result: 'success' }),
    sessions.update('S3', { end: 7, result: 'success', bytesIn: 8 }),
    sessions.update('S3', { end: 8, result: 'failure' }),
  ])
  const failed = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(failed).toEqual([expect.any(MissingReferenceError)])
  const rows = await Promise.all(['S1', 'S2', 'S3'].map((id) => sessions.find(id)))
  expect(rows.map((row) => [row?.end, row?.result, row?.reason, row?.bytesIn])).toEqual([
    [5, 'killed', 'by admin', 0],
    [6, 'success', undefined, 7],
    [8, 'failure', undefined, 8],
  ])
})
