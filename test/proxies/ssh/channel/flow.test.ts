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

  test('small widenings are granted together, and at once to a sender that has little left', () => {
    const flow = new Flow(MAX_WINDOW, 0)
    flow.grant()
    for (let grants = 0, n = 1; n <= 20; n++) {
      expect(flow.received(100_000)).toBe(true)
      flow.forwarded(100_000)
      flow.widen(100_000)
      if (flow.grant(flow.refill) > 0) grants++
      expect(grants).toBe(Math.floor(n / 3))
    }
    const short = new Flow(1000, 0)
    short.grant()
    short.received(1000)
    short.forwarded(1000)
    short.widen(1)
    expect(short.grant(short.refill)).toBe(1)
  })

  test('a sender is never left without credit while the receiver has room', () => {
    const step = fc.record({ send: fc.integer({ min: 1, max: 40_000 }), widen: fc.nat(40_000) })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 22 }),
        fc.array(step, { maxLength: 200 }),
        (window, steps) => {
          const flow = new Flow(window, 0)
          flow.grant()
          for (const { send, widen } of steps) {
            const sent = Math.min(send, flow.credit)
            flow.received(sent)
            flow.forwarded(sent)
            flow.grant(flow.step)
            flow.widen(widen)
            flow.grant(flow.refill)
            expect(flow.credit).toBeGreaterThanOrEqual(Math.min(1, flow.room))
          }
        },
      ),
    )
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
