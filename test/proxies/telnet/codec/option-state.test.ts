import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Answer, OptionState } from '../../../../proxies/telnet/codec/option-state.ts'

type Step = ['ask' | 'received', boolean, Answer]

/** RFC 1143 section 7, each row of its tables. */
describe('the Q method', () => {
  const on: Step[] = [['received', true, true]]
  const wantNo: Step[] = [...on, ['ask', false, false]]
  const wantNoOpposite: Step[] = [...wantNo, ['ask', true, undefined]]
  const wantYes: Step[] = [['ask', true, true]]
  const wantYesOpposite: Step[] = [...wantYes, ['ask', false, undefined]]

  test.each<[string, Step[], boolean]>([
    ['NO, positive', on, true],
    ['NO, negative', [['received', false, undefined]], false],
    ['NO, ask off', [['ask', false, undefined]], false],
    ['YES, positive', [...on, ['received', true, undefined]], true],
    ['YES, negative', [...on, ['received', false, false]], false],
    ['YES, ask on', [...on, ['ask', true, undefined]], true],
    ['WANTNO, negative', [...wantNo, ['received', false, undefined]], false],
    ['WANTNO, positive: an error', [...wantNo, ['received', true, undefined]], false],
    [
      'WANTNO OPPOSITE, negative',
      [...wantNoOpposite, ['received', false, true], ['received', true, undefined]],
      true,
    ],
    ['WANTNO OPPOSITE, positive: an error', [...wantNoOpposite, ['received', true, undefined]], true],
    [
      'WANTNO OPPOSITE, ask off',
      [...wantNoOpposite, ['ask', false, undefined], ['received', false, undefined]],
      false,
    ],
    ['WANTYES, positive', [...wantYes, ['received', true, undefined]], true],
    ['WANTYES, negative', [...wantYes, ['received', false, undefined]], false],
    [
      'WANTYES OPPOSITE, positive',
      [...wantYesOpposite, ['received', true, false], ['received', false, undefined]],
      false,
    ],
    ['WANTYES OPPOSITE, negative', [...wantYesOpposite, ['received', false, undefined]], false],
    [
      'WANTYES OPPOSITE, ask on',
      [...wantYesOpposite, ['ask', true, undefined], ['received', true, undefined]],
      true,
    ],
  ])('%s', (_, steps, isOn) => {
    const state = new OptionState()
    for (const [what, value, answer] of steps) expect(state[what](value)).toBe(answer)
    expect(state.isOn).toBe(isOn)
  })
})

test('two ends that change their wishes at any time come to rest, and agree', () => {
  /** A request of one end, or the arrival of a message on the way to it. */
  const event = fc.record({ end: fc.nat(1), wish: fc.option(fc.boolean()) })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const ends = [new OptionState(), new OptionState()]
      const onTheWay: boolean[][] = [[], []]
      let sent = 0
      const say = (from: number, answer: Answer) => {
        if (answer === undefined) return
        onTheWay[1 - from]!.push(answer)
        sent += 1
      }
      const arrive = (at: number) => {
        const message = onTheWay[at]!.shift()
        if (message !== undefined) say(at, ends[at]!.received(message))
      }
      for (const { end, wish } of events) {
        if (wish === null) arrive(end)
        else say(end, ends[end]!.ask(wish))
      }
      while (onTheWay.some((queue) => queue.length > 0)) {
        expect(sent).toBeLessThan(200)
        arrive(0)
        arrive(1)
      }
      expect(ends[0]!.isOn).toBe(ends[1]!.isOn)
    }),
    { numRuns: 5_000 },
  )
})
