/** The fields of a reason, and the texts that users type into them. */
import { describe, expect, test } from 'vitest'
import {
  flawOfField,
  howToAsk,
  isOptional,
  noticeText,
  reasonFields,
  reasonOf,
  wishOf,
} from '../../../proxies/wording/reason.ts'
import type { ReasonQuestion } from '../../../src/contract/gate.ts'

const QUESTION: ReasonQuestion = { target: 'root@local:srv1:ssh', comment: 'mandatory', ticket: 'optional' }

describe('the fields', () => {
  test('are those that the target asks for, with those marked that may stay empty', () => {
    expect(reasonFields(QUESTION).map(({ label }) => label)).toEqual(['Comment', 'Ticket (optional)'])
    const all = { ...QUESTION, ticket: 'mandatory', asksDuration: true } as const
    expect(reasonFields(all).map(({ field }) => field)).toEqual(['comment', 'ticket', 'duration'])
    expect(reasonFields({ ...QUESTION, comment: 'none', ticket: 'none' })).toEqual([])
  })

  test('a mandatory one may not be empty, nor only spaces', () => {
    for (const text of ['', '  \t'])
      expect(flawOfField(QUESTION, 'comment', text)).toBe('the comment may not be empty')
    expect(flawOfField(QUESTION, 'ticket', '')).toBeUndefined()
    expect([isOptional(QUESTION), isOptional({ ...QUESTION, comment: 'optional' })]).toEqual([false, true])
  })

  test.each([
    ['90', 5_400],
    ['45m', 2_700],
    ['2H', 7_200],
    ['1 d', 86_400],
    ['30s', 30],
    ['', undefined],
  ])('%s is %s seconds', (duration, seconds) => {
    expect(flawOfField(QUESTION, 'duration', duration)).toBeUndefined()
    expect(reasonOf({ comment: ' why ', duration }).duration).toBe(seconds)
  })

  test.each(['0', '-5', '2w', '1e9', 'for ever', '1234567'])('%s is no time', (text) => {
    expect(flawOfField(QUESTION, 'duration', text)).toContain('expected a time')
  })
})

test('words for those with a terminal and those without', () => {
  expect(wishOf(QUESTION)).toBe('root@local:srv1:ssh asks for a comment and a ticket')
  expect(howToAsk(QUESTION)).toContain(
    'sallyport approvals request root@local:srv1:ssh --comment COMMENT" or POST /approvals',
  )
})

test("an approver's words move no cursor, turn no text around, and are bounded", () => {
  expect(noticeText('rejected by boss: \u001b[2J\u202eno\u0007\n\nsecond\r\n')).toBe(
    'sallyport: rejected by boss: ?[2J?no?\r\nsallyport: second\r\n',
  )
  expect(noticeText('x'.repeat(1e6)).length).toBeLessThan(500)
  expect(noticeText('x\n'.repeat(1e5)).split('\r\n').length).toBeLessThan(30)
})
