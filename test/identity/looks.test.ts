import { expect, test } from 'vitest'
import { LOOK_MS, Looks, MAX_LOOKS } from '../../src/identity/looks.ts'

const ALICE = { userName: 'alice', groups: [] }

function counted() {
  const clock = { now: 0 }
  return { clock, times: 0, looks: new Looks(() => clock.now) }
}

test('a person, and that there is none, is kept for a minute', async () => {
  const asked = counted()
  for (const found of [ALICE, undefined]) {
    asked.times = 0
    const look = async () => {
      asked.times++
      return found
    }
    const key = String(found)
    expect(await Promise.all([asked.looks.of(key, look), asked.looks.of(key, look)])).toEqual([found, found])
    asked.clock.now += LOOK_MS - 1
    await asked.looks.of(key, look)
    expect(asked.times).toBe(1)
    asked.clock.now += 1
    await asked.looks.of(key, look)
    expect(asked.times).toBe(2)
  }
})

test('a failure is not kept', async () => {
  const { looks } = counted()
  await expect(looks.of('a', () => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect(await looks.of('a', async () => ALICE)).toEqual(ALICE)
})

test('the oldest of too many is dropped', async () => {
  const asked = counted()
  const look = async () => {
    asked.times++
    return ALICE
  }
  for (let n = 0; n <= MAX_LOOKS; n++) await asked.looks.of(String(n), look)
  await asked.looks.of('1', look)
  expect(asked.times).toBe(MAX_LOOKS + 1)
  await asked.looks.of('0', look)
  expect(asked.times).toBe(MAX_LOOKS + 2)
})
