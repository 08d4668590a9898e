/**
 * `Idempotency-Key` on the creation of objects (draft-ietf-httpapi-idempotency-key-header): a client that
 * repeats a request because the answer was lost gets the first answer, and nothing is made twice. Failures
 * are not kept, since nothing was made: the same key may try again.
 */
import { Buffer } from 'node:buffer'
import { setTimeout } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ulid } from 'ulid'
import type { KeptAnswer } from '../../store/store.ts'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import {
  IDEMPOTENCY_CLAIM,
  IDEMPOTENCY_LIFETIME,
  IDEMPOTENCY_LOOK,
  MAX_IDEMPOTENCY_ANSWER,
  MAX_IDEMPOTENCY_KEYS,
} from '../http/limits.ts'

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
  // Requests of this process wait in memory, and only the first of them asks for the claim.
  return context.turns.run(`idempotency ${key.toString('base64')}`, async () => {
    const since = clock() - IDEMPOTENCY_LIFETIME
    const claim = ulid()
    const known = await claimOrKnown(context, key, claim, since)
    if (known && !asked.equals(known.request)) throw new ApiError('idempotency_key_reused')
    if (known) {
      reply.code(known.status).header('idempotency-replayed', 'true').type('application/json; charset=utf-8')
      if (known.location !== undefined) reply.header('location', known.location)
      const { etag, body } = JSON.parse(known.answer) as Pick<Made, 'etag' | 'body'>
      return reply.header('etag', etag).send(body)
    }
    const logged = (error: unknown) => request.log.error({ err: error }, 'an answer could not be kept')
    const made = await make().catch(async (error: unknown) => {
      await store.idempotency.release(key, claim).catch(logged)
      throw error
    })
    const { body, etag, once } = made
    const kept = Object.entries(body).filter(([field]) => !once.includes(field))
    const answer = JSON.stringify({ etag, body: Object.fromEntries(kept) })
    const row = { request: asked, time: clock(), status: 201, location: body.url, answer }
    const isKept = answer.length <= MAX_IDEMPOTENCY_ANSWER
    // The object is made, so the answer must be a success.
    await (isKept
      ? store.idempotency.keep(key, claim, row, since, MAX_IDEMPOTENCY_KEYS)
      : store.idempotency.release(key, claim)
    ).catch(logged)
    return reply.code(201).headers({ location: body.url, etag }).send(body)
  })
}

/**
 * Claims the key for a request that is to do the work, or returns the answer of the one that has done it. Waits
 * while another process is at work.
 */
async function claimOrKnown(
  { deps }: Context,
  key: Uint8Array,
  claim: string,
  since: number,
): Promise<KeptAnswer | undefined> {
  const { store, clock } = deps
  for (;;) {
    const known = await store.idempotency.find(key, since)
    if (known) return known
    const now = clock()
    if (await store.idempotency.claim(key, claim, now, now + IDEMPOTENCY_CLAIM)) break
    await setTimeout(IDEMPOTENCY_LOOK)
  }
  // Another process may have ended its work between the two looks above.
  const known = await store.idempotency.find(key, since)
  if (known) await store.idempotency.release(key, claim)
  return known
}

/**
 * Separates callers, so that none gets another's answers, nor a key those of the user in whose name it acts.
 */
function whose(request: FastifyRequest): string {
  const caller = callerOf(request)
  return `${caller.key?.id ?? ''} ${caller.user?.id ?? ''}`
}
