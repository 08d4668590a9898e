import { Buffer } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { MethodAnswer } from '../../../src/identity/methods/method.ts'
import { RadiusMethod, type RadiusSettings } from '../../../src/identity/methods/radius/method.ts'
import type { RadiusOptions } from '../../../src/model/external-auths.ts'
import { Secret } from '../../../src/model/secret.ts'
import { type FreeRadius, RADIUS_SECRET, startFreeRadius } from '../../peers/freeradius.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
})

const failures: string[] = []
interface Made {
  options?: Partial<RadiusOptions>
  secret?: string
  attributes?: RadiusSettings['attributes']
  host?: string
  timeoutMs?: number
}
function methodOf(ports: readonly number[], made: Made = {}): RadiusMethod {
  failures.length = 0
  const method = new RadiusMethod({
    auth: {
      id: '1',
      authenticationName: 'codes',
      description: '',
      secretNames: ['shared_secret'],
      secretRevision: 1,
      type: 'RADIUS',
      servers: ports.map((port) => ({ host: made.host ?? '127.0.0.1', port })),
      timeoutMs: made.timeoutMs ?? 5000,
      options: { requireMessageAuthenticator: true, tries: 3, ...made.options },
    },
    attributes: made.attributes ?? {},
    secrets: { sharedSecret: Secret.of(made.secret ?? RADIUS_SECRET) },
    now: Date.now,
    onFailure: (_server, error) => failures.push(error.message),
  })
  open.push(method)
  return method
}

const ATTEMPT = { userName: 'alice', source: '192.0.2.7', attempt: 'c1' }
const signal = new AbortController().signal
const prove = (method: RadiusMethod, password = 'Älice-Pass1', userName = 'alice') =>
  method.prove({ ...ATTEMPT, userName }, Secret.of(password), signal)
const answer = (method: RadiusMethod, challenge: MethodAnswer, text: string, userName = 'otto') => {
  if (challenge.result !== 'challenge') throw new Error(`expected a challenge, got ${challenge.result}`)
  return method.answer({ ...ATTEMPT, userName }, challenge.state, [Secret.of(text)], signal)
}
const REJECTED = { result: 'rejected', reason: 'wrong_password' }

