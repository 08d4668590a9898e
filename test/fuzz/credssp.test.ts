/**
 * CredSSP, SPNEGO, NTLM and certificates from peers that send anything: only the known errors, and never a
 * sign-in.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { parseInit, parseResponse } from '../../proxies/bytes/spnego.ts'
import { channelBindings, subjectPublicKey } from '../../proxies/rdp/credssp/certificate.ts'
import type { ServerStep } from '../../proxies/rdp/credssp/server.ts'
import { buildTsRequest, parseTsRequest, TsRequestSplitter } from '../../proxies/rdp/credssp/ts-request.ts'
import { CredSspError } from '../../proxies/rdp/gss/errors.ts'
import { parseAvPairs } from '../../proxies/rdp/ntlm/av-pairs.ts'
import { parseAuthenticate, parseChallenge, parseNegotiate } from '../../proxies/rdp/ntlm/messages.ts'
import { createIdentity } from '../proxies/rdp/credssp/connections.ts'
import { createClient, createServer, judge, talk } from '../proxies/rdp/credssp/pair.ts'
import { cut } from '../proxies/stream-events.ts'

/** Returns all messages of both sides in one exchange. */
function said(isSpnego: boolean): Buffer[] {
  const messages: Buffer[] = []
  talk(createClient({ isSpnego }), createServer(), (message) => {
    messages.push(Buffer.from(message))
    return message
  })
  return messages
}

const MESSAGES = [...said(false), ...said(true)]
const TOKENS = MESSAGES.map((message) => parseTsRequest(message).negoToken).filter(
  (token) => token !== undefined,
)

/** Damage on the way: some bytes are changed, some are missing, some are new. */
const damage = fc.array(
  fc.record({ at: fc.nat(1_000), drop: fc.nat(3), put: fc.uint8Array({ maxLength: 4 }) }),
  { minLength: 1, maxLength: 4 },
)
type Damage = typeof damage extends fc.Arbitrary<infer Kind> ? Kind : never

function damaged(bytes: Uint8Array, changes: Damage): Buffer {
  let result = Buffer.from(bytes)
  for (const { at, drop, put } of changes) {
    const place = at % (result.length + 1)
    result = Buffer.concat([result.subarray(0, place), put, result.subarray(place + drop)])
  }
  return result
}

const anything = (known: readonly Uint8Array[]): fc.Arbitrary<Buffer> =>
  fc.oneof(
    fc.tuple(fc.constantFrom(...known), damage).map(([bytes, changes]) => damaged(bytes, changes)),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  )

/** Whether it threw one of the known errors. */
function isRefused(work: () => unknown): boolean {
  try {
    work()
    return false
  } catch (error) {
    if (error instanceof MalformedError || error instanceof CredSspError) return true
    throw error
  }
}

describe('parsers', () => {
  test.each([
    ['TSRequest', MESSAGES, parseTsRequest],
    ['NegTokenInit', TOKENS, parseInit],
    ['NegTokenResp', TOKENS, parseResponse],
    ['NEGOTIATE', TOKENS, parseNegotiate],
    ['CHALLENGE', TOKENS, parseChallenge],
    ['AUTHENTICATE', TOKENS, parseAuthenticate],
    ['AV_PAIRs', TOKENS, parseAvPairs],
  ] satisfies [string, readonly Uint8Array[], (bytes: Uint8Array) => unknown][])(
    '%s',
    (_name, known, parse) => {
      fc.assert(
        fc.property(anything(known), (bytes) => {
          isRefused(() => parse(bytes))
        }),
        { numRuns: 2_000 },
      )
    },
  )

  test('certificates', async () => {
    const pem = (await createIdentity()).cert
    const certificate = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')
    fc.assert(
      fc.property(anything([certificate]), (bytes) => {
        isRefused(() => subjectPublicKey(bytes))
        isRefused(() => channelBindings(bytes))
      }),
      { numRuns: 1_000 },
    )
  })

  test('a stream is cut alike wherever its chunks end', () => {
    const stream = Buffer.concat(MESSAGES)
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), (ends) => {
        const splitter = new TsRequestSplitter()
        const found: Buffer[] = []
        for (const chunk of cut(stream, ends)) {
          splitter.add(chunk)
          for (let message = splitter.next(); message; message = splitter.next()) found.push(message)
        }
        expect(found).toEqual(MESSAGES)
      }),
      { numRuns: 100 },
    )
  })
})

describe('machines', () => {
  test('damage at any place ends in no sign-in, or changes nothing that counts', () => {
    let ended = 0
    fc.assert(
      fc.property(fc.boolean(), fc.nat(5), damage, (isSpnego, which, changes) => {
        let number = 0
        let step: ServerStep | undefined
        const refused = isRefused(() => {
          step = talk(createClient({ isSpnego }), createServer(), (message) =>
            number++ === which ? damaged(message, changes) : message,
          )
        })
        if (refused || step?.kind !== 'done') ended += 1
        else expect(step.credentials.user).toBe('Alice')
      }),
      { numRuns: 1_500 },
    )
    expect(ended).toBeGreaterThan(500)
  })

  test('a client that does not know the password comes in by nothing that it sends', () => {
    fc.assert(
      fc.property(fc.array(anything(MESSAGES), { maxLength: 6 }), (messages) => {
        const server = createServer()
        isRefused(() => {
          for (const message of messages) {
            let step = server.receive(message)
            // The password is unknown: the record of another exchange is no proof in this one.
            if (step.kind === 'judge') step = server.judged(undefined)
            expect(step.kind).not.toBe('done')
            if (step.kind === 'refused') return
          }
        })
      }),
      { numRuns: 1_000 },
    )
  })

  test('a target that knows nothing gets no credentials by anything that it sends', () => {
    fc.assert(
      fc.property(fc.array(anything(MESSAGES), { maxLength: 6 }), (messages) => {
        const client = createClient({ password: 'another one' })
        client.start()
        isRefused(() => {
          for (const message of messages) expect(client.receive(message).isDone).toBe(false)
        })
      }),
      { numRuns: 1_000 },
    )
  })

  test('judging takes any proof', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.uint8Array({ maxLength: 60 }), (user, domain, response) => {
        const proof = { user, domain, serverChallenge: Buffer.alloc(8), response }
        expect(judge(proof)).toBeUndefined()
      }),
    )
  })

  test('tokens of any kind inside of whole messages', () => {
    fc.assert(
      fc.property(anything(TOKENS), anything(TOKENS), (first, second) => {
        const server = createServer()
        isRefused(() => {
          for (const negoToken of [first, second]) {
            const step = server.receive(buildTsRequest({ version: 6, negoToken }))
            if (step.kind === 'judge') server.judged(Buffer.alloc(16))
          }
        })
      }),
      { numRuns: 2_000 },
    )
  })
})
