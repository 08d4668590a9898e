/** Traces of a change: events with the account, sessions that end, sealed values, and jobs that wait. */
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { EventFields } from '../../src/audit/events/fields.ts'
import type { ChangeCause } from '../../src/model/password-change.ts'
import { Rotation, type RotationOptions } from '../../src/rotation/rotation.ts'
import { rotateMasterKeyFile } from '../../src/vault/key-file.ts'
import { renewDataKey } from '../../src/vault/renewal.ts'
import { openVault } from '../../src/vault/vault.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { until } from '../until.ts'
import { FakeTarget, type RotationWorld, rotationWorld } from './fixture.ts'

let temp: TemporaryStore
let world: RotationWorld
let target: FakeTarget
let rotation: Rotation
let events: (EventFields & { code: string })[]
let now: number
const started = (more: Partial<RotationOptions> = {}) =>
  new Rotation({
    ...{ store: temp.store, vault: world.vault, changer: target },
    audit: {
      record: async (code, fields) => {
        events.push({ code, ...fields })
        return undefined as never
      },
    },
    claim: () => () => undefined,
    now: () => now,
    onError: (error) => {
      throw error
    },
    ...more,
  })
beforeEach(async () => {
  temp = await temporaryStore()
  world = await rotationWorld({ temp })
  target = new FakeTarget()
  events = []
  now = 1_000_000
  rotation = started()
})
afterEach(async () => {
  await rotation.stop()
  await temp.remove()
})

const account = async () => (await temp.store.accounts.find(world.account.id))!
const change = async (cause: ChangeCause) => {
  const [job] = await rotation.change(await account(), { cause, user: 'ops1', isForced: false })
  return await rotation.attempted(job!.id, 60_000)
}

it('names the account in the event of a change that is not configured', async () => {
  const asked = { accountId: world.account.id, type: 'password', kind: 'change', cause: 'checkin' } as const
  await temp.store.domains.update(world.domain.id, {
    change: { ...world.domain.change!, isEnabled: false },
  })
  const late = await temp.store.secretJobs.add({
    ...asked,
    ...{ user: 'ops1', isForced: false, due: now, created: now },
  })
  rotation.kick()
  expect(await rotation.attempted(late.id, 60_000)).toMatchObject({
    outcome: 'failed',
    code: 'not_configured',
  })
  expect(events.at(-1)).toMatchObject({
    ...{ code: 'secret.change', result: 'failure', user: 'ops1', account: 'svc' },
    ...{ domain: world.domain.domainName, object: `svc@${world.domain.domainName}` },
  })
})

it('ends sessions with the old secret after a demand only', async () => {
  expect(await change('checkin')).toMatchObject({ outcome: 'changed' })
  expect(await account()).toMatchObject({ secretRevision: 2 })
  expect((await account()).severedRevision).toBeUndefined()
  expect(await change('demand')).toMatchObject({ outcome: 'changed' })
  const { secretRevision, severedRevision } = await account()
  expect([secretRevision, severedRevision]).toEqual([3, 3])
  await change('session')
  expect(await account()).toMatchObject({ secretRevision: 4, severedRevision: 3 })
})

it('opens what a change has left after the data key was renewed', async () => {
  target.script = ['good', 'good', 'half', 'down']
  await change('demand')
  const next = await world.next()
  expect(next).toBe(target.passwords.get('svc'))
  await rotation.stop()
  const file = join(dirname(temp.path), 'master.key')
  await rotateMasterKeyFile(file, temp.store.settings, async (old, fresh) => {
    await temp.store.transaction(async (within) => {
      await renewDataKey(within, old, fresh)
    })
  })
  const vault = await openVault(temp.store, { file })
  rotation = started({ vault })
  now += 3_600_000
  await rotation.start()
  await until('the end of the change', async () => (await account()).secretState === undefined || undefined)
  const [credential] = await vault.credentials(world.account.id)
  expect(credential?.type === 'password' && credential.password.revealText()).toBe(next)
})

it('begins when a session that has locked the account ends, also while it looks', async () => {
  let isUsed = true
  await rotation.stop()
  rotation = started({
    claim: (accountId) => {
      if (!isUsed) return () => undefined
      isUsed = false
      // The session ends between this look and the end of the attempt.
      void rotation.freed(accountId)
      return undefined
    },
  })
  const [job] = await rotation.change(await account(), { cause: 'session', user: 'ops1', isForced: false })
  await until('the change', async () => (await temp.store.secretJobs.find(job!.id))?.outcome === 'changed')
  expect(await world.stored()).toBe(target.passwords.get('svc'))
})
