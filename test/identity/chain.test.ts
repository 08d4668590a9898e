import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Authorities } from '../../src/identity/authorities.ts'
import { Identities } from '../../src/identity/chain.ts'
import { type HashSeal, openHash } from '../../src/identity/hashes.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { PasswordHasher } from '../../src/identity/password.ts'
import { parseAuthorizedKey } from '../../src/identity/public-key.ts'
import { SharedLockout } from '../../src/identity/shared-lockout.ts'
import type { Outcome, Proof, SignIn } from '../../src/identity/sign-in.ts'
import type { User } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal, UnsealError } from '../../src/vault/seal.ts'
import { newUser } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { forger } from './certificates.ts'
import { opensshKey, signedData } from './keys.ts'

const PASSWORD = 'correct horse'
const SOURCE = '192.0.2.1'
const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
const SEAL: HashSeal = {
  seal: (place, secret) => seal(dataKey, place, secret),
  open: (place, sealed) => open(dataKey, place, sealed),
}
const key = opensshKey('ed25519')
const otherKey = opensshKey('ed25519')

/** Counts the keys that authorities check, which means verifying a certificate. */
class CountingAuthorities extends Authorities {
  asked = 0

  override flawOf(...question: Parameters<Authorities['flawOf']>) {
    this.asked++
    return super.flawOf(...question)
  }
}

/** Counts the computed hashes, to compare the costs of answers. */
class CountingHasher extends PasswordHasher {
  verifications = 0
  pretences = 0

  override verify(...question: Parameters<PasswordHasher['verify']>): Promise<boolean> {
    this.verifications++
    return super.verify(...question)
  }

  override pretend(source: string): Promise<void> {
    this.pretences++
    return super.pretend(source)
  }
}

let temp: TemporaryStore
let hasher: CountingHasher
let identities: Identities
let now: number
let ops1: User

beforeEach(async () => {
  temp = await temporaryStore()
  now = 1_000_000
  hasher = new CountingHasher({ memory: 256, passes: 1 })
  identities = new Identities(
    temp.store.users,
    hasher,
    new SharedLockout(temp.store.lockouts),
    () => now,
    SEAL,
  )
  ops1 = await add('ops1', {})
})
afterEach(() => temp.remove())

async function add(name: string, more: Partial<User>): Promise<User> {
  const userAuths: User['userAuths'] = ['local_password', 'local_sshkey']
  const user = await temp.store.users.create(newUser(name, { userAuths, sshPublicKeys: [key.line], ...more }))
  await identities.setPassword(user.id, Secret.of(PASSWORD))
  return (await temp.store.users.find(user.id))!
}

function signIn(proof: Proof, more: Partial<SignIn> = {}): Promise<Outcome> {
  return identities.authenticate({ user: 'ops1', login: 'ops1+root@srv1', source: SOURCE, proof, ...more })
}
const byPassword = (password: string, more: Partial<SignIn> = {}) =>
  signIn({ method: 'password', password }, more)

function byKey(
  pair = key,
  more: Partial<SignIn> = {},
  data = signedData('ops1+root@srv1', 'ssh-ed25519', pair.blob),
) {
  return signIn(
    { method: 'publickey', key: pair.blob, signed: { data, signature: pair.sign(data, 'ssh-ed25519') } },
    more,
  )
}
const ask = (pair = key, more: Partial<SignIn> = {}) => signIn({ method: 'publickey', key: pair.blob }, more)

const refused = (reason: string) => ({ result: 'rejected', reason, locks: false })

describe('signing in', () => {
  it('works by password, by keyboard-interactive, and by a signature of a key', async () => {
    expect(await byPassword(PASSWORD)).toEqual({ result: 'accepted', user: ops1 })
    expect(await signIn({ method: 'keyboard-interactive', password: PASSWORD })).toEqual({
      result: 'accepted',
      user: ops1,
    })
    expect(await byKey()).toMatchObject({
      result: 'accepted',
      user: ops1,
      key: { key: { type: 'ssh-ed25519' } },
    })
  })

  it('takes the name without regard to case', async () => {
    expect(await byPassword(PASSWORD, { user: 'OPS1' })).toMatchObject({ result: 'accepted' })
  })

  it('is by name, never by id', async () => {
    expect(await byPassword(PASSWORD, { user: ops1.id })).toEqual(refused('unknown_user'))
  })

  it('never works by a key without a signature', async () => {
    expect(await ask()).toEqual({ result: 'key_acceptable' })
    expect(await ask(otherKey)).toEqual(refused('unknown_key'))
  })

  it('takes the key that signed, not one that was offered before', async () => {
    await ask(key)
    expect(await byKey(otherKey)).toEqual(refused('unknown_key'))
    const data = signedData('ops1+root@srv1', 'ssh-ed25519', key.blob)
    const signed = { data, signature: otherKey.sign(data, 'ssh-ed25519') }
    expect(await signIn({ method: 'publickey', key: key.blob, signed })).toEqual(refused('bad_signature'))
  })

  it('does not take a signature for another login', async () => {
    expect(await byKey(key, { login: 'ops1+root@srv2' })).toEqual(refused('bad_signature'))
  })

  it('renews a hash of other parameters', async () => {
    const stronger = new PasswordHasher({ memory: 512, passes: 1 })
    identities = new Identities(
      temp.store.users,
      stronger,
      new SharedLockout(temp.store.lockouts),
      () => now,
      SEAL,
    )
    expect(await byPassword(PASSWORD)).toMatchObject({ result: 'accepted' })
    const { passwordHash } = await temp.store.users.secretsOf(ops1.id)
    expect(stronger.needsRehash(openHash(SEAL, ops1.id, passwordHash!))).toBe(false)
    expect(await byPassword(PASSWORD)).toMatchObject({ result: 'accepted' })
  })
})

