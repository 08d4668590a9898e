import { expect, test } from 'vitest'
import { giveWay } from '../../src/threads/priority.ts'

test.each([
  { had: 0, gets: 10 },
  { had: 10, gets: 10 },
  // As with Nice=19 in the unit: only root may raise a priority.
  { had: 19, gets: 19 },
])(
  'a thread of niceness $had that gives way has $gets, and its priority is never raised',
  ({ had, gets }) => {
    let present = had
    giveWay(10, {
      getPriority: () => present,
      setPriority(thread, niceness) {
        expect(thread).toBe(0)
        if (niceness <= present) throw new Error('EACCES')
        present = niceness
      },
    })
    expect(present).toBe(gets)
  },
)
