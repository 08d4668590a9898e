/** Attacks on sign-in by tickets over SSH. The attacker has the service's key here, and makes any ticket and any message. */
import { Buffer } from 'node:buffer'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { MAX_AUTH_TRIES } from '../../proxies/session/limits.ts'
import {
  buildGssapiMic,
  buildGssapiRequest,
  buildGssapiToken,
  GSSAPI,
  KERBEROS_OID,
  parseGssapiToken,
  signedGssapiData,
} from '../../proxies/ssh/codec/gssapi.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { MessageTokens } from '../../src/kerberos/message-tokens.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { firstToken, SERVICE_KEY, SESSION_KEY, type Shown } from '../kerberos/client.ts'
import { keytabOf } from '../kerberos/keytab.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import {
  AUTH,
  authRequest,
  connectToSignIn,
  interactiveAnswer,
  methodsOf,
  passwordRequest,
  type RawClient,
} from './raw.ts'
import { PEERS } from './setting.ts'

const SERVICE = ['host', 'bastion']
const KEY = { realm: 'LAB', version: 3, type: 18, key: SERVICE_KEY.bytes }

describeWithPeers('tickets over SSH', PEERS, () => {
  let bastion: Bastion
  let user: string
  const clients: RawClient[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    user = `alice@CORP:${bastion.account.name}@srv1`
    const { broker } = bastion
    const keytab = keytabOf([SERVICE, ['HTTP', 'bastion']].map((components) => ({ ...KEY, components })))
    await broker.must('POST', '/externalauths', {
      authentication_name: 'realm',
      type: 'KERBEROS',
      host: '127.0.0.1',
      port: await freePort(),
      kerberos: { realm: 'LAB', service_principal: 'host/bastion' },
      keytab: keytab.toString('base64'),
    })
    const domain = { domain_name: 'CORP', type: 'KERBEROS', external_auths: ['realm'] }
    await broker.must('POST', '/authdomains', domain)
    const mapping = { user_group: 'ops1-srv1-users', external_group: '*' }
    await broker.must('POST', '/authdomains/CORP/mappings', mapping)
    await until('tickets to be offered', async () => {
      const client = await arrive()
      client.send(authRequest(user, 'none'))
      return methodsOf(await client.next(AUTH.failure)).includes('gssapi-with-mic') || undefined
    })
  })
  afterAll(() => bastion.stop())
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy()
  })

  /** A new address for each, so that no test locks out another. */
  let lastAddress = 1
  async function arrive(): Promise<RawClient> {
    const client = await connectToSignIn({ port: bastion.broker.ports.ssh, from: `127.0.2.${++lastAddress}` })
    clients.push(client)
    return client
  }

  let micros = 0
  const tokenOf = (shown: Shown = {}) => {
    const now = Date.now()
    return firstToken({
      service: SERVICE,
      made: now,
      begin: now - 1000,
      end: now + 600_000,
      micros: ++micros,
      ...shown,
    })
  }
  const micOf = (data: Uint8Array) =>
    new MessageTokens({
      side: 'initiator',
      key: SESSION_KEY,
      isAcceptorKey: false,
      first: { own: 0, peer: 0 },
    }).sign(data)

  /** Sends a token, and returns the number of the answer. */
  async function shows(client: RawClient, token: Uint8Array, name = user): Promise<number> {
    client.send(buildGssapiRequest(name))
    await client.next(GSSAPI.response)
    client.send(buildGssapiToken(token))
    const [type] = await client.next(GSSAPI.token, AUTH.failure)
    return type!
  }
  async function signs(client: RawClient, mic: Uint8Array): Promise<number> {
    client.send(buildGssapiMic(mic))
    const [type] = await client.next(AUTH.success, AUTH.failure)
    return type!
  }
  const reasonOf = async (client: RawClient) =>
    await until(
      'the failure',
      async () => (await bastion.events('auth.failure')).find(client.isOf)?.['reason'],
    )

  test('the ticket and the signature over this connection sign in', async () => {
    const client = await arrive()
    client.send(buildGssapiRequest(user))
    const choice = await client.next(GSSAPI.response)
    expect(choice.subarray(5)).toEqual(KERBEROS_OID)
    client.send(buildGssapiToken(tokenOf()))
    expect(parseGssapiToken(await client.next(GSSAPI.token)).length).toBeGreaterThan(50)
    expect(await signs(client, micOf(signedGssapiData(client.sessionId, user)))).toBe(AUTH.success)
  })

  test('a signature over another connection, name or method, and a wrong one, are worth nothing', async () => {
    const other = await arrive()
    const named = (name: string) => (client: RawClient) => signedGssapiData(client.sessionId, name)
    const keyboard = (client: RawClient) =>
      new Writer().string(client.sessionId).raw(authRequest(user, 'gssapi-keyex')).finish()
    const forms: ((client: RawClient) => Uint8Array)[] = [
      () => signedGssapiData(other.sessionId, user),
      named('ops1'),
      keyboard,
      () => Buffer.alloc(0),
    ]
    for (const form of forms) {
      const client = await arrive()
      expect(await shows(client, tokenOf())).toBe(GSSAPI.token)
      expect(await signs(client, micOf(form(client)))).toBe(AUTH.failure)
      expect(await reasonOf(client)).toBe('bad_signature')
      // The context is used up.
      client.send(buildGssapiMic(micOf(signedGssapiData(client.sessionId, user))))
      client.send(authRequest(user, 'none'))
      expect(await client.next(AUTH.failure, AUTH.success).catch(() => [AUTH.failure])).toHaveProperty(
        '0',
        AUTH.failure,
      )
    }
  })

  test('a token that was shown is not taken again, wherever it comes from', async () => {
    const token = tokenOf()
    const [first, second] = [await arrive(), await arrive()]
    expect(await shows(first, token)).toBe(GSSAPI.token)
    expect(await shows(second, token)).toBe(AUTH.failure)
    expect(await reasonOf(second)).toBe('the ticket was shown before with the same proof')
  })

  test.each<[string, Shown, string | RegExp]>([
    ['of another realm', { realm: 'EVIL' }, 'no domain has a server of the realm EVIL'],
    [
      'of a client of another realm',
      { clientRealm: 'EVIL' },
      'a client of LAB was expected, got one of EVIL',
    ],
    [
      'for another service of the keytab',
      { service: ['HTTP', 'bastion'] },
      /^a ticket for host\/…@LAB was expected/,
    ],
    ['for another machine', { service: ['host', 'other'] }, /no such key/],
    ['of a service', { client: ['host', 'alice'] }, /whose name has one component/],
    [
      'by a clock that is ahead',
      { made: Date.now() + 4_000_000 },
      /clock is \d+ s ahead of ours: set both clocks/,
    ],
    ['that has expired', { end: Date.now() - 1_000_000 }, /has expired/],
    ['between users', { options: 1 << 30 }, 'tickets between users are not taken'],
  ])('a ticket %s is refused like any, and the audit log says why', async (_case, shown, reason) => {
    const client = await arrive()
    expect(await shows(client, tokenOf(shown))).toBe(AUTH.failure)
    expect(await reasonOf(client)).toMatch(reason)
  })

  test('the name in the login string has to be that of the ticket, however it is spelled', async () => {
    for (const name of ['ops1', 'bob@CORP', 'alice@OTHER', 'OTHER\\bob', 'alice@CORP@CORP', 'nobody']) {
      const login = `${name}:${bastion.account.name}@srv1`
      const client = await arrive()
      expect(await shows(client, tokenOf(), login)).toBe(GSSAPI.token)
      expect(await signs(client, micOf(signedGssapiData(client.sessionId, login)))).toBe(AUTH.failure)
      expect([name, await reasonOf(client)]).toEqual([name, 'other_name'])
    }
  })

  test('what comes out of order, or without the signature, is refused', async () => {
    const complete = new Writer().byte(GSSAPI.exchangeComplete).finish()
    const mic = buildGssapiMic(Buffer.alloc(28))
    const error = new Writer().byte(GSSAPI.errorToken).string('x').finish()
    for (const early of [complete, mic, error, new Writer().byte(62).finish()]) {
      const client = await arrive()
      client.send(buildGssapiRequest(user))
      await client.next(GSSAPI.response)
      client.send(early)
      expect((await client.next(AUTH.failure, AUTH.success))[0]).toBe(AUTH.failure)
    }
    for (const late of [complete, buildGssapiToken(tokenOf()), error]) {
      const client = await arrive()
      expect(await shows(client, tokenOf())).toBe(GSSAPI.token)
      client.send(late)
      expect((await client.next(AUTH.failure, AUTH.success))[0]).toBe(AUTH.failure)
    }
    // Before any request for the method.
    const client = await arrive()
    client.send(buildGssapiToken(tokenOf()), complete, mic)
    client.send(authRequest(user, 'none'))
    expect((await client.next(AUTH.failure, AUTH.success, GSSAPI.token))[0]).toBe(AUTH.failure)
  })

  test('another method in between ends the exchange, and its context is of no use any more', async () => {
    const client = await arrive()
    expect(await shows(client, tokenOf())).toBe(GSSAPI.token)
    client.send(passwordRequest(user, 'wrong'))
    await client.next(AUTH.failure)
    client.send(buildGssapiMic(micOf(signedGssapiData(client.sessionId, user))))
    client.send(interactiveAnswer('wrong'))
    await client.untilClosed()
    expect((await bastion.events('auth.success')).filter(client.isOf)).toEqual([])
  })

  test('long tokens, many mechanisms and many tries end the connection, and nothing else', async () => {
    const mechanisms = (count: number, size: number) =>
      authRequest(
        user,
        'gssapi-with-mic',
        Buffer.concat([
          new Writer().uint32(count).finish(),
          ...Array(Math.min(count, 64)).fill(new Writer().string(Buffer.alloc(size)).finish()),
        ]),
      )
    for (const request of [
      mechanisms(0xffffffff, 1),
      mechanisms(33, 1),
      mechanisms(1, 4000),
      authRequest(user, 'gssapi-with-mic'),
    ]) {
      const client = await arrive()
      client.send(request)
      await client.untilClosed()
    }
    const none = await arrive()
    none.send(mechanisms(2, 9))
    expect(methodsOf(await none.next(AUTH.failure))).toContain('gssapi-with-mic')
    const long = await arrive()
    expect(await shows(long, Buffer.alloc(34_000, 0x60))).toBe(AUTH.failure)
    const busy = await arrive()
    for (let i = 0; i < MAX_AUTH_TRIES; i++) expect(await shows(busy, Buffer.from('x'))).toBe(AUTH.failure)
    await busy.untilClosed()
  })

  test('a client that stops in the middle is cut off, and its context goes with it', async () => {
    const client = await arrive()
    expect(await shows(client, tokenOf())).toBe(GSSAPI.token)
    client.destroy()
    // The broker goes on.
    const next = await arrive()
    expect(await shows(next, tokenOf())).toBe(GSSAPI.token)
    expect(await signs(next, micOf(signedGssapiData(next.sessionId, user)))).toBe(AUTH.success)
  })
})
