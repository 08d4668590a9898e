/** The questions for the reason of a session at a terminal. */
import { describe, expect, test } from 'vitest'
import { ReasonDialog } from '../../../../proxies/ssh/lobby/reason-dialog.ts'
import { MAX_REASON, type ReasonQuestion } from '../../../../src/contract/gate.ts'

const bytes = (text: string) => Buffer.from(text)
const QUESTION: ReasonQuestion = { target: 'root@local:srv1:ssh', comment: 'mandatory', ticket: 'mandatory' }

describe('the reason at a terminal', () => {
  test('comment and ticket, in one piece or in many, and those that are missing once more', () => {
    for (const pieces of [['\r \rdisk full\r\r#4711\r'], [...'\r \rdisk full\r\r#4711\r']]) {
      const dialog = new ReasonDialog(QUESTION)
      expect(dialog.start()).toBe(
        'sallyport: root@local:srv1:ssh asks for a comment and a ticket\r\nComment: ',
      )
      const steps = pieces.map((piece) => dialog.type(bytes(piece)))
      const shown = steps.map(({ show }) => show).join('')
      expect(shown.match(/the comment may not be empty/g)).toHaveLength(2)
      expect(shown.match(/the ticket may not be empty/g)).toHaveLength(1)
      expect(steps.at(-1)).toMatchObject({ reason: { comment: 'disk full', ticket: '#4711' } })
    }
  })

  test('optional fields may stay empty, and a time that is none is asked for again', () => {
    const dialog = new ReasonDialog({ ...QUESTION, comment: 'optional', ticket: 'none', asksDuration: true })
    const step = dialog.type(bytes('\rlong\r2h\r'))
    expect(step.show).toContain('expected a time')
    expect(step).toMatchObject({ reason: { comment: '', ticket: '', duration: 7_200 } })
  })

  test('a flaw of the last answer is shown instead of the wish, without control bytes', () => {
    expect(new ReasonDialog({ ...QUESTION, flaw: 'no \u001b[2Jsuch ticket' }).start()).toBe(
      'sallyport: no ?[2Jsuch ticket\r\nComment: ',
    )
  })

  test('control bytes are no part of it, and its length is bounded', () => {
    const dialog = new ReasonDialog({ ...QUESTION, ticket: 'none' })
    for (let n = 0; n < 50; n++) dialog.type(bytes(`\u001b[A\u0007\u202e${'x'.repeat(100)}`))
    const step = dialog.type(bytes('\r'))
    expect('reason' in step && step.reason.comment).toBe('x'.repeat(MAX_REASON + 1))
  })

  test.each(['\x03', '\x04'])('%j leaves', (key) => {
    expect(new ReasonDialog(QUESTION).type(bytes(key))).toMatchObject({ quit: true })
  })
})
