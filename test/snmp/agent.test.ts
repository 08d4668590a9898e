import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../src/model/secret.ts'
import { type Access, Agent, MAX_ANSWER, MAX_BOOTS } from '../../src/snmp/agent.ts'
import { type Oid, oid } from '../../src/snmp/oid.ts'
import { localizedKey, type UserKeys, userKeys } from '../../src/snmp/usm.ts'
import { gaugeValue, textValue } from '../../src/snmp/value.ts'
import { View } from '../../src/snmp/view.ts'
import {
  type Asked,
  BULK,
  communityRequest,
  GET,
  NEXT,
  pduOf,
  REPORT,
  RESPONSE,
  SET,
  saidBy,
  securedRequest,
} from './manager.ts'

const ENGINE = Buffer.from('80007ed9050102030405060708090a0b0c', 'hex')
const [BOOTS, TIME] = [12, 5000]
const keysOf = (priv: string, engine = ENGINE): UserKeys =>
  userKeys(
    {
      name: 'noc',
      auth: 'sha256',
      authPassword: Secret.of('auth-password-1'),
      priv: 'aes',
      privPassword: Secret.of(priv),
    },
    engine,
  )
const keys = keysOf('priv-password-1')
const view = new View([
  { name: oid('1.3.6.1.2.1.1.1'), instances: [[[0], textValue('Sallyport')]] },
  {
    name: oid('1.3.6.1.4.1.32473.1.2.2.1.2'),
    instances: Array.from({ length: 300 }, (_, i): [Oid, Buffer] => [[i + 1], gaugeValue(i)]),
  },
  { name: oid('1.3.6.1.4.1.32473.1.9.1'), instances: [] },
])
const usm = (number: number) => `1.3.6.1.6.3.15.1.1.${number}.0`

let time: number
let agent: Agent
const agentWith = (access: Access, boots = BOOTS) =>
  new Agent({
    engine: { id: ENGINE, boots },
    access,
    seconds: () => time,
    randomBytes: (count) => Buffer.alloc(count, 0xff),
  })
beforeEach(() => {
  time = TIME
  agent = agentWith({ community: Secret.of('figures-please'), user: keys })
})

const asked: Asked = { engineId: ENGINE, boots: BOOTS, time: TIME, user: 'noc', keys }
const SYSTEM = oid('1.3.6.1.2.1.1.1.0')

function ask(request: Buffer) {
  const { result, reply, respond } = agent.receive(request)
  const bytes = respond?.(view) ?? reply
  return { result, bytes, said: bytes && saidBy(bytes, keys) }
}
const v2c = (pdu: Buffer) => ask(communityRequest('figures-please', pdu))

describe('a key', () => {
  test('is the one that others make of a password', () => {
    // RFC 3414 A.3 has the password and the engine, with MD5 and SHA-1 only.
    const key = localizedKey(
      'sha256',
      Secret.of('maplesyrup'),
      Buffer.from('000000000000000000000002', 'hex'),
    )
    expect(key.reveal().toString('hex')).toBe(
      '8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b',
    )
  })
})

describe('version 2c', () => {
  test('has the exceptions of RFC 3416 for names without a value', () => {
    const { said } = v2c(
      pduOf(GET, [SYSTEM, oid('1.3.6.1.2.1.1.1'), oid('1.3.6.1.4.1.32473.1.9.1.0'), oid('1.3.6.1.9')]),
    )
    expect(said?.bindings.map(({ value }) => value)).toEqual([
      '040953616c6c79706f7274',
      '8100',
      '8100',
      '8000',
    ])
    expect(v2c(pduOf(NEXT, [oid('2.999')])).said?.bindings).toEqual([{ name: '2.999', value: '8200' }])
  })

  test('walks in the order of numbers', () => {
    const names: string[] = []
    for (let name: Oid = oid('0.0'); ; name = oid(names.at(-1)!)) {
      const [binding] = v2c(pduOf(NEXT, [name])).said!.bindings
      if (binding!.value === '8200') break
      names.push(binding!.name)
    }
    expect(names).toHaveLength(301)
    expect(names.slice(1).map((name) => Number(name.split('.').at(-1)))).toEqual(
      Array.from({ length: 300 }, (_, i) => i + 1),
    )
  })

  test('answers GETBULK within one packet, whatever is asked for', () => {
    const start = oid('1.3.6.1.4.1.32473')
    const { bytes, said } = v2c(pduOf(BULK, Array(100).fill(start), 0, 0x7fffffff))
    expect(bytes!.length).toBeLessThanOrEqual(MAX_ANSWER)
    expect(said?.status).toBe(0)
    expect(said!.bindings.length).toBeGreaterThan(20)
    expect(v2c(pduOf(BULK, [start], -5, -5)).said?.bindings).toEqual([])
    const some = v2c(pduOf(BULK, [SYSTEM, start], 1, 3)).said!.bindings
    expect(some.map(({ name }) => name.split('.').at(-1))).toEqual(['1', '1', '2', '3'])
  })

  test('says that a GET is too big', () => {
    const { bytes, said } = v2c(pduOf(GET, Array(100).fill(SYSTEM)))
    expect(said).toMatchObject({ status: 1, index: 0, bindings: [] })
    expect(bytes!.length).toBeLessThan(100)
  })

  test('lets nothing be set', () => {
    expect(v2c(pduOf(SET, [SYSTEM])).said).toMatchObject({ tag: RESPONSE, id: 7, status: 6, index: 1 })
  })

  test('does not answer what is no request, or has another community or version', () => {
    for (const type of [RESPONSE, REPORT, 0xa6, 0xa7])
      expect(v2c(pduOf(type, [SYSTEM])).bytes).toBeUndefined()
    expect(ask(communityRequest('figures-pleasf', pduOf(GET, [SYSTEM])))).toMatchObject({
      result: 'community',
    })
    expect(ask(communityRequest('', pduOf(GET, [SYSTEM])))).toMatchObject({ result: 'community' })
    expect(ask(communityRequest('figures-please', pduOf(GET, [SYSTEM]), 0))).toMatchObject({
      result: 'version',
    })
  })

  test('is off without a community, as version 3 is without a user', () => {
    agent = agentWith({ user: keys })
    expect(v2c(pduOf(GET, [SYSTEM]))).toMatchObject({ result: 'version', bytes: undefined })
    agent = agentWith({ community: Secret.of('figures-please') })
    expect(ask(securedRequest(pduOf(GET, [SYSTEM]), asked))).toMatchObject({
      result: 'version',
      bytes: undefined,
    })
  })
})

