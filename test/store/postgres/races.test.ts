/**
 * What reads and then writes, in two processes at once: whichever order they come to, the result is that of one after
 * the other. The second one does all of its work while the first has done its own and is not committed.
 */
import { generateKeyPairSync } from 'node:crypto'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ChainEnd } from '../../../src/audit/chain-end.ts'
import { AuditLog } from '../../../src/audit/log.ts'
import { firstAdministrator } from '../../../src/broker/first-start.ts'
import { Identities } from '../../../src/identity/chain.ts'
import { Lockout } from '../../../src/identity/lockout.ts'
import { PasswordPolicy } from '../../../src/identity/policy.ts'
import { StoreUnavailableError } from '../../../src/store/engine/errors.ts'
import type { AuditRow, Store } from '../../../src/store/store.ts'
import { openVault } from '../../../src/vault/vault.ts'
import { quickHasher } from '../../identity/quick-hasher.ts'
import { newUser, smallEstate } from '../fixture.ts'
import { type TemporaryStore, temporaryStore } from '../temp.ts'

let temp: TemporaryStore
let one: Store
let other: Store
beforeEach(async () => {
  temp = await temporaryStore()
  one = temp.store
  other = await temp.open()
})
afterEach(async () => {
  await other.close()
  await temp.remove()
})

const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: Error) => error.name,
  )

/** Resolves when the work is done, or waits for a lock. */
async function doneOrWaiting(work: Promise<unknown>): Promise<void> {
  let isDone = false
  const done = work.then(() => {
    isDone = true
  })
  while (!isDone) {
    if ((await temp.sql('select 1 from pg_locks where not granted')).length > 0) return
    await Promise.race([done, sleep(20)])
  }
}

/** Does `second` while `first` is not committed. Returns what has become of both. */
async function meeting(
  first: (within: Store) => Promise<unknown>,
  second: () => Promise<unknown>,
): Promise<[string, string]> {
  let seconds: Promise<string> | undefined
  const firsts = one.transaction(async (within) => {
    const value = await first(within)
    if (seconds) return value
    seconds = outcome(second())
    await doneOrWaiting(seconds)
    return value
  })
  const done = await outcome(firsts)
  return [done, (await seconds) ?? 'not begun']
}

describe('of two at once, one finds that the other was faster', () => {
  it('with the exclusive checkout of a secret', async () => {
    const { user, account } = await smallEstate(one)
    const wanted = { accountId: account.id, userId: user.id, begin: 1, expires: 100 }
    const met = await meeting(
      (within) => within.checkouts.create(wanted, true),
      () => other.checkouts.create(wanted, true),
    )
    expect(met.toSorted()).toEqual(['DuplicateError', 'done'])
    expect(await one.checkouts.active(account.id, 5)).toHaveLength(1)
  })

  it('with the end of a checkout, and a right that it rests on', async () => {
    const { user, account, userGroup } = await smallEstate(one)
    const made = await one.timeframes.create({
      timeframeName: 'day',
      description: '',
      isOvertimable: false,
      timeZone: 'UTC',
      periods: [{ startTime: '08:00', endTime: '18:00', weekDays: [] }],
      isFactory: false,
    })
    const wanted = { userId: user.id, accountId: account.id }
    const timeframes = async (store: Store) => (await store.access.retrievals([wanted]))[0]?.timeframes.length
    // The look comes first: the change waits, and what looks behind it finds all.
    let changed: Promise<unknown> | undefined
    const seen = await one.amongRights(async (within) => {
      const before = await timeframes(within)
      changed = other.userGroups.update(userGroup.id, { timeframeIds: [made.id] })
      await doneOrWaiting(changed)
      return [before, await timeframes(within)]
    })
    await changed
    expect(seen).toEqual([0, 0])
    // The change comes first: the look waits for it.
    let look: Promise<number | undefined> | undefined
    await one.transaction(async (within) => {
      await within.userGroups.update(userGroup.id, { timeframeIds: [] })
      look ??= other.amongRights(timeframes)
      await doneOrWaiting(look)
    })
    expect(await look).toBe(0)
  })

  it('with the last two administrators', async () => {
    const [a, b] = await Promise.all(
      ['a', 'b'].map((name) => one.users.create(newUser(name, { profile: 'product_administrator' }))),
    )
    for (const { id } of [a!, b!]) await one.users.setPasswordHash(id, Uint8Array.of(1))
    const met = await meeting(
      (within) => within.users.update(a!.id, { isDisabled: true }),
      () => other.users.remove(b!.id),
    )
    expect(met.toSorted()).toEqual(['LastAdministratorError', 'done'])
  })

  it('with a profile that is removed and given', async () => {
    const { items } = await one.profiles.list()
    const profile = await one.profiles.create({
      profileName: 'own',
      description: '',
      rights: items[0]!.rights,
      isFactory: false,
    })
    const met = await meeting(
      (within) => within.profiles.remove(profile.id),
      () => other.users.create(newUser('a', { profile: 'own' })),
    )
    expect(met.filter((what) => what === 'done')).toHaveLength(1)
    const { total } = await one.users.list()
    expect(await one.profiles.find('own')).toEqual(total === 0 ? undefined : profile)
  })

  it('with a group that is removed and joined', async () => {
    const group = await one.userGroups.create({ groupName: 'g', description: '', userIds: [] })
    const met = await meeting(
      (within) => within.userGroups.remove(group.id),
      () => other.users.create(newUser('a', { groupIds: [group.id] })),
    )
    expect(['done done', 'done MissingReferenceError']).toContain(met.join(' '))
    // In either order, no member is left of a group that is gone.
    expect(await temp.sql('select * from user_group_members')).toEqual([])
  })

  it('with changes of an object as both have read it', async () => {
    const user = await one.users.create(newUser('a'))
    const met = await meeting(
      (within) => within.users.update(user.id, { displayName: 'x' }, user),
      () => other.users.update(user.id, { email: 'a@example.com' }, user),
    )
    expect(met.toSorted()).toEqual(['ChangedError', 'done'])
  })

  it('with the first keys that a target shows', async () => {
    const { device, service } = await smallEstate(one)
    const key = (text: string) => ({
      deviceId: device.id,
      serviceId: service.id,
      keyType: 'ssh-ed25519',
      fingerprint: text,
      key: text,
      firstSeen: 1,
    })
    await meeting(
      (within) => within.hostKeys.pinFirst(key('a')),
      () => other.hostKeys.pinFirst(key('b')),
    )
    expect(await one.hostKeys.ofService(service.id)).toHaveLength(1)
  })

  it('with answers that are kept up to a number', async () => {
    const answer = { request: Uint8Array.of(1), status: 201, answer: '{}' }
    const keep = (store: Store, key: number) =>
      store.idempotency.keep(Uint8Array.of(key), `claim ${key}`, { ...answer, time: key }, 0, 1)
    expect(
      await meeting(
        (within) => keep(within, 1),
        () => keep(other, 2),
      ),
    ).toEqual(['done', 'done'])
    expect(await temp.sql('select * from idempotency_keys')).toHaveLength(1)
  })
})

