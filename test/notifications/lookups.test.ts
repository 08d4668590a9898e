import type { LookupAddress } from 'node:dns'
import { expect, test } from 'vitest'
import { Lookups } from '../../src/notifications/lookups.ts'

/** A resolver whose answers come when the test says so. */
function resolver() {
  const clock = { at: 0 }
  const open = new Map<string, PromiseWithResolvers<LookupAddress[]>>()
  const lookups = new Lookups({
    lookup: (host) => {
      const answer = Promise.withResolvers<LookupAddress[]>()
      open.set(host, answer)
      return answer.promise
    },
    monotonic: () => clock.at,
  })
  const answer = (host: string) => {
    open.get(host)?.resolve([{ address: '192.0.2.1', family: 4 }])
    open.delete(host)
  }
  const find = (host: string) => lookups.find(host, { all: true })
  /** Looks a name up that answers at once. */
  const quick = async (host: string) => {
    const found = find(host)
    await settled()
    answer(host)
    await found
  }
  return { clock, open, answer, find, quick, under: () => [...open.keys()] }
}
const settled = () => new Promise(setImmediate)

test('names whose servers do not answer wait for one another, and for them no name that was quick', async () => {
  const { find, quick, answer, under } = resolver()
  await quick('good')
  const bad = ['bad1', 'bad2', 'bad3'].map(find)
  await settled()
  expect(under()).toEqual(['bad1'])
  const good = find('good')
  expect(under()).toEqual(['bad1', 'good'])
  answer('good')
  expect(await good).toHaveLength(1)
  for (const host of ['bad1', 'bad2', 'bad3']) {
    answer(host)
    await settled()
  }
  await Promise.all(bad)
})

test('too many names that wait are refused, and there is room again when they have ended', async () => {
  const { find, answer, under } = resolver()
  const waiting = Array.from({ length: 200 }, (_, n) => find(`bad${n}`))
  await expect(find('more')).rejects.toThrow('200 names wait for their name servers: try again later')
  for (let n = 0; n < waiting.length; n++) {
    await settled()
    answer(`bad${n}`)
  }
  await Promise.all(waiting)
  const more = find('more')
  await settled()
  expect(under()).toEqual(['more'])
  answer('more')
  expect(await more).toHaveLength(1)
})

test('a name that was slow waits like a new one, until it is quick again', async () => {
  const { clock, find, quick, answer, under } = resolver()
  await quick('name')
  const slow = find('name')
  clock.at += 5000
  answer('name')
  await slow
  const other = find('other')
  const again = find('name')
  await settled()
  expect(under()).toEqual(['other'])
  answer('other')
  await other
  await settled()
  answer('name')
  await again
  void find('another')
  void find('name')
  await settled()
  expect(under()).toEqual(['name', 'another'])
})

test('a name is looked up once for all that wait for it, and a failure holds up no other', async () => {
  const { open, find, answer, under } = resolver()
  const both = [find('gone'), find('gone')]
  const next = find('next')
  await settled()
  expect(under()).toEqual(['gone'])
  open.get('gone')?.reject(new Error('ENOTFOUND'))
  open.delete('gone')
  for (const one of both) await expect(one).rejects.toThrow('ENOTFOUND')
  await settled()
  expect(under()).toEqual(['next'])
  answer('next')
  expect(await next).toHaveLength(1)
})
