/** Certificates of users' keys: found by serial, bounded by user, gone with what they rest on. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { newExternalAuth, newUser } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const LARGEST = 2n ** 64n - 1n
const row = (userId: string, serial: bigint, more: object = {}) => ({
  ...{ userId, serial, secretRevision: 3, fingerprint: 'SHA256:x', address: '192.0.2.1', begin: 10, end: 20 },
  ...more,
})

it('are found by serials of 64 bits, whole', async () => {
  const { userCertificates: rows, users } = temp.store
  const { id: userId } = await users.create(newUser('one'))
  const id = await rows.add(row(userId, LARGEST), 2)
  expect(await rows.find(LARGEST)).toEqual({ ...row(userId, LARGEST), id })
  expect(await rows.find(LARGEST - 1n)).toBeUndefined()
  await expect(rows.add(row(userId, LARGEST), 2)).rejects.toThrow()
})

it('replace the oldest of their user only, and those that have ended', async () => {
  const { userCertificates: rows, users } = temp.store
  const [one, other] = [await users.create(newUser('one')), await users.create(newUser('other'))]
  await rows.add(row(other.id, 9n), 1)
  for (const serial of [1n, 2n, 3n]) await rows.add(row(one.id, serial), 2)
  const serials = async (id: string, now = 10) => (await rows.ofUser(id, now)).map(({ serial }) => serial)
  expect([await serials(one.id), await serials(other.id)]).toEqual([[2n, 3n], [9n]])
  expect(await serials(one.id, 20)).toEqual([])
  await rows.add(row(one.id, 4n, { begin: 20, end: 30 }), 2)
  expect([await rows.find(3n), await rows.find(9n)]).toEqual([undefined, undefined])
})

it('go with their user, and with the session at the provider', async () => {
  const { externalAuths, providerSessions, userCertificates: rows, users } = temp.store
  const user = await users.create(newUser('one'))
  const { id: externalAuthId } = await externalAuths.create(newExternalAuth('login'))
  const begun = { userId: user.id, externalAuthId, subject: 's', sid: '', begin: 0, ends: 30 }
  const providerSession = await providerSessions.begin(begun, undefined, { ofUser: 1, all: 1 })
  await rows.add(row(user.id, 1n), 3)
  const id = await rows.add(row(user.id, 2n, { providerSession }), 3)
  expect((await rows.find(2n))?.providerSession).toBe(providerSession)
  await providerSessions.remove(providerSession)
  expect((await rows.ofUser(user.id, 10)).map(({ serial }) => serial)).toEqual([1n])
  expect(await rows.remove(user.id, id)).toBe(false)
  await users.remove(user.id)
  expect(await rows.find(1n)).toBeUndefined()
})
