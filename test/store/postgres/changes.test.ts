/** The log of changes on PostgreSQL: the same triggers as on SQLite (test/store/changes.test.ts). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TRIGGERS } from '../../../src/store/engine/snapshot.ts'
import { newUser, smallEstate } from '../fixture.ts'
import { type TemporaryStore, temporaryStore } from '../temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const changesOf = async (work: () => Promise<unknown>): Promise<string[]> => {
  const { last } = await temp.store.changes.kept()
  await work()
  const changes = await temp.store.changes.after(last, 1000)
  return changes.map(({ kind, object }) => `${kind} ${object}`.trim())
}

describe('the log of changes', () => {
  it('has the tables of SQLite', async () => {
    const rows = await temp.sql(
      "select tgrelid::regclass::text as name from pg_trigger where not tgisinternal and tgname like '%_changed'",
    )
    const tables = TRIGGERS.flatMap(({ triggers }) =>
      [...triggers.keys()].map((name) => name.replace(/_(inserted|updated|removed)$/, '')),
    )
    expect(new Set(rows.map(({ name }) => name))).toEqual(new Set(tables))
  })

  it('has what comes, changes, moves and goes', async () => {
    const { store } = temp
    const { user, userGroup } = await smallEstate(store)
    const other = await store.users.create(newUser('other'))
    expect(await changesOf(() => store.users.update(user.id, { isDisabled: true }))).toEqual([
      `user ${user.id}`,
    ])
    expect(
      await changesOf(() => store.userGroups.update(userGroup.id, { userIds: [user.id, other.id] })),
    ).toEqual([`user ${other.id}`])
    await store.userGroups.update(userGroup.id, { userIds: [user.id] })
    expect(
      await changesOf(() => temp.sql(`update users set id = 'ELSEWHERE' where id = '${other.id}'`)),
    ).toEqual([`user ${other.id}`, 'user ELSEWHERE'])
    const gone = await changesOf(() => store.users.remove(user.id))
    // The user and the membership.
    expect(gone).toEqual([`user ${user.id}`, `user ${user.id}`])
  })

  it('is the same for another process, and has nothing of what is undone', async () => {
    const other = await temp.open()
    const changes = await changesOf(async () => {
      await other.users.create(newUser('ops1'))
      const undone = other.transaction(async (within) => {
        await within.users.create(newUser('ops2'))
        throw new Error('no')
      })
      await expect(undone).rejects.toThrow('no')
    })
    await other.close()
    expect(changes).toEqual([`user ${(await temp.store.users.find('ops1'))?.id}`])
  })
})
