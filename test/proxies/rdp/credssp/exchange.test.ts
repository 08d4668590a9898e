/** CredSSP from the first token to the password, and every error that ends it earlier. */

import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { bindingOf } from '../../../../proxies/rdp/credssp/binding.ts'
import { STATUS } from '../../../../proxies/rdp/credssp/status.ts'
import { buildTsRequest, parseTsRequest } from '../../../../proxies/rdp/credssp/ts-request.ts'
import { CredSspError } from '../../../../proxies/rdp/gss/errors.ts'
import { FLAG } from '../../../../proxies/rdp/ntlm/numbers.ts'
import {
  answer,
  BINDINGS,
  createClient,
  createServer,
  PASSWORD,
  type PairOptions,
  PUBLIC_KEY,
  talk,
} from './pair.ts'

const BOUND = { version: 6, publicKey: PUBLIC_KEY }
/** The AV pair by which a client announces a MIC. */
const SAYS_MIC = Buffer.from('0600040002000000', 'hex')

/** Returns the error that ends the exchange. */
function clientError(work: () => unknown): CredSspError {
  try {
    work()
  } catch (error) {
    if (error instanceof CredSspError) return error
    throw error
  }
  throw new Error('it went on')
}

describe.each([false, true])('SPNEGO: %s', (isSpnego) => {
  test.each([
    ['nothing to bind to', {}],
    ['the channel bindings of the connection', { clientBindings: BINDINGS }],
    ['zeros as channel bindings', { clientBindings: Buffer.alloc(16) }],
  ] satisfies [string, PairOptions][])('the right password, %s', (_title, options) => {
    const step = talk(createClient({ isSpnego, ...options }), createServer())
    expect(step.kind).toBe('done')
    if (step.kind !== 'done') return
    expect(step.credentials).toMatchObject({ domain: 'CORP', user: 'Alice' })
    expect(step.credentials.password.revealText()).toBe(PASSWORD)
  })

  test('a wrong password: the client is told by NTSTATUS', () => {
    const client = createClient({ isSpnego, password: 'other' })
    const error = clientError(() => {
      talk(client, createServer(), (message) => {
        expect(message.includes(Buffer.from('other', 'utf16le'))).toBe(false)
        return message
      })
      return undefined
    })
    expect(error).toMatchObject({ reason: 'password', status: STATUS.LOGON_FAILURE })
  })

  test('somebody in between with another key: the server sees it first', () => {
    const client = createClient({ isSpnego, clientKey: Buffer.alloc(40, 1) })
    const error = clientError(() => talk(client, createServer()))
    expect(error).toMatchObject({ reason: 'altered', status: STATUS.MESSAGE_ALTERED })
  })

  test('a server that lets the key pass: the client sees it, and no password goes out', () => {
    const sent: Buffer[] = []
    const error = clientError(() =>
      talk(createClient({ isSpnego }), createServer(), (message, from, number) => {
        if (from === 'client') sent.push(message)
        if (from === 'client' || number < 2) return message
        const request = parseTsRequest(message)
        const pubKeyAuth = Buffer.from(request.pubKeyAuth!)
        pubKeyAuth[pubKeyAuth.length - 1]! ^= 1
        return buildTsRequest({ ...request, pubKeyAuth })
      }),
    )
    expect(error).toMatchObject({ reason: 'altered', status: undefined })
    expect(sent.every((message) => parseTsRequest(message).authInfo === undefined)).toBe(true)
  })

  const OF_OTHERS: [string, (right: Uint8Array, nonce: Uint8Array) => Uint8Array][] = [
    ['another key', (_, nonce) => bindingOf('server', { ...BOUND, publicKey: Buffer.alloc(40, 1), nonce })],
    ['another exchange', () => bindingOf('server', { ...BOUND, nonce: Buffer.alloc(32, 1) })],
    ["the client's own words", (_, nonce) => bindingOf('client', { ...BOUND, nonce })],
    ['an older version', (_, nonce) => bindingOf('server', { ...BOUND, version: 4, nonce })],
    ['a part', (right) => right.subarray(1)],
    ['nothing', () => new Uint8Array(0)],
  ]

  test.each(OF_OTHERS)('a server that seals a proof of %s: no password goes out either', (_, forge) => {
    let nonce: Uint8Array = new Uint8Array(0)
    let handed = 0
    const exchange = (seal: (right: Uint8Array) => Uint8Array) =>
      talk(createClient({ isSpnego }), createServer({ seal }), (message) => {
        const request = parseTsRequest(message)
        nonce = request.clientNonce ?? nonce
        if (request.authInfo) handed++
        return message
      })
    expect(clientError(() => exchange((right) => forge(right, nonce)))).toMatchObject({ reason: 'altered' })
    expect(handed).toBe(0)
    expect(exchange((right) => right).kind).toBe('done')
    expect(handed).toBe(1)
  })

  test('channel bindings of another connection', () => {
    const client = createClient({ isSpnego, clientBindings: Buffer.alloc(16, 8) })
    expect(clientError(() => talk(client, createServer())).status).toBe(STATUS.MESSAGE_ALTERED)
  })

  test('any change of a token is noticed', () => {
    const places = [20, 30, 45, 60, 75, 90]
    for (const place of places) {
      let ended: unknown
      try {
        ended = talk(createClient({ isSpnego }), createServer(), (message, from, number) => {
          if (from === 'server' && number === 1) message[message.length - place]! ^= 0x10
          return message
        }).kind
      } catch (error) {
        ended = error
      }
      expect(ended).not.toBe('done')
    }
  })
})

