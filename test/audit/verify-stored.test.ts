/** The stored log, whose oldest rows others remove while it is read. */
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { exportAudit } from '../../src/audit/export.ts'
import { verifyStored } from '../../src/audit/verify-stored.ts'
import { databaseFile, type House, openHouse } from '../backup/setting.ts'

/** More than one piece is read. */
const EVENTS = 1500
let house: House
beforeEach(async () => {
  house = await openHouse()
  await Promise.all(
    Array.from({ length: EVENTS }, () => house.audit.record('auth.success', { user: 'ops1' })),
  )
  await house.audit.checkpoint({ always: true })
})
afterEach(() => house.close())

function removeUpTo(sequence: number): void {
  const other = new DatabaseSync(databaseFile(house.config), { timeout: 5000 })
  other.prepare('delete from audit where sequence <= ?').run(sequence)
  other.close()
}

test('it is verified as of one moment', async () => {
  const { trusted } = house.foundation.recordingService.keys
  const verdict = await verifyStored(house.foundation, {
    trusted,
    onEvent: ({ sequence }) => {
      if (sequence === 10) removeUpTo(1200)
    },
  })
  expect(verdict.fault).toBeUndefined()
  expect(verdict.rows).toBeGreaterThan(EVENTS)
  // Without the note of a handover they are missed.
  expect(await verifyStored(house.foundation, { trusted })).toMatchObject({
    fault: { code: 'missing_events' },
  })
})

test('an export says that it has a gap, and ends', async () => {
  const lines = exportAudit(house.foundation.store.audit)
  expect((await lines.next()).value).toContain('"sequence":1000,')
  removeUpTo(1200)
  await expect(lines.next()).rejects.toThrow(
    'the audit log begins with row 1201 by now: rows from 1001 on were handed over meanwhile; export it again',
  )
})
