import { expect, test } from 'vitest'
import { giveWay, letGiveWay, type Priorities } from '../../src/threads/priority.ts'

test.each([
  { had: 0, gets: 10 },
  { had: 10, gets: 10 },
  // As with Nice=19 in the unit: only root may raise a priority.
  { had: 19, gets: 19 },
])(
  'a thread or program of niceness $had that gives way has $gets, and its priority is never raised',
  ({ had, gets }) => {
    const present = new Map([0, 42].map((target) => [target, had]))
    const system: Priorities = {
      getPriority: (target) => present.get(target)!,
      setPriority(target, niceness) {
        if (niceness <= present.get(target)!) throw new Error('EACCES')
        present.set(target, niceness)
      },
    }
    giveWay(10, system)
    expect([...present.values()]).toEqual([gets, had])
    letGiveWay(42, 10, system)
    expect([...present.values()]).toEqual([gets, gets])
  },
)
