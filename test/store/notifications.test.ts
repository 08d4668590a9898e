import { afterAll, beforeAll, expect, test } from 'vitest'
import { MAX_NOTIFICATIONS } from '../../src/model/notifications.ts'
import type { Id } from '../../src/model/objects.ts'
import { TooManyError } from '../../src/store/engine/errors.ts'
import { type Estate, newNotification, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
let estate: Estate
let groups: Id[]
beforeAll(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
  groups = [estate.targetGroup.id]
})
afterAll(() => temp.remove())

test('a notification is kept with its groups, which stay as long as it names them', async () => {
  const { notifications, userGroups, targetGroups } = temp.store
  const made = await notifications.create(
    newNotification('soc', {
      events: ['auth.*'],
      userGroupIds: [estate.userGroup.id],
      targetGroupIds: groups,
    }),
  )
  expect(await notifications.find('SOC')).toEqual(made)
  expect(made).toMatchObject({ userGroupIds: [estate.userGroup.id], targetGroupIds: groups })
  await expect(userGroups.remove(estate.userGroup.id)).rejects.toThrow(/notification "soc"/)
  await expect(targetGroups.remove(estate.targetGroup.id)).rejects.toThrow(/notification "soc"/)
  await notifications.setSealedSecret(made.id, 'signing_secret', Uint8Array.of(1))
  expect(await notifications.find('soc')).toMatchObject({
    secretNames: ['signing_secret'],
    secretRevision: 1,
  })
  await notifications.setSealedSecret(made.id, 'signing_secret', undefined)
  expect(await notifications.sealedSecret(made.id, 'signing_secret')).toBeUndefined()
  const changed = await notifications.update(made.id, { userGroupIds: [], isDisabled: true })
  expect(changed).toMatchObject({ userGroupIds: [], isDisabled: true, targetGroupIds: groups })
  await notifications.remove(made.id)
  expect(await notifications.find('soc')).toBeUndefined()
})

test('a user is in a group by name, whatever its case', async () => {
  const { notifications } = temp.store
  const { userName } = estate.user
  expect(await notifications.isUserIn(userName.toUpperCase(), [estate.userGroup.id])).toBe(true)
  expect(await notifications.isUserIn('nobody', [estate.userGroup.id])).toBe(false)
  expect(await notifications.isUserIn(userName, [])).toBe(false)
})

test('a target is in a group by as much of its name as an event has', async () => {
  const { notifications } = temp.store
  const place = {
    account: estate.account.accountName,
    domain: estate.domain.domainName,
    device: estate.device.deviceName,
    service: estate.service.serviceName,
  }
  const { account, domain, device, service } = place
  expect(await notifications.isTargetIn(place, groups)).toBe(true)
  expect(await notifications.isTargetIn({ device }, groups)).toBe(true)
  expect(await notifications.isTargetIn({ device, service }, groups)).toBe(true)
  expect(await notifications.isTargetIn({ ...place, account: 'another' }, groups)).toBe(false)
  expect(await notifications.isTargetIn({ ...place, device: 'another' }, groups)).toBe(false)
  expect(await notifications.isTargetIn(place, [])).toBe(false)
  expect(await notifications.isTargetIn({}, groups)).toBe(false)
  const retrieved = { account, domain, device }
  expect(await notifications.isTargetIn(retrieved, groups)).toBe(true)
  expect(await notifications.isTargetIn({ account, domain }, groups)).toBe(true)
  await temp.store.targetGroups.update(estate.targetGroup.id, {
    sessionAccounts: [],
    passwordRetrievalAccountIds: [],
  })
  expect(await notifications.isTargetIn(retrieved, groups)).toBe(false)
  await temp.store.targetGroups.update(estate.targetGroup.id, {
    passwordRetrievalAccountIds: [estate.account.id],
  })
  expect(await notifications.isTargetIn(retrieved, groups)).toBe(true)
  expect(await notifications.isTargetIn(place, groups)).toBe(false)
  // The login of a session without a stored account is what the user typed.
  const typed = { account: 'typed', device, service }
  expect(await notifications.isTargetIn(typed, groups)).toBe(false)
  await temp.store.targetGroups.update(estate.targetGroup.id, { interactiveServiceIds: [estate.service.id] })
  expect(await notifications.isTargetIn(typed, groups)).toBe(true)
  expect(await notifications.isTargetIn({ ...typed, service: 'another' }, groups)).toBe(false)
})

test('there are 64 at most', async () => {
  const { notifications } = temp.store
  const there = (await notifications.list()).total
  const names = Array.from({ length: MAX_NOTIFICATIONS - there }, (_, n) => `many ${n}`)
  const made = []
  for (const name of names) made.push(await notifications.create(newNotification(name, {})))
  await expect(notifications.create(newNotification('one more', {}))).rejects.toThrow(TooManyError)
  await notifications.remove(made[0]!.id)
  await notifications.create(newNotification('one more', {}))
  expect((await notifications.list({ limit: -1, offset: 0 })).items).toHaveLength(MAX_NOTIFICATIONS)
})