describe('versions', () => {
  /** Changes a message to an older peer's version. */
  const older = (version: number) => (message: Buffer) => {
    const request = parseTsRequest(message)
    return buildTsRequest({
      ...request,
      version,
      clientNonce: version < 5 ? undefined : request.clientNonce,
    })
  }

  test.each([2, 3, 4, 5, 6])('%i where it is allowed', (version) => {
    const options = { minimumVersion: 2 }
    expect(talk(createClient(options), createServer(options), older(version)).kind).toBe('done')
  })

  test('a higher one is spoken as 6', () => {
    expect(talk(createClient(), createServer(), older(7)).kind).toBe('done')
  })

  test.each([2, 3, 4])('%i is refused by default on both sides', (version) => {
    const onServer = answer(createServer(), older(version)(createClient().start()))
    expect(onServer).toMatchObject({ kind: 'refused', error: { reason: 'weak' } })
    // Version 2 has no field for the error.
    expect('send' in onServer).toBe(version > 2)
    const challenge = answer(createServer(), createClient().start())
    if (challenge.kind !== 'more') throw new Error(challenge.kind)
    const client = createClient()
    client.start()
    expect(clientError(() => client.receive(older(version)(challenge.send!))).reason).toBe('weak')
  })

  test('one that changes', () => {
    const change = (message: Buffer, from: string, number: number): Buffer =>
      from === 'client' && number === 1 ? older(5)(message) : message
    expect(() => talk(createClient(), createServer(), change)).toThrow('version 6 was expected as before')
  })
})

describe('a target that', () => {
  const challenge = (): Buffer => {
    const step = answer(createServer(), createClient().start())
    if (step.kind !== 'more' || !step.send) throw new Error(step.kind)
    return step.send
  }

  test.each([
    [0xc0000071, 'password_expired'],
    [0xc0000072, 'disabled'],
    [0xc000006f, 'hours'],
    [0xc000015b, 'no_right'],
    [0xc0000193, 'account_expired'],
    [0xc0000224, 'password_must_change'],
    [0xc0000234, 'locked'],
    [0xc0000418, 'ntlm_off'],
    [0xc0000999, 'other'],
  ])('answers 0x%s is told apart', (status, reason) => {
    const client = createClient()
    client.start()
    const error = clientError(() => client.receive(buildTsRequest({ version: 6, errorCode: status })))
    expect(error).toMatchObject({ reason, status })
    expect(error.message).toContain(status.toString(16))
  })

  test('refuses after the credentials', () => {
    let client = createClient()
    const last = talk(client, createServer())
    expect(last.kind).toBe('done')
    const late = buildTsRequest({ version: 6, errorCode: 0xc0000224 })
    expect(clientError(() => client.receive(late)).reason).toBe('password_must_change')
    client = createClient()
    talk(client, createServer())
    expect(() => client.receive(buildTsRequest({ version: 6 }))).toThrow('no TSRequest was expected')
  })

  test('offers no sealing is not shown a proof', () => {
    for (const flag of [
      FLAG.SEAL,
      FLAG.SIGN,
      FLAG.EXTENDED_SESSION_SECURITY,
      FLAG.KEY_128,
      FLAG.KEY_EXCHANGE,
    ]) {
      const request = parseTsRequest(challenge())
      const token = Buffer.from(request.negoToken!)
      token.writeUInt32LE((token.readUInt32LE(20) & ~flag) >>> 0, 20)
      const client = createClient()
      client.start()
      const error = clientError(() => client.receive(buildTsRequest({ version: 6, negoToken: token })))
      expect(error.reason).toBe('weak')
    }
  })

  test('closes is asked why', () => {
    const client = createClient()
    client.start()
    expect(client.brokenOff.message).toContain('asked for NLA')
    client.receive(challenge())
    expect(client.brokenOff).toMatchObject({ reason: 'ended' })
    expect(client.brokenOff.message).toContain('password is wrong')
  })

  test.each([
    ['nothing', {}],
    ['only a public key', { pubKeyAuth: Buffer.alloc(48) }],
    ['an empty token', { negoToken: Buffer.alloc(0) }],
    ['its own NEGOTIATE', { negoToken: parseTsRequest(createClient().start()).negoToken }],
  ])('answers with %s', (_title, fields) => {
    const client = createClient()
    client.start()
    expect(() => client.receive(buildTsRequest({ version: 6, ...fields }))).toThrow(MalformedError)
  })
})