describe('whoever is refused', () => {
  beforeEach(async () => {
    await add('disabled', { isDisabled: true })
    await add('expired', { expirationDate: now })
    await add('elsewhere', { ipSource: ['10.0.0.0/8'] })
    await add('nomethod', { userAuths: [] })
    await temp.store.users.create(newUser('nosecret', { userAuths: ['local_password', 'local_sshkey'] }))
  })

  const CASES: [string, string, string][] = [
    ['nobody', 'unknown_user', 'unknown_user'],
    ['disabled', 'disabled', 'disabled'],
    ['expired', 'expired', 'expired'],
    ['elsewhere', 'wrong_source', 'wrong_source'],
    ['nomethod', 'method_not_allowed', 'method_not_allowed'],
    ['nosecret', 'wrong_password', 'unknown_key'],
  ]

  it.each(CASES)('%s gets the one answer even with the right secret', async (user, password, publickey) => {
    expect(await byPassword(PASSWORD, { user })).toEqual(refused(password))
    expect(await byKey(key, { user })).toEqual(refused(publickey))
    expect(await ask(key, { user })).toEqual(refused(publickey))
  })

  it('gets it at the price of one verification', async () => {
    for (const user of ['ops1', ...CASES.map(([name]) => name)]) {
      hasher.verifications = 0
      await byPassword('wrong', { user })
      expect([user, hasher.verifications]).toEqual([user, 1])
    }
    for (let i = 0; i < LOCKOUT_LIMITS.pairFailures; i++) await byPassword('wrong')
    hasher.verifications = 0
    hasher.pretences = 0
    expect(await byPassword(PASSWORD)).toEqual(refused('locked'))
    expect(await byPassword('wrong', { user: 'OPS1' })).toEqual(refused('locked'))
    expect([hasher.verifications, hasher.pretences]).toEqual([0, 2])
  })
})

describe('the hash in the database', () => {
  it('is sealed, and for its user only', async () => {
    const [{ passwordHash: own }, other] = [await temp.store.users.secretsOf(ops1.id), await add('ops2', {})]
    expect(Buffer.from(own!).toString('latin1')).not.toContain('argon2')
    expect(openHash(SEAL, ops1.id, own!)).toMatch(/^\$argon2id\$/)
    expect(() => openHash(SEAL, other.id, own!)).toThrow(UnsealError)
    // An attacker that can write to the database cannot sign in as another user with a known password.
    await temp.store.users.setPasswordHash(other.id, own!)
    await expect(byPassword(PASSWORD, { user: 'ops2' })).rejects.toThrow(UnsealError)
  })
})

it('a waiting room that one network has filled has room for another', async () => {
  const narrow = new PasswordHasher({ memory: 1024, passes: 1, maxWaiting: 8 })
  const generous = { ...LOCKOUT_LIMITS, pairFailures: 1000, addressFailures: 1000 }
  identities = new Identities(
    temp.store.users,
    narrow,
    new SharedLockout(temp.store.lockouts, generous),
    () => now,
    SEAL,
  )
  const flood = Array.from({ length: 60 }, (_, i) =>
    byPassword('wrong', { source: `203.0.113.${i % 250}`, user: `guess${i}` }),
  )
  const ours = ['192.0.2.1', '2001:db8::1'].map((source) => byPassword(PASSWORD, { source }))
  expect(await Promise.all(ours)).toMatchObject([{ result: 'accepted' }, { result: 'accepted' }])
  expect(await Promise.all(flood)).toContainEqual(refused('busy'))
})