it('two first starts make one administrator, and show one password', async () => {
  const masterKey = { file: join(dirname(temp.path), 'master.key') }
  const vaults = [await openVault(one, masterKey), await openVault(other, masterKey)]
  const starts = [one, other].map(async (store, n) => {
    const vault = vaults[n]!
    const identities = new Identities(store.users, quickHasher(), new Lockout(), Date.now, vault)
    const audit = new AuditLog({ repository: store.audit, now: Date.now })
    return await firstAdministrator(store, identities, audit, new PasswordPolicy({}), undefined)
  })
  const shown = (await Promise.all(starts)).filter(({ password }) => password !== undefined)
  expect(shown).toHaveLength(1)
  expect((await one.users.list()).total).toBe(1)
})

it('two logs append to one chain', async () => {
  const logs = [one, other].map(({ audit }) => new AuditLog({ repository: audit, now: Date.now }))
  const each = logs.map(async (log, who) => {
    for (let n = 0; n < 30; n++) await log.record('auth.success', { user: `u${who}-${n}` })
  })
  await Promise.all(each)
  const rows = await one.audit.range(1, 100)
  expect(rows.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 60 }, (_, n) => n + 1))
})

it('a commit that comes after its connection was lost, and its repetition, are the same rows', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  let late: Promise<void> | undefined
  let time = 0
  const repository = {
    ...one.audit,
    async append(rows: AuditRow[]) {
      if (late) return await one.audit.append(rows)
      const { promise: isWritten, resolve } = Promise.withResolvers<void>()
      late = other.transaction(async (within) => {
        await within.audit.append(rows)
        resolve()
        while ((await temp.sql('select 1 from pg_locks where not granted')).length === 0) await sleep(20)
      })
      await isWritten
      throw new StoreUnavailableError('the connection was lost')
    },
  }
  const end = new ChainEnd({ repository, now: () => time++, key: privateKey, reach: undefined })
  const event = { time: 1, code: 'auth.success', fields: { user: 'ops1' } } as const
  const { rows, checkpoint } = await end.append([event], true)
  await late
  const hashes = (all: readonly AuditRow[]) => all.map(({ hash }) => Buffer.from(hash).toString('hex'))
  expect(hashes(await one.audit.range(1, 100))).toEqual(hashes([...rows, checkpoint!.row]))
})

it('work that meets others at each attempt ends with an error in words', async () => {
  const user = await one.users.create(newUser('a'))
  let attempts = 0
  const work = one.transaction(async (within) => {
    attempts++
    await within.users.find(user.id)
    await other.users.update(user.id, { displayName: `${attempts}` })
    await within.users.update(user.id, { email: 'a@example.com' })
  })
  await expect(work).rejects.toThrow('others change the same objects at this moment: try again')
  expect(attempts).toBe(10)
})
