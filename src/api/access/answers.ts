/**
 * Long answers, written while they are read: only a piece or two is held in memory, however long the answer
 * and however slow its client. A client that does not read is disconnected, and the number of long answers at
 * a time is limited for each user and API key.
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

/** Number of objects whose names are looked up together. */
const TOGETHER = 50

/**
 * Long answers in progress. Each user and API key has a limited number; one more waits for one of theirs to
 * end. Some places are reserved for administrators.
 */
export class LongAnswers {
  readonly #byHolder = new Map<string, number>()
  #waiting: { holder: Holder; go: () => void }[] = []
  #count = 0
  /** Places held by callers that are not administrators. */
  #common = 0

  /**
   * Takes a place and resolves with the function that releases it.
   * @throws ApiError `busy` if all places are taken
   */
  async begin(holder: Holder): Promise<() => void> {
    if (this.#hasOwnPlace(holder)) {
      if (!this.#hasPlace(holder)) throw new ApiError('busy')
      this.#add(holder, 1)
    } else {
      // The place comes from an answer that ends.
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

  /** Gives free places to those that have waited longest. */
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

/** Sends a list; `show` converts some objects at a time. A short list is sent as a whole, with its length. */
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
    // No client reads it.
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

/**
 * Streams the texts as they come; an empty one is sent by nothing, and shows that there will be more. An error before the
 * first text is the answer; after it the client is disconnected.
 */
export async function sendLines(
  answers: LongAnswers,
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  texts: AsyncGenerator<string, undefined>,
): Promise<FastifyReply> {
  const end = await answers.begin(holderOf(callerOf(request)))
  let isSent = false
  try {
    reply.type(type)
    // No client reads it.
    if (request.method === 'HEAD' || request.raw.socket.destroyed) return reply.send(Readable.from([]))
    const first = await texts.next()
    const stream = paced(request, [first.value ?? ''], texts)
    stream.once('close', end)
    isSent = true
    return reply.send(stream)
  } finally {
    if (!isSent) {
      end()
      await texts.return(undefined)
    }
  }
}

/**
 * Sends a text that is made once and requested often: whole, or, if it is long, in pieces of one shared
 * buffer.
 */
export function sendText(reply: FastifyReply, text: Buffer): FastifyReply {
  if (text.length <= PIECE_LENGTH) return reply.send(text)
  reply.header('content-length', text.length)
  return reply.send(Readable.from(slicesOf(text), { objectMode: false }))
}

function* slicesOf(text: Buffer): Generator<Buffer> {
  for (let at = 0; at < text.length; at += PIECE_LENGTH) yield text.subarray(at, at + PIECE_LENGTH)
}

/** Yields a JSON array in pieces of about `PIECE_LENGTH`, in turns with other work. */
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

/**
 * Streams the texts as fast as the client reads; disconnects a client that reads nothing for a while, or that
 * takes too long in all.
 */
function paced(
  request: FastifyRequest,
  begun: readonly string[],
  rest: AsyncGenerator<string, undefined>,
): Readable {
  const cut = () => request.raw.socket.destroy()
  const whole = setTimeout(cut, ANSWER_TIME)
  let stall = setTimeout(cut, ANSWER_STALL)
  /** The client has read all pieces so far. */
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
    // Also if the client gave up before the end.
    void rest.return(undefined).catch(() => undefined)
  })
}