describe('failures', () => {
  it('lock the name from that address, say so once, and end after a while', async () => {
    const outcomes: Outcome[] = []
    for (let i = 0; i < LOCKOUT_LIMITS.pairFailures; i++) outcomes.push(await byPassword('wrong'))
    expect(outcomes.map((outcome) => outcome.result === 'rejected' && outcome.locks)).toEqual([
      ...Array(LOCKOUT_LIMITS.pairFailures - 1).fill(false),
      true,
    ])
    expect(await byPassword(PASSWORD)).toEqual(refused('locked'))
    expect(await byKey()).toEqual(refused('locked'))
    expect(await ask()).toEqual(refused('locked'))
    expect(await byPassword(PASSWORD, { user: 'OPS1' })).toEqual(refused('locked'))
    expect(await byPassword(PASSWORD, { source: '192.0.2.2' })).toMatchObject({ result: 'accepted' })
    now += LOCKOUT_LIMITS.lockMs
    expect(await byPassword(PASSWORD)).toMatchObject({ result: 'accepted' })
  })

  it('are counted before they are known, so that guessing at the same time is no way around', async () => {
    const tries = Array.from({ length: 40 }, (_, i) => byPassword(`guess ${i}`))
    const outcomes = await Promise.all(tries)
    const computed = outcomes.filter(
      (outcome) => outcome.result === 'rejected' && outcome.reason === 'wrong_password',
    )
    expect(computed).toHaveLength(LOCKOUT_LIMITS.pairFailures)
  })

  it('are none when many come at the same time with the right secret', async () => {
    const patient = new PasswordHasher({ memory: 256, passes: 1, maxWaiting: 200 })
    identities = new Identities(
      temp.store.users,
      patient,
      new SharedLockout(temp.store.lockouts),
      () => now,
      SEAL,
    )
    const outcomes = await Promise.all(
      Array.from({ length: 120 }, (_, i) => (i % 2 ? byKey() : byPassword(PASSWORD))),
    )
    expect(outcomes.filter((outcome) => outcome.result === 'accepted')).toHaveLength(120)
  })

  it('are not those of an agent that offers its keys', async () => {
    for (let i = 0; i < 30; i++) await ask(otherKey)
    expect(await byKey()).toMatchObject({ result: 'accepted' })
  })

  it('are not those of a broker that is too busy', async () => {
    const narrow = new PasswordHasher({ memory: 256, passes: 1, maxWaiting: 0 })
    identities = new Identities(
      temp.store.users,
      narrow,
      new SharedLockout(temp.store.lockouts),
      () => now,
      SEAL,
    )
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.all(Array.from({ length: 9 }, () => byPassword(PASSWORD)))
      expect(outcomes).toContainEqual(refused('busy'))
    }
    expect(await byPassword(PASSWORD)).toMatchObject({ result: 'accepted' })
  })
})

it('a certificate costs the same for users who are there, who may not, and who are not', async () => {
  const smith = forger()
  const authorities = new CountingAuthorities([parseAuthorizedKey(smith.line)])
  identities.authorities = authorities
  await add('disabled', { isDisabled: true })
  await add('passwords', { userAuths: ['local_password'] })
  const offered = smith.certificate({})
  for (const [user, result] of [
    ['ops1', 'key_acceptable'],
    ['disabled', 'rejected'],
    ['passwords', 'rejected'],
    ['nobody', 'rejected'],
  ] as const) {
    authorities.asked = 0
    expect(await signIn({ method: 'publickey', key: offered }, { user })).toMatchObject({ result })
    expect(authorities.asked, user).toBe(1)
  }
})

describe('a certificate that asks for a PIN or a finger', () => {
  const smith = forger()
  const byCertificate = (options: [string, Uint8Array][]) => {
    const blob = smith.certificate({ options })
    const data = signedData('ops1+root@srv1', 'ssh-ed25519-cert-v01@openssh.com', blob)
    return signIn({ method: 'publickey', key: blob, signed: { data, signature: smith.sign(data) } })
  }

  it('signs in nobody by a signature without one', async () => {
    identities.authorities = new Authorities([parseAuthorizedKey(smith.line)])
    expect(await byCertificate([])).toMatchObject({ result: 'accepted' })
    expect(await byCertificate([['verify-required', new Uint8Array(0)]])).toEqual(
      refused('certificate_option'),
    )
  })
})

it('a password that was replaced while it was checked signs in nobody, on any front', async () => {
  const slow = new (class extends PasswordHasher {
    override async verify(...question: Parameters<PasswordHasher['verify']>): Promise<boolean> {
      const matches = await super.verify(...question)
      await identities.setPassword(ops1.id, Secret.of('another one'))
      return matches
    }
  })({ memory: 256, passes: 1 })
  identities = new Identities(temp.store.users, slow, new SharedLockout(temp.store.lockouts), () => now, SEAL)
  expect(await byPassword(PASSWORD)).toEqual(refused('wrong_password'))
  expect(await signIn({ method: 'keyboard-interactive', password: 'another one' })).toEqual(
    refused('wrong_password'),
  )
})
