/**
 * `Idempotency-Key` on the creation of objects (draft-ietf-httpapi-idempotency-key-header): a client that
 * repeats a request because the answer was lost gets the first answer, and nothing is made twice. Failures
 * are not kept, since nothing was made: the same key may try again.
 */
import { Buffer } from 'node:buffer'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { IDEMPOTENCY_LIFETIME, MAX_IDEMPOTENCY_ANSWER, MAX_IDEMPOTENCY_KEYS } from '../http/limits.ts'

const HEADER = 'idempotency-key'
const KEY = /^[\x21-\x7e]{1,255}$/

export const idempotencyKey = Type.Object({
  [HEADER]: Type.Optional(
    Type.String({
      description:
        'any text of the client, 255 characters at most: a repetition within 24 hours gets the first answer, with `Idempotency-Replayed: true`, and makes nothing',
    }),
  ),
})

/** Answer to a request that made an object. */
export interface Made {
  body: { url: string }
  etag: string
  /** Fields that are shown only once: a repetition omits them. */
  once: readonly string[]
}

/** Makes the object and returns 201, or repeats the first answer. @throws ApiError */
export async function madeOnce(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  make: () => Promise<Made>,
): Promise<FastifyReply> {
  const text = request.headers[HEADER]
  if (text === undefined) {
    const { body, etag } = await make()
    return reply.code(201).headers({ location: body.url, etag }).send(body)
  }
  if (typeof text !== 'string' || !KEY.test(text))
    throw fieldError('invalid_field', 'Idempotency-Key', 'expected 1 to 255 printable characters')
  const { store, vault, clock } = context.deps
  // Bodies contain secrets: with a plain hash, a stolen database would allow guessing them.
  const digest = (parts: readonly unknown[]) =>
    Buffer.from(vault.fingerprint('idempotency', JSON.stringify(parts)))
  const key = digest([whose(request), request.method, request.url, text])
  const asked = digest([request.body])
  return context.turns.run(`idempotency ${key.toString('base64')}`, async () => {
    const since = clock() - IDEMPOTENCY_LIFETIME
    const known = await store.idempotency.find(key, since)
    if (known && !asked.equals(known.request)) throw new ApiError('idempotency_key_reused')
    if (known) {
      reply.code(known.status).header('idempotency-replayed', 'true').type('application/json; charset=utf-8')
      if (known.location !== undefined) reply.header('location', known.location)
      const { etag, body } = JSON.parse(known.answer) as Pick<Made, 'etag' | 'body'>
      return reply.header('etag', etag).send(body)
    }
    const { body, etag, once } = await make()
    const kept = Object.entries(body).filter(([field]) => !once.includes(field))
    const answer = JSON.stringify({ etag, body: Object.fromEntries(kept) })
    if (answer.length <= MAX_IDEMPOTENCY_ANSWER) {
      const row = { request: asked, time: clock(), status: 201, location: body.url, answer }
      await store.idempotency
        .keep(key, row, since, MAX_IDEMPOTENCY_KEYS)
        // The object is made, so the answer must be a success.
        .catch((error: unknown) => request.log.error({ err: error }, 'an answer could not be kept'))
    }
    return reply.code(201).headers({ location: body.url, etag }).send(body)
  })
}

/**
 * Separates callers, so that none gets another's answers, nor a key those of the user in whose name it acts.
 */
function whose(request: FastifyRequest): string {
  const caller = callerOf(request)
  return `${caller.key?.id ?? ''} ${caller.user?.id ?? ''}`
}