describe('FreeRADIUS', () => {
  let signing: FreeRadius
  let old: FreeRadius
  let ipv6: FreeRadius
  beforeAll(async () => {
    ;[signing, old, ipv6] = await Promise.all([
      startFreeRadius({ host: '127.0.0.1', signsReplies: true }),
      startFreeRadius({ host: '127.0.0.1', signsReplies: false }),
      startFreeRadius({ host: '::1', signsReplies: true }),
    ])
  })
  afterAll(() => Promise.all([signing, old, ipv6].map((server) => server?.stop())))

  test('a password is proved, and groups are read', async () => {
    const method = methodOf([signing.port])
    const person = { userName: 'alice', groups: ['netops', 'dba, senior'] }
    expect(await prove(method)).toMatchObject({ result: 'accepted', person })
    expect(await prove(method, 'wrong')).toEqual(REJECTED)
    expect(await prove(method, 'wrong', 'nemo')).toEqual(REJECTED)
    expect(failures).toEqual([])
  })

  test.each([
    ['Class', ['class-1']],
    ['11', ['netops', 'dba, senior']],
    ['9:1', ['shell:roles=net']],
    ['9:2', []],
  ])('groups are read from %s', async (group, groups) => {
    const method = methodOf([signing.port], { attributes: { group } })
    expect(await prove(method)).toMatchObject({ person: { groups } })
  })

  test('passwords of 128 octets are sent, longer ones are not', async () => {
    const method = methodOf([signing.port])
    expect(await prove(method, 'p'.repeat(128), 'long')).toMatchObject({ result: 'accepted' })
    expect(await prove(method, 'p'.repeat(129), 'long')).toEqual(REJECTED)
  })

  test('an accept to another service lets no one in', async () => {
    const method = methodOf([signing.port])
    expect(await prove(method, 'Framed-Pass1', 'framed')).toEqual({
      result: 'rejected',
      reason: 'not_allowed',
    })
    expect(failures.join()).toContain('Service-Type Login (1), got 2')
  })

  test('challenges are answered, round by round', async () => {
    const method = methodOf([signing.port])
    const first = await prove(method, 'Otto-Pass1', 'otto')
    expect(first).toMatchObject({
      message: 'A code was sent.',
      prompts: [{ text: 'Your code: ', echo: false }],
    })
    const second = await answer(method, first, '123456')
    expect(second).toMatchObject({ message: '', prompts: [{ text: 'Next code: ', echo: true }] })
    expect(await answer(method, second, '654321')).toMatchObject({
      result: 'accepted',
      person: { groups: [] },
    })
    expect(await answer(method, second, '654321')).toMatchObject({ result: 'unavailable' })
    const again = await prove(method, 'Otto-Pass1', 'otto')
    expect(await answer(method, again, '123456', 'alice')).toEqual(REJECTED)
    expect(await answer(method, await prove(method, 'Otto-Pass1', 'otto'), '000000')).toEqual(REJECTED)
  })

  test('a server that signs no replies is believed only if told so', async () => {
    const strict = methodOf([old.port], { timeoutMs: 700 })
    expect(await prove(strict)).toMatchObject({
      result: 'unavailable',
      reason: expect.stringContaining('no Message-Authenticator'),
    })
    const lax = methodOf([old.port], { options: { requireMessageAuthenticator: false } })
    expect(await prove(lax)).toMatchObject({ result: 'accepted' })
    expect(await prove(lax, 'wrong')).toEqual(REJECTED)
  })

  test('another shared secret is no wrong password', async () => {
    const wrong = methodOf([signing.port], { secret: 'other', timeoutMs: 500 })
    expect(await prove(wrong)).toMatchObject({ result: 'unavailable' })
  })

  test('a server at an IPv6 address is asked', async () => {
    expect(await prove(methodOf([ipv6.port], { host: '::1' }))).toMatchObject({ result: 'accepted' })
  })

  test('300 sign-ins at a time are told apart', async () => {
    const method = methodOf([signing.port], { timeoutMs: 20_000 })
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, at) => prove(method, at % 3 === 0 ? 'wrong' : undefined)),
    )
    expect(answers.map(({ result }) => result)).toEqual(
      answers.map((_, at) => (at % 3 === 0 ? 'rejected' : 'accepted')),
    )
  })

  test('an administrator sees each step', async () => {
    const method = methodOf([signing.port])
    const steps = await method.test({ userName: 'alice', password: Secret.of('Älice-Pass1') }, signal)
    expect(steps.map(({ step, ok }) => [step, ok])).toEqual([
      ['reached', true],
      ['answered', true],
      ['signed_in', true],
      ['groups', true],
    ])
    expect((await method.test({}, signal)).map(({ step, ok }) => [step, ok])).toEqual([
      ['reached', true],
      ['answered', true],
    ])
    const refused = await method.test({ userName: 'alice', password: Secret.of('wrong') }, signal)
    expect(refused.at(-1)).toMatchObject({ step: 'signed_in', ok: false })
    expect(JSON.stringify([steps, refused])).not.toMatch(/Pass1|lab-secret/)
  })
})

