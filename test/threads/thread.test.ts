/** The broker's threads: started on demand, replaced when they have died. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Questions } from '../../src/threads/questions.ts'
import { Thread } from '../../src/threads/thread.ts'

type Ask = { id: number; text: string } | 'close'
type Answer = { id: number; text: string }

/** Returns each text in capitals; dies on `die`, throws on `throw`, and ends by itself on `close`. */
const PROGRAM = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, workerData } from 'node:worker_threads'
    parentPort.on('message', (ask) => {
      if (ask === 'close') parentPort.close()
      else if (ask.text === 'die') process.exit(3)
      else if (ask.text === 'throw') throw new Error('it is broken')
      else parentPort.postMessage({ id: ask.id, text: workerData + ask.text.toUpperCase() })
    })`)}`,
)

let questions: Questions<string>
let thread: Thread<Ask, Answer>
let lost: string[]
let starts: number

beforeEach(() => {
  questions = new Questions()
  lost = []
  starts = 0
  thread = new Thread<Ask, Answer>('capitals', {
    program: PROGRAM,
    workerData: () => `${++starts}:`,
    onAnswer: ({ id, text }) => questions.answer(id, text),
    onLost: (error) => {
      lost.push(error.message)
      questions.failAll(error)
    },
  })
})
afterEach(() => thread.destroy())

const ask = (text: string): Promise<string> => questions.ask((id) => thread.post({ id, text }))

describe('a thread', () => {
  test('starts with the first message, and answers each question with its own answer', async () => {
    expect(thread.run).toBeUndefined()
    expect(await Promise.all([ask('a'), ask('b')])).toEqual(['1:A', '1:B'])
    expect([thread.run, questions.size, lost]).toEqual([1, 0, []])
  })

  test.each([
    ['exits', 'die', 'the capitals thread has ended'],
    ['throws', 'throw', 'it is broken'],
  ])(
    'that %s fails the open questions, once, and the next one gets another thread',
    async (_, text, reason) => {
      const first = await ask('a')
      const answers = await Promise.allSettled([ask(text), ask('b')])
      expect(answers.map((answer) => answer.status === 'rejected' && answer.reason.message)).toEqual([
        reason,
        reason,
      ])
      expect([first, await ask('c')]).toEqual(['1:A', '2:C'])
      expect([thread.run, lost]).toEqual([2, [reason]])
    },
  )

  test('that is closed completes the questions before', async () => {
    const open = ask('a')
    await thread.close('close')
    expect(await open).toBe('1:A')
    expect(thread.run).toBeUndefined()
  })

  test('that is destroyed fails the open questions', async () => {
    const open = ask('a')
    await Promise.all([thread.destroy(), expect(open).rejects.toThrow('the capitals thread has ended')])
    expect(await ask('b')).toBe('2:B')
  })

  test('that is destroyed is not heard any more, whatever it has answered', async () => {
    const heard: number[] = []
    const other = new Thread<Ask, Answer>('capitals', {
      program: PROGRAM,
      workerData: () => '',
      onAnswer: ({ id }) => heard.push(id),
    })
    other.post({ id: 1, text: 'a' })
    await vi.waitFor(() => expect(heard).toEqual([1]))
    other.post({ id: 2, text: 'a' })
    // The answer is there before this thread can read it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    await other.destroy()
    other.post({ id: 100, text: 'a' })
    await vi.waitFor(() => expect(heard).toContain(100))
    expect(heard).toEqual([1, 100])
    await other.destroy()
  })

  test('that cannot be sent to leaves no open question', async () => {
    const unsent = questions.ask(() => {
      throw new Error('no thread could be started')
    })
    await expect(unsent).rejects.toThrow('no thread could be started')
    expect(questions.size).toBe(0)
  })

  test('that does not run gets no message by send, and nothing to close', async () => {
    thread.send({ id: 0, text: 'a' })
    await thread.close('close')
    await thread.destroy()
    expect([starts, lost]).toEqual([0, []])
  })
})
