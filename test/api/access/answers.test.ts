/** Long answers: how many at a time, and the end of a client that does not read. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LongAnswers, sendList } from '../../../src/api/access/answers.ts'
import {
  ANSWER_STALL,
  ANSWER_TIME,
  LONG_ANSWERS_KEPT,
  MAX_LONG_ANSWERS,
  MAX_LONG_ANSWERS_OF_HOLDER,
} from '../../../src/api/http/limits.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Requests an endless list for a user; `sent` is the answer's stream. */
function ask(answers: LongAnswers, user: string) {
  const state: { isGivenUp: boolean; isCut: boolean; sent: unknown } = {
    isGivenUp: false,
    isCut: false,
    sent: undefined,
  }
  async function* pieces() {
    try {
      for (;;) yield Array<object>(50).fill({ text: 'x'.repeat(1000) })
    } finally {
      state.isGivenUp = true
    }
  }
  const socket = {
    destroyed: false,
    destroy() {
      state.isCut = true
      if (state.sent instanceof Readable) state.sent.destroy()
    },
  }
  const request = { method: 'GET', caller: { user: { id: user }, rights: {} }, raw: { socket } }
  const reply = {
    header: () => reply,
    type: () => reply,
    send(payload: unknown) {
      state.sent = payload
      return reply
    },
  }
  const done = sendList(
    answers,
    request as unknown as FastifyRequest,
    reply as unknown as FastifyReply,
    { items: [], total: 1, pieces: pieces() },
    (some) => some,
  )
  return { state, done, take: async () => (state.sent as Readable).read() as unknown }
}

describe('a long answer', () => {
  it('is cut off when its client takes nothing for a while, and what it reads from is given up', async () => {
    const { state, done } = ask(new LongAnswers(), 'a')
    await done
    expect(state.sent).toBeInstanceOf(Readable)
    await vi.advanceTimersByTimeAsync(ANSWER_STALL - 1)
    expect(state.isCut).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await settled()
    expect([state.isCut, state.isGivenUp]).toEqual([true, true])
  })

  it('is cut off at last when its client takes a little now and then', async () => {
    const { state, done, take } = ask(new LongAnswers(), 'a')
    await done
    for (let past = 0; past < ANSWER_TIME; past += ANSWER_STALL / 2) {
      expect(state.isCut).toBe(false)
      await take()
      await settled()
      await vi.advanceTimersByTimeAsync(ANSWER_STALL / 2)
      await settled()
    }
    await settled()
    expect([state.isCut, state.isGivenUp]).toEqual([true, true])
  })

  it('waits for one of the same user when there are many, and for nobody else’s', async () => {
    const answers = new LongAnswers()
    const own = Array.from({ length: MAX_LONG_ANSWERS_OF_HOLDER }, () => ask(answers, 'a'))
    await Promise.all(own.map(({ done }) => done))
    const [next, other] = [ask(answers, 'a'), ask(answers, 'b')]
    await other.done
    await settled()
    expect(next.state.sent).toBeUndefined()
    ;(own[0]!.state.sent as Readable).destroy()
    await next.done
    expect(next.state.sent).toBeInstanceOf(Readable)
    for (const one of [...own, next, other]) (one.state.sent as Readable).destroy()
  })

  const of = (ids: string[], isAdministrator = false) => ({ ids, isAdministrator })

  it('is its API key’s too, for whomever that acts, and begins when one of the key’s ends', async () => {
    const answers = new LongAnswers()
    const ends: (() => void)[] = []
    for (let n = 0; n < MAX_LONG_ANSWERS_OF_HOLDER; n++)
      ends.push(await answers.begin(of([`user ${n % 6}`, 'key k'])))
    const begun: string[] = []
    for (const user of ['user 6', 'user 7'])
      void answers.begin(of([user, 'key k'])).then(() => begun.push(user))
    await answers.begin(of(['user 6']))
    await settled()
    expect(begun).toEqual([])
    ends[0]!()
    ends[0]!()
    await settled()
    expect(begun).toEqual(['user 6'])
    ends[1]!()
    await settled()
    expect(begun).toEqual(['user 6', 'user 7'])
  })

  it('finds places kept when it is an administrator’s, and others find none in the end', async () => {
    const answers = new LongAnswers()
    const ends: (() => void)[] = []
    for (let n = 0; n < MAX_LONG_ANSWERS - LONG_ANSWERS_KEPT; n++)
      ends.push(await answers.begin(of([`user ${n}`])))
    await expect(answers.begin(of(['user a']))).rejects.toThrow()
    for (let n = 0; n < LONG_ANSWERS_KEPT; n++) await answers.begin(of(['user root'], true))
    await expect(answers.begin(of(['user boss'], true))).rejects.toThrow()
    ends[0]!()
    await answers.begin(of(['user a']))
  })
})
