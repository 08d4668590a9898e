/**
 * Long answers, written as they are read: what is held of one is a piece or two, however long it is and however slowly
 * its client reads. Somebody who does not read is cut off, and nobody has more than so many of them at a time.
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { jsonText } from '../../model/json-text.ts'
import type { Listed } from '../../store/store.ts'
import { addTo, type Holder } from '../http/connections.ts'
import { ApiError } from '../http/errors.ts'
import {
  ANSWER_STALL,
  ANSWER_TIME,
  LONG_ANSWERS_KEPT,
  MAX_LONG_ANSWERS,
  MAX_LONG_ANSWERS_OF_HOLDER,
  PIECE_LENGTH,
} from '../http/limits.ts'
import { Turns } from '../http/pauses.ts'
import { callerOf, holderOf } from './caller.ts'

/** Objects whose names are looked up together. */
const TOGETHER = 50

/**
 * Long answers that are under way: so many of each user and API key, one more than that waits for one of theirs to end.
 * A part of the places is kept for those who administrate.
 */
export class LongAnswers {
  readonly #byHolder = new Map<string, number>()
  #waiting: { holder: Holder; go: () => void }[] = []
  #count = 0
  /** Of those who do not administrate. */
  #common = 0

  /** Resolves with what ends it. @throws ApiError `busy` when others have all that there may be */
  async begin(holder: Holder): Promise<() => void> {
    if (this.#hasOwnPlace(holder)) {
      if (!this.#hasPlace(holder)) throw new ApiError('busy')
      this.#add(holder, 1)
    } else {
      // whoever ends hands its place over
      await new Promise<void>((go) => this.#waiting.push({ holder, go }))
    }
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#add(holder, -1)
      this.#handOver()
    }
  }

  /** To those who have waited longest, and may go on. */
  #handOver(): void {
    this.#waiting = this.#waiting.filter(({ holder, go }) => {
      if (!this.#hasOwnPlace(holder) || !this.#hasPlace(holder)) return true
      this.#add(holder, 1)
      go()
      return false
    })
  }

  #hasOwnPlace({ ids }: Holder): boolean {
    return ids.every((id) => (this.#byHolder.get(id) ?? 0) < MAX_LONG_ANSWERS_OF_HOLDER)
  }

  #hasPlace({ isAdministrator }: Holder): boolean {
    if (MAX_LONG_ANSWERS <= this.#count) return false
    return isAdministrator || this.#common < MAX_LONG_ANSWERS - LONG_ANSWERS_KEPT
  }

  #add({ ids, isAdministrator }: Holder, more: 1 | -1): void {
    this.#count += more
    if (!isAdministrator) this.#common += more
    for (const id of ids) addTo(this.#byHolder, id, more)
  }
}

/**
 * Answers with a list, of which `show` makes what is shown, for some objects at a time. A short one is sent as a whole,
 * with its length.
 */
export async function sendList<T>(
  answers: LongAnswers,
  request: FastifyRequest,
  reply: FastifyReply,
  { items, total, pieces }: Listed<T>,
  show: (objects: readonly T[]) => Promise<readonly object[]> | readonly object[],
): Promise<FastifyReply> {
  const holder = holderOf(callerOf(request))
  let end: (() => void) | undefined
  const begin = async () => {
    end ??= await answers.begin(holder)
  }
  const texts = jsonPieces(pieces ?? [items], show)
  reply.header('x-total-count', total).type('application/json; charset=utf-8')
  try {
    if (pieces) await begin()
    const first = await texts.next()
    const second = await texts.next()
    if (second.done) return reply.send(first.value ?? '')
    // nobody reads it
    if (request.method === 'HEAD' || request.raw.socket.destroyed) return reply.send(Readable.from([]))
    await begin()
    const stream = paced(request, [first.value ?? '', second.value], texts)
    stream.once('close', end ?? (() => undefined))
    end = undefined
    return reply.send(stream)
  } finally {
    if (end) {
      end()
      await texts.return(undefined)
    }
  }
}

/** A text that is made once and asked for often, whole or, when it is long, in pieces of one buffer that all share. */
export function sendText(reply: FastifyReply, text: Buffer): FastifyReply {
  if (text.length <= PIECE_LENGTH) return reply.send(text)
  reply.header('content-length', text.length)
  return reply.send(Readable.from(slicesOf(text), { objectMode: false }))
}

function* slicesOf(text: Buffer): Generator<Buffer> {
  for (let at = 0; at < text.length; at += PIECE_LENGTH) yield text.subarray(at, at + PIECE_LENGTH)
}

/** A JSON array in pieces of about `PIECE_LENGTH`, made in turns with others' work. */
async function* jsonPieces<T>(
  all: AsyncIterable<readonly T[]> | Iterable<readonly T[]>,
  show: (objects: readonly T[]) => Promise<readonly object[]> | readonly object[],
): AsyncGenerator<string, undefined> {
  const turns = new Turns()
  let text = '['
  let isFirst = true
  for await (const objects of all) {
    for (let at = 0; at < objects.length; at += TOGETHER) {
      for (const one of await show(objects.slice(at, at + TOGETHER))) {
        text += isFirst ? jsonText(one) : `,${jsonText(one)}`
        isFirst = false
        await turns.next()
        if (text.length < PIECE_LENGTH) continue
        yield text
        text = ''
      }
    }
  }
  yield `${text}]`
  return undefined
}

/** The texts as the client takes them; one that takes nothing for a while, or for too long in all, is cut off. */
function paced(
  request: FastifyRequest,
  begun: readonly string[],
  rest: AsyncGenerator<string, undefined>,
): Readable {
  const cut = () => request.raw.socket.destroy()
  const whole = setTimeout(cut, ANSWER_TIME)
  let stall = setTimeout(cut, ANSWER_STALL)
  /** The client has taken what was there. */
  const taken = () => {
    clearTimeout(stall)
    stall = setTimeout(cut, ANSWER_STALL)
  }
  async function* texts(): AsyncGenerator<string> {
    for (const text of begun) {
      yield text
      taken()
    }
    for await (const text of rest) {
      yield text
      taken()
    }
  }
  return Readable.from(texts()).once('close', () => {
    clearTimeout(whole)
    clearTimeout(stall)
    // when it was given up before it was read to its end
    void rest.return(undefined).catch(() => undefined)
  })
}
