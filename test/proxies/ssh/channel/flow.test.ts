import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Flow } from '../../../../proxies/ssh/channel/flow.ts'
import { MAX_WINDOW } from '../../../../proxies/ssh/channel/limits.ts'

describe('the window of one direction', () => {
  test('the sender gets what the receiver has, up to the limit', () => {
    const flow = new Flow(1000, 0)
    expect(flow.grant()).toBe(1000)
    expect(flow.grant()).toBe(0)
    expect(new Flow(2 ** 30, 0).grant()).toBe(MAX_WINDOW)
  })

  test('more than was granted is a breach', () => {
    const flow = new Flow(1000, 0)
    flow.grant()
    expect(flow.received(1001)).toBe(false)
    expect(flow.received(1000)).toBe(true)
    expect(flow.received(1)).toBe(false)
  })

  test('a sum over 2^32-1 is a breach (RFC 4254 5.2)', () => {
    const flow = new Flow(0xffff_ffff, 0)
    expect(flow.widen(1)).toBe(false)
    expect(new Flow(0xffff_fffe, 0).widen(1)).toBe(true)
  })

  test('a window over the limit does not cost a grant for every message', () => {
    const flow = new Flow(2 ** 30, 0)
    flow.grant()
    expect(flow.received(1000)).toBe(true)
    flow.forwarded(1000)
    expect(flow.grant(MAX_WINDOW / 2)).toBe(0)
  })

  test('what was granted and not yet used never exceeds window or limit, and nothing is lost', () => {
    const step = fc.oneof(
      fc.record({ send: fc.integer({ min: 1, max: 40_000 }) }),
      fc.record({ widen: fc.integer({ min: 1, max: 4 * MAX_WINDOW }) }),
    )
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 31 }),
        fc.array(step, { maxLength: 200 }),
        (window, steps) => {
          const flow = new Flow(window, 0)
          let granted = flow.grant()
          let sent = 0
          let allowed = window
          for (const one of steps) {
            if ('send' in one) {
              if (flow.received(one.send)) {
                flow.forwarded(one.send)
                sent += one.send
              } else expect(sent + one.send).toBeGreaterThan(granted)
            } else if (flow.widen(one.widen)) allowed += one.widen
            granted += flow.grant()
            expect(flow.credit).toBe(granted - sent)
            expect(flow.credit).toBe(Math.min(MAX_WINDOW, allowed - sent))
            expect(flow.window).toBe(allowed - sent)
          }
        },
      ),
    )
  })
})
