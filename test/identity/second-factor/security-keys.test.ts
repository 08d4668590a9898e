import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MAX_KEY_ANSWER, MAX_KEYS, SecurityKeys } from '../../../src/identity/second-factor/security-keys.ts'
import type { Id } from '../../../src/model/objects.ts'
import { type Lies, SoftwareKey } from '../../peers/software-key.ts'
import { newUser } from '../../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../../store/temp.ts'

const SITE = 'https://bastion.example.com'
const silent = async () => {}

let temp: TemporaryStore
let keys: SecurityKeys
let [kim, lee]: Id[] = []
let key: SoftwareKey

beforeEach(async () => {
  temp = await temporaryStore()
  keys = new SecurityKeys({ store: temp.store, site: SITE, now: () => 5 })
  ;[kim, lee] = [
    (await temp.store.users.create(newUser('kim'))).id,
    (await temp.store.users.create(newUser('lee'))).id,
  ]
  key = new SoftwareKey(SITE)
})
afterEach(() => temp.remove())

async function add(userId: Id, made: SoftwareKey, lies: Lies = {}) {
  const begun = { ...(await keys.creation({ id: userId, userName: 'x' })), name: 'a key' }
  return await keys.add(userId, begun, made.create(begun, lies), silent)
}
async function use(userId: Id, made: SoftwareKey, lies: Lies = {}) {
  const request = (await keys.request(userId))!
  return await keys.judge(userId, request, made.get(request, lies))
}

const DEFECTS: [string, Lies][] = [
  ['another origin', { origin: 'https://evil.example.com' }],
  ['the origin without TLS', { origin: 'http://bastion.example.com' }],
  ['another port', { origin: `${SITE}:8443` }],
  ['another host name', { rpId: 'evil.example.com' }],
  ['the domain above', { rpId: 'example.com' }],
  ['another challenge', { challenge: 'AAAA' }],
  ['another type', { type: 'payment.get' }],
  ['no touch', { flags: 0x40 }],
]

describe('adding a key', () => {
  it.each(DEFECTS)('is refused with %s', async (_name, lies) => {
    expect(await add(kim!, key, lies)).toBe('wrong')
    expect(await keys.list(kim!)).toEqual([])
  })

  it.each([
    '',
    '{}',
    'null',
    '[1]',
    '{"id":"AA","response":null}',
    '{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}',
    `{"id":"${'A'.repeat(MAX_KEY_ANSWER)}","response":{}}`,
  ])('is refused for the answer %.40s', async (answer) => {
    const begun = { ...(await keys.creation({ id: kim!, userName: 'kim' })), name: 'a key' }
    expect(await keys.add(kim!, begun, answer, silent)).toBe('wrong')
  })

  it('has its event first, and is nothing without', async () => {
    const begun = { ...(await keys.creation({ id: kim!, userName: 'kim' })), name: 'a key' }
    const failing = keys.add(kim!, begun, key.create(begun), () => Promise.reject(new Error('no audit')))
    await expect(failing).rejects.toThrow('no audit')
    expect(await keys.list(kim!)).toEqual([])
  })

  it('counts once for all users, is bounded in number and in the length of its id', async () => {
    expect(await add(kim!, key)).toBe('added')
    expect(await add(kim!, key)).toBe('known')
    expect(await add(lee!, key)).toBe('known')
    expect(await add(kim!, new SoftwareKey(SITE, Buffer.alloc(1024, 1)))).toBe('wrong')
    for (let more = 1; more < MAX_KEYS; more++) expect(await add(kim!, new SoftwareKey(SITE))).toBe('added')
    expect(await add(kim!, new SoftwareKey(SITE))).toBe('too_many')
  })
})

describe('the answer of a key', () => {
  beforeEach(async () => {
    expect(await add(kim!, key)).toBe('added')
  })

  it('is accepted, and its count noted', async () => {
    expect(await use(kim!, key)).toBeUndefined()
    expect(await keys.list(kim!)).toMatchObject([{ name: 'a key', signCount: 2, lastUse: 5 }])
  })

  it.each([
    ...DEFECTS.slice(0, -1),
    ['no touch', { flags: 0 }],
    ['a forged signature', { isForged: true }],
    ['the type of a new key', { type: 'webauthn.create' }],
  ] as [string, Lies][])('is refused with %s', async (_name, lies) => {
    expect(await use(kim!, key, lies)).toBe('wrong_security_key')
  })

  it('is refused for a challenge of before, another user, and a key that is not there', async () => {
    const earlier = (await keys.request(kim!))!
    const answer = key.get(earlier)
    expect(await keys.judge(kim!, (await keys.request(kim!))!, answer)).toBe('wrong_security_key')
    expect(await keys.judge(lee!, earlier, answer)).toBe('unknown_security_key')
    expect(await use(kim!, key, { id: 'AAAA' })).toBe('unknown_security_key')
    const { id } = (await keys.list(kim!))[0]!
    await keys.remove(kim!, id)
    expect(await keys.request(kim!)).toBeUndefined()
    expect(await keys.judge(kim!, earlier, answer)).toBe('unknown_security_key')
  })

  it('is refused when its count goes back or stays, unless the key never counts', async () => {
    expect(await use(kim!, key, { signCount: 9 })).toBeUndefined()
    for (const signCount of [9, 8, 1, 0])
      expect(await use(kim!, key, { signCount })).toBe('copied_security_key')
    expect(await use(kim!, key, { signCount: 10 })).toBeUndefined()
    const other = new SoftwareKey(SITE)
    expect(await add(kim!, other, { signCount: 0 })).toBe('added')
    for (const signCount of [0, 0, 1]) expect(await use(kim!, other, { signCount })).toBeUndefined()
    expect(await use(kim!, other, { signCount: 0 })).toBe('copied_security_key')
  })
})
