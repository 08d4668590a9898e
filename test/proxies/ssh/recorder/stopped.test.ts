/** Whether a terminal that may have been stopped is released at its end. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { Stopped } from '../../../../proxies/ssh/recorder/stopped.ts'

test.each([
  ['nothing was typed while it was stopped', 'ls\r\x13', false],
  ['it was never stopped', 'ls\r\x11', false],
  ['a line was typed while it was stopped', '\x13ls\r', true],
  ['^Q was typed behind ^V', '\x13ls\r\x16\x11', true],
  ['^Q was typed behind ^V, and the line after it', '\x13\x16\x11ls\r', true],
  ['it was stopped once more', '\x13ls\r\x13', true],
  ['a line was ended by ^D', '\x13ls\x04\x04', true],
])('%s', (_, keys, isReleased) => {
  const stopped = new Stopped()
  stopped.typed(Buffer.from(keys))
  expect(stopped.release !== undefined).toBe(isReleased)
})
