import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_CHECKOUT_POLICY, type User } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { Checkouts } from '../../src/vault/checkout.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { opensshKey } from '../identity/keys.ts'
import { type Estate, newAccount, newUser, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const NOW = 1_000_000
let temp: TemporaryStore
let vault: Vault
let estate: Estate
let checkouts: Checkouts
let ops2: User

beforeEach(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
  vault = await openVault(temp.store, { file: join(dirname(temp.path), 'master.key') })
  await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('hunter2') }])
  checkouts = new Checkouts(temp.store, vault)
  ops2 = await temp.store.users.create(newUser('ops2', { groupIds: [estate.userGroup.id] }))
})
afterEach(() => temp.remove())

describe('a checkout', () => {
  it('hands out the secrets for an hour', async () => {
    const { file } = opensshKey('ed25519')
    await vault.setCredentials(estate.account.id, [
      { type: 'password', password: Secret.of('hunter2') },
      { type: 'ssh_key', privateKey: Secret.of(file) },
    ])
    const out = await checkouts.checkout(estate.user, estate.account, () => NOW)
    expect(out.password?.revealText()).toBe('hunter2')
    expect(out.privateKey?.revealText()).toBe(file)
    expect(out).toMatchObject({
      login: 'root',
      expires: NOW + 3_600_000,
      authorizationIds: [estate.authorization.id],
    })
    expect(JSON.stringify(out)).not.toContain('hunter2')
  })

  it('is refused without an authorization for secrets', async () => {
    const refusal = { name: 'CheckoutError', reason: 'not_allowed' }
    const stranger = await temp.store.users.create(newUser('stranger'))
    await expect(checkouts.checkout(stranger, estate.account, () => NOW)).rejects.toMatchObject(refusal)
    await temp.store.authorizations.update(estate.authorization.id, { authorizePasswordRetrieval: false })
    await expect(checkouts.checkout(estate.user, estate.account, () => NOW)).rejects.toMatchObject(refusal)
  })

  it('is refused for an account without a secret', async () => {
    const account = await temp.store.accounts.create(newAccount(estate.domain.id, 'empty'))
    await temp.store.targetGroups.update(estate.targetGroup.id, { passwordRetrievalAccountIds: [account.id] })
    await expect(checkouts.checkout(estate.user, account, () => NOW)).rejects.toMatchObject({
      reason: 'no_secret',
    })
    expect(await temp.store.checkouts.active(account.id, NOW)).toEqual([])
  })

  it('begins when its key has been rewritten, and not if another has the account then', async () => {
    const { file } = opensshKey('ed25519')
    await vault.setCredentials(estate.account.id, [{ type: 'ssh_key', privateKey: Secret.of(file) }])
    await temp.store.checkoutPolicies.update(DEFAULT_CHECKOUT_POLICY, { enableLock: true })
    let now = NOW
    const clock = () => {
      now += 5000
      return now
    }
    const wish = { duration: 1, keyFormat: 'pkcs8' } as const
    const out = await checkouts.checkout(estate.user, estate.account, clock, wish)
    expect(out.expires).toBe(now + 1000)
    const taking = checkouts.checkout(estate.user, estate.account, clock, wish)
    const { id } = await temp.store.checkouts.create(
      { accountId: estate.account.id, userId: ops2.id, begin: now + 5000, expires: now + 60_000 },
      true,
    )
    await expect(taking).rejects.toMatchObject({ reason: 'checked_out' })
    const active = await temp.store.checkouts.active(estate.account.id, now)
    expect(active.map((one) => one.id)).toEqual([id])
  })

  it('leaves the second password of network gear in the vault', async () => {
    const enable = { type: 'enable', password: Secret.of('En-Pass1') } as const
    await vault.setCredentials(estate.account.id, [
      enable,
      { type: 'password', password: Secret.of('hunter2') },
    ])
    const out = await checkouts.checkout(estate.user, estate.account, () => NOW)
    expect(out.password?.revealText()).toBe('hunter2')
    await vault.setCredentials(estate.account.id, [enable])
    await expect(checkouts.checkout(ops2, estate.account, () => NOW)).rejects.toMatchObject({
      reason: 'no_secret',
    })
  })
})

describe('a check-in', () => {
  it('ends the checkout, once', async () => {
    const { checkoutId } = await checkouts.checkout(estate.user, estate.account, () => NOW)
    await checkouts.checkin(estate.user, estate.account, checkoutId, NOW + 1)
    expect(await temp.store.checkouts.active(estate.account.id, NOW + 1)).toEqual([])
    await expect(checkouts.checkin(estate.user, estate.account, checkoutId, NOW + 2)).rejects.toThrow(
      'no such checkout',
    )
  })

  it('works once of two at the same time', async () => {
    const { checkoutId } = await checkouts.checkout(estate.user, estate.account, () => NOW)
    const both = await Promise.allSettled(
      [1, 2].map(() => checkouts.checkin(estate.user, estate.account, checkoutId, NOW + 1)),
    )
    expect(both.map((one) => one.status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  it('is refused with one answer when it is foreign, expired, returned, of another account or unknown', async () => {
    const other = await temp.store.accounts.create(newAccount(estate.domain.id, 'other'))
    const out = async () => (await checkouts.checkout(estate.user, estate.account, () => NOW)).checkoutId
    const returned = await out()
    await checkouts.checkin(estate.user, estate.account, returned, NOW + 1)
    const ids = [await out(), await out(), await out()] as const
    const errors = await Promise.all(
      [
        checkouts.checkin(ops2, estate.account, ids[0], NOW + 1),
        checkouts.checkin(estate.user, estate.account, ids[1], NOW + 3_600_000),
        checkouts.checkin(estate.user, estate.account, returned, NOW + 2),
        checkouts.checkin(estate.user, other, ids[2], NOW + 1),
        checkouts.checkin(estate.user, estate.account, 'x', NOW + 1),
      ].map((attempt) => attempt.then(String, (error: unknown) => error)),
    )
    for (const error of errors) expect(error).toMatchObject({ name: 'CheckoutError', reason: 'not_out' })
    expect(new Set(errors.map(String)).size).toBe(1)
  })
})