describe('a client that', () => {
  test('proves by NTLMv1, without a MIC, or with weaker keys', () => {
    const changes: [string, (token: Buffer) => void][] = [
      ['NTLMv1', (token) => token.writeUInt16LE(24, 20)],
      ['MIC', (token) => token.writeUInt32LE(64, 12 + 4)],
      // The MIC is present, and the data that the password signs does not announce it.
      ['MIC', (token) => token.writeUInt32LE(0, token.indexOf(SAYS_MIC) + 4)],
      ['protect', (token) => token.writeUInt32LE((token.readUInt32LE(60) & ~FLAG.SEAL) >>> 0, 60)],
      ['protect', (token) => token.writeUInt16LE(0, 52)],
    ]
    for (const [words, change] of changes) {
      const server = createServer()
      const client = createClient()
      const first = answer(server, client.start())
      if (first.kind !== 'more') throw new Error(first.kind)
      const request = parseTsRequest(client.receive(first.send!).send!)
      const token = Buffer.from(request.negoToken!)
      change(token)
      const step = answer(server, buildTsRequest({ ...request, negoToken: token }))
      expect(step).toMatchObject({ kind: 'refused', error: { reason: 'weak' } })
      if (step.kind === 'refused') expect(step.error.message).toContain(words)
    }
  })

  test('offers no sealing', () => {
    const request = parseTsRequest(createClient().start())
    const token = Buffer.from(request.negoToken!)
    token.writeUInt32LE((token.readUInt32LE(12) & ~FLAG.SEAL) >>> 0, 12)
    const step = answer(createServer(), buildTsRequest({ version: 6, negoToken: token }))
    expect(step).toMatchObject({ kind: 'refused', error: { reason: 'weak' } })
  })

  test('sends its token and its public key one after the other', () => {
    const server = createServer()
    const client = createClient()
    const first = answer(server, client.start())
    if (first.kind !== 'more') throw new Error(first.kind)
    const { negoToken, pubKeyAuth, clientNonce } = parseTsRequest(client.receive(first.send!).send!)
    expect(answer(server, buildTsRequest({ version: 6, negoToken }))).toEqual({ kind: 'more' })
    const bound = answer(server, buildTsRequest({ version: 6, pubKeyAuth, clientNonce }))
    if (bound.kind !== 'more') throw new Error(bound.kind)
    expect(answer(server, client.receive(bound.send!).send!).kind).toBe('done')
  })

  test('gets a status of its own while nobody can sign in', () => {
    const server = createServer()
    const client = createClient()
    const first = answer(server, client.start())
    if (first.kind !== 'more') throw new Error(first.kind)
    expect(server.receive(client.receive(first.send!).send!).kind).toBe('judge')
    const refused = server.unjudged()
    if (refused.kind !== 'refused') throw new Error(refused.kind)
    expect(parseTsRequest(refused.send!).errorCode).toBe(STATUS.NO_LOGON_SERVERS)
  })

  test('sends no nonce, a short one, or goes on while it is judged', () => {
    const upTo = (): {
      server: ReturnType<typeof createServer>
      request: ReturnType<typeof parseTsRequest>
    } => {
      const server = createServer()
      const client = createClient()
      const first = answer(server, client.start())
      if (first.kind !== 'more') throw new Error(first.kind)
      return { server, request: parseTsRequest(client.receive(first.send!).send!) }
    }
    const without = upTo()
    expect(() =>
      answer(without.server, buildTsRequest({ ...without.request, clientNonce: undefined })),
    ).toThrow('a nonce was expected')
    const short = upTo()
    expect(() =>
      answer(short.server, buildTsRequest({ ...short.request, clientNonce: Buffer.alloc(31) })),
    ).toThrow('a nonce of 32 bytes')
    const hasty = upTo()
    expect(hasty.server.receive(buildTsRequest(hasty.request)).kind).toBe('judge')
    expect(() => hasty.server.receive(buildTsRequest(hasty.request))).toThrow('no TSRequest was expected now')
  })
})
