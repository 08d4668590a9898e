/** The note of the audit log's reach: it is kept when any process starts on the log. */
import { generateKeyPairSync } from 'node:crypto'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Anchor, auditAnchor } from '../../src/audit/anchor.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { openVault } from '../../src/vault/vault.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { MemoryAudit } from './memory.ts'

let temporary: TemporaryStore
let repository: MemoryAudit
let anchor: Anchor
let errors: string[]
const key = generateKeyPairSync('ed25519').privateKey

beforeEach(async () => {
  temporary = await temporaryStore()
  const vault = await openVault(temporary.store, { file: join(dirname(temporary.path), 'master.key') })
  repository = new MemoryAudit()
  anchor = auditAnchor({ ...temporary.store, audit: repository, vault })
  errors = []
})
afterEach(() => temporary.remove())

/** Runs a process that starts on the log, writes an event and a checkpoint, and ends. */
async function run(): Promise<void> {
  const onError = ({ message }: Error) => void errors.push(message)
  const audit = new AuditLog({
    repository,
    now: () => 1_795_000_000_000,
    checkpoints: { key, anchor, onError },
  })
  await audit.record('service.start', {})
  await audit.close()
}
const noted = async () => (await anchor.read())?.sequence

test('follows the log', async () => {
  await run()
  await run()
  expect(await noted()).toBe(4)
  expect(errors).toEqual([])
})

test('stays when the end of the log was cut off or written anew, so that verify still misses it', async () => {
  for (let round = 0; round < 3; round++) await run()
  const whole = [...repository.rows]
  repository.rows = whole.slice(0, 3)
  await run()
  expect(await noted()).toBe(6)
  expect(errors).toEqual([expect.stringContaining('had a row 6 that it has no more')])
  // The log is longer than before: row 6 exists, but has other content.
  await run()
  await run()
  expect(repository.rows.length).toBeGreaterThan(6)
  expect(await noted()).toBe(6)
  repository.rows = whole
  await run()
  expect(await noted()).toBe(8)
})

test('is not made anew when somebody has removed or overwritten it', async () => {
  for (let round = 0; round < 3; round++) await run()
  const { settings } = temporary.store
  const genuine = (await settings.get('audit.anchor'))!
  await settings.set('audit.anchor', Buffer.from('something else'))
  await run()
  expect(await noted()).toBeUndefined()
  const stranger = new DatabaseSync(temporary.path)
  stranger.exec("delete from settings where name = 'audit.anchor'")
  stranger.close()
  await run()
  expect(await noted()).toBeUndefined()
  expect(errors).toHaveLength(2)
  await settings.set('audit.anchor', genuine)
  await run()
  expect(await noted()).toBe(12)
})

test('never goes back, whichever of two processes is slower', async () => {
  for (let round = 0; round < 3; round++) await run()
  const [early] = repository.rows.filter(({ sequence }) => sequence === 4)
  await anchor.note(early!)
  expect(await noted()).toBe(6)
  const { settings } = temporary.store
  expect(await settings.replace('audit.anchor', Buffer.from('before'), Buffer.from('after'))).toBe(false)
  expect(await settings.replace('audit.anchor', undefined, Buffer.from('after'))).toBe(false)
})
