/** Bases whose time has come. */
import { expect, test } from 'vitest'
import { Due } from '../../src/gate/due.ts'
import type { Basis } from '../../src/identity/basis.ts'

const basis = (): Basis => ({ userId: 'U', address: '', proof: { method: 'password', revision: 0 } })

test('are returned once, each at its time, and not if nothing rests on them any more', () => {
  const due = new Due()
  const [first, second, gone, never] = [basis(), basis(), basis(), basis()]
  due.set(second, 20)
  due.set(first, 10)
  due.set(gone, 10)
  let looked = 0
  const bases = () => {
    looked++
    return [first, second, never]
  }
  expect(due.take(9, bases)).toEqual([])
  expect(looked).toBe(0)
  expect(due.take(10, bases)).toEqual([first])
  expect(due.take(19, bases)).toEqual([])
  expect(looked).toBe(1)
  due.set(first, 15)
  expect(due.take(30, bases)).toEqual([first, second])
  expect(due.take(40, bases)).toEqual([])
  expect(looked).toBe(2)
})

test('have the earliest time that was said since', () => {
  const due = new Due()
  const one = basis()
  due.set(one, 10)
  due.set(one, 30)
  expect(due.take(10, () => [one])).toEqual([one])
  due.set(one, 30)
  expect(due.take(20, () => [one])).toEqual([])
  expect(due.take(30, () => [one])).toEqual([one])
})