type Lie = (request: Buffer, reply: (datagram: Buffer) => void, nth: number) => void
async function liar(lie: Lie): Promise<{ port: number; requests: Buffer[] }> {
  const socket: Socket = createSocket('udp4')
  const requests: Buffer[] = []
  socket.on('message', (request: Buffer, { port, address }: RemoteInfo) => {
    requests.push(request)
    lie(request, (datagram) => socket.send(datagram, port, address), requests.length)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  open.push(socket)
  return { port: socket.address().port, requests }
}

interface Shape {
  code?: number
  id?: number
  attributes?: Buffer
  secret?: string
  sign?: boolean | 'wrong'
}
function replyTo(
  request: Buffer,
  { code = 2, id, attributes = Buffer.alloc(0), secret = RADIUS_SECRET, sign = true }: Shape,
) {
  const signature = sign ? Buffer.concat([Buffer.from([80, 18]), Buffer.alloc(16)]) : Buffer.alloc(0)
  const packet = Buffer.concat([Buffer.alloc(20), signature, attributes])
  packet[0] = code
  packet[1] = id ?? request[1]!
  packet.writeUInt16BE(packet.length, 2)
  request.copy(packet, 4, 4, 20)
  if (sign) createHmac('md5', secret).update(packet).digest().copy(packet, 22)
  if (sign === 'wrong') packet[22]! ^= 1
  createHash('md5').update(packet).update(secret).digest().copy(packet, 4)
  return packet
}
const attribute = (type: number, value: Buffer) =>
  Buffer.concat([Buffer.from([type, value.length + 2]), value])

describe('a lying server', () => {
  test.each<[string, Shape]>([
    ['another secret', { secret: 'forged' }],
    ['a wrong Message-Authenticator', { sign: 'wrong' }],
    ['no Message-Authenticator', { sign: false }],
    ['two Message-Authenticators', { attributes: attribute(80, Buffer.alloc(16)) }],
    ['a short Message-Authenticator', { sign: false, attributes: attribute(80, Buffer.alloc(4)) }],
    ['an attribute beyond the end', { attributes: Buffer.from([11, 200, 65]) }],
    ['an attribute without length', { attributes: Buffer.from([11, 0]) }],
  ])('is not believed with %s, and its true answer is', async (_, shape) => {
    const server = await liar((request, reply) => {
      reply(replyTo(request, shape))
      reply(replyTo(request, { code: 3 }))
    })
    expect(await prove(methodOf([server.port]))).toEqual(REJECTED)
    expect(server.requests).toHaveLength(1)
  })

  test('drops replies to other requests, floods and rubbish', async () => {
    const server = await liar((request, reply) => {
      // More would fill the socket's buffer, and only the next sending would be answered.
      for (let at = 1; at < 100; at++) reply(replyTo(request, { id: (request[1]! + at) % 256 }))
      for (let size = 0; size < 30; size++) reply(Buffer.alloc(size, 2))
      reply(replyTo(request, { code: 3 }))
    })
    expect(await prove(methodOf([server.port]))).toEqual(REJECTED)
  })

  test('a lost request is sent again as it was; a new one has another authenticator', async () => {
    const server = await liar((request, reply, nth) => {
      if (nth === 2 || nth === 3) reply(replyTo(request, { code: 3 }))
    })
    const method = methodOf([server.port], { timeoutMs: 1400 })
    expect(await prove(method)).toEqual(REJECTED)
    expect(await prove(method)).toEqual(REJECTED)
    const [first, second, third] = server.requests
    expect(second).toEqual(first)
    expect(third?.subarray(4, 20)).not.toEqual(first?.subarray(4, 20))
    expect(first?.subarray(20, 22)).toEqual(Buffer.from([80, 18]))
  })

  test('one that is silent costs its time once, and the next one is asked', async () => {
    const silent = await liar(() => undefined)
    const works = await liar((request, reply) => reply(replyTo(request, { code: 3 })))
    const method = methodOf([silent.port, works.port], { timeoutMs: 300, options: { tries: 2 } })
    expect(await prove(method)).toEqual(REJECTED)
    expect(await prove(method)).toEqual(REJECTED)
    expect(silent.requests).toHaveLength(2)
    expect(failures).toHaveLength(1)
    expect(failures[0]).toContain('no answer within 300 ms, to 2 requests')
  })

  test('challenges end after 16 rounds, and words cannot control a terminal', async () => {
    const server = await liar((request, reply) =>
      reply(
        replyTo(request, {
          code: 11,
          attributes: Buffer.concat([
            attribute(24, Buffer.alloc(253, 1)),
            attribute(18, Buffer.from('\x1b[2Jcode')),
          ]),
        }),
      ),
    )
    const method = methodOf([server.port])
    let last = await prove(method, 'x', 'otto')
    expect(last).toMatchObject({ prompts: [{ text: ' [2Jcode ' }] })
    let rounds = 0
    while (last.result === 'challenge') {
      rounds++
      last = await answer(method, last, 'x')
    }
    expect(rounds).toBe(16)
    expect(last).toMatchObject({ result: 'unavailable', reason: expect.stringContaining('more than 16') })
  })

  test('a sign-in that is given up, or a method that is closed, ends at once', async () => {
    const server = await liar(() => undefined)
    const method = methodOf([server.port], { timeoutMs: 60_000 })
    const abort = new AbortController()
    const given = method.prove(ATTEMPT, Secret.of('x'), abort.signal)
    abort.abort()
    expect(await given).toMatchObject({ result: 'unavailable' })
    expect(await prove(method, '', 'alice')).toEqual(REJECTED)
    const closed = prove(method, 'x')
    setTimeout(() => void method.close(), 50)
    expect(await closed).toMatchObject({ result: 'unavailable' })
  })
})
