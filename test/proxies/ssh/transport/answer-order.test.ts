import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AnswerOrder } from '../../../../proxies/ssh/transport/answer-order.ts'

test('answers leave in the order of the requests, whoever gives them and however late', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('own', 'other', 'answer')), (steps) => {
      const order = new AnswerOrder()
      const sent: number[] = []
      const waiting: number[] = []
      let asked = 0
      const flush = (messages: Buffer[]) => sent.push(...messages.map((message) => message.readUInt32BE()))
      for (const step of steps) {
        if (step === 'own') {
          const message = Buffer.alloc(4)
          message.writeUInt32BE(asked++)
          flush(order.answer(message))
        } else if (step === 'other') {
          waiting.push(asked++)
          expect(order.expect(1_000_000)).toBe(true)
        } else if (waiting.length > 0) {
          sent.push(waiting.shift()!)
          flush(order.answered())
        }
      }
      while (waiting.length > 0) {
        sent.push(waiting.shift()!)
        flush(order.answered())
      }
      expect(sent).toEqual(Array.from({ length: asked }, (_, index) => index))
    }),
  )
})

test('more than may be open is said', () => {
  const order = new AnswerOrder()
  expect([1, 2, 3].map(() => order.expect(2))).toEqual([true, true, false])
})
