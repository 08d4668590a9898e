import { expect, test } from 'vitest'
import { Slices } from '../../src/threads/slices.ts'
import { until } from '../until.ts'

function busy(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/** Counts the turns of the event loop until `stop` is called. */
function countTurns() {
  let turns = 0
  let isCounting = true
  const count = (): void => {
    turns++
    if (isCounting) setImmediate(count)
  }
  setImmediate(count)
  return {
    stop: () => {
      isCounting = false
      return turns
    },
  }
}

test('the first work runs at once, the others in their order, and the end is reported', async () => {
  const done: number[] = []
  let rests = 0
  const slices = new Slices(() => rests++)
  for (let i = 0; i < 100; i++) slices.run(() => done.push(i))
  expect(done).toEqual([0])
  expect(slices.waiting).toBe(99)
  await until('all of them', () => rests || undefined)
  expect(done).toEqual(Array.from({ length: 100 }, (_, i) => i))
  expect(rests).toBe(1)
})

test.each<[string, () => void]>([
  ['of the works themselves', () => busy(1)],
  ['of what their promises cause', () => void Promise.resolve().then(() => busy(1))],
])('other work runs every two milliseconds %s', async (_what, work) => {
  const turns = countTurns()
  let isAtRest = false
  const slices = new Slices(() => {
    isAtRest = true
  })
  for (let i = 0; i < 60; i++) slices.run(work)
  await until('the last', () => isAtRest || undefined)
  expect(turns.stop()).toBeGreaterThan(20)
})

test('works that come one at a time share the slice of a turn', async () => {
  const slices = new Slices()
  const done: number[] = []
  for (let i = 0; i < 5; i++) {
    slices.run(() => {
      busy(3)
      done.push(i)
    })
    await undefined
    await undefined
  }
  expect(done).toEqual([0])
  await until('all of them', () => done.length === 5 || undefined)
})

test('in a loop whose turns are long, a quarter of each goes to the heap', async () => {
  let isAtRest = false
  const slices = new Slices(() => {
    isAtRest = true
  })
  let turns = 0
  const occupy = (): void => {
    if (isAtRest) return
    turns++
    busy(20)
    setImmediate(occupy)
  }
  setImmediate(occupy)
  for (let i = 0; i < 60; i++) slices.run(() => busy(1))
  await until('the last', () => isAtRest || undefined)
  // Two milliseconds of each would take 30 turns.
  expect(turns).toBeLessThan(22)
})