describe('version 3', () => {
  const get = (change: Partial<Asked> = {}) =>
    ask(securedRequest(pduOf(GET, [SYSTEM]), { ...asked, ...change }))

  test('signs and encrypts its answers, each with a salt of its own', () => {
    const [first, second] = [get(), get()]
    for (const { said } of [first, second]) {
      expect(said).toMatchObject({ tag: RESPONSE, id: 7, status: 0 })
      expect(said?.message).toMatchObject({
        isSigned: true,
        isEncrypted: true,
        isReportable: false,
        id: 4711,
      })
    }
    const salts = [first, second].map(({ said }) => {
      const { message } = said!
      return message.version === '3' && Buffer.from(message.salt).toString('hex')
    })
    expect(salts).toEqual(['0000000000000000', '0000000000000001'])
    expect(first.bytes!.includes('Sallyport')).toBe(false)
  })

  test('names itself to those that do not know it', () => {
    const { said } = get({ engineId: new Uint8Array(), user: '', keys: undefined as never })
    expect(said).toMatchObject({ tag: REPORT, id: 7, bindings: [{ name: usm(4) }] })
    expect(said?.message).toMatchObject({ isSigned: false, isEncrypted: false })
  })

  test('reports what is wrong, unsigned where the sender has proved nothing', () => {
    const reported = (change: Partial<Asked>) => {
      const { said, result } = get(change)
      expect(said?.tag).toBe(REPORT)
      return [result, said?.bindings[0]?.name, said?.message.version === '3' && said.message.isSigned]
    }
    expect(reported({ user: 'root' })).toEqual(['user', usm(3), false])
    expect(reported({ keys: undefined as never })).toEqual(['level', usm(1), false])
    expect(reported({ keys: keysOf('priv-password-1', Buffer.alloc(12)) })).toEqual(['digest', usm(5), false])
    expect(reported({ boots: BOOTS - 1 })).toEqual(['window', usm(2), true])
    expect(reported({ salt: new Uint8Array(7) })).toEqual(['decryption', usm(6), false])
    expect(reported({ contextEngineId: Buffer.alloc(12) })).toEqual([
      'handler',
      '1.3.6.1.6.3.11.2.1.3.0',
      true,
    ])
  })

  test('reports to no sender that wants no report', () => {
    expect(get({ user: 'root', flags: 3 })).toMatchObject({ result: 'user', bytes: undefined })
    expect(get({ boots: 1, flags: 3 })).toMatchObject({ result: 'window', bytes: undefined })
  })

  test('accepts a message within 150 seconds of its time, and no earlier or later run', () => {
    const request = securedRequest(pduOf(GET, [SYSTEM]), asked)
    for (const [now, result] of [
      [TIME + 150, 'answered'],
      [TIME + 151, 'window'],
      [TIME - 150, 'answered'],
      [TIME - 151, 'window'],
    ] as const) {
      time = now
      expect(ask(request).result, String(now - TIME)).toBe(result)
    }
    time = TIME
    agent = agentWith({ user: keys }, BOOTS + 1)
    expect(ask(request).result).toBe('window')
    agent = agentWith({ user: keys }, MAX_BOOTS)
    expect(get({ boots: MAX_BOOTS }).result).toBe('window')
  })

  test('changed in one bit is not signed', () => {
    const request = securedRequest(pduOf(GET, [SYSTEM]), asked)
    for (let at = request.length - 30; at < request.length; at++) {
      const changed = Buffer.from(request)
      changed[at]! ^= 1
      expect(agent.receive(changed)).toMatchObject({ result: 'digest' })
    }
  })

  test('keeps to the size that the sender accepts', () => {
    const { bytes, said } = ask(
      securedRequest(pduOf(BULK, [oid('1.3.6.1.4.1.32473')], 0, 64), { ...asked, maxSize: 484 }),
    )
    expect(bytes!.length).toBeLessThanOrEqual(484)
    expect(said!.bindings.length).toBeGreaterThan(3)
  })

  test.each([
    ['encryption without a digest', { flags: 6 }],
    ['another security model', { model: 2 }],
    ['an engine id that is too long', { engineId: Buffer.alloc(33) }],
  ])('drops %s', (_, change) => {
    expect(get(change)).toMatchObject({ result: 'malformed', bytes: undefined })
  })
})
