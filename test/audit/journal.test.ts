/** Events while the database is away: kept on the disk, stored in order and once when it is back. */
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { chainRows } from '../../src/audit/chain.ts'
import { Backlog, type Mark, uploadTo } from '../../src/audit/journal/backlog.ts'
import type { JournalVault } from '../../src/audit/journal/file.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import { Secret } from '../../src/model/secret.ts'
import { StoreUnavailableError } from '../../src/store/engine/errors.ts'
import type { AuditRow, Away, Reach } from '../../src/store/store.ts'
import { open, seal } from '../../src/vault/seal.ts'
import { temporaryStore } from '../store/temp.ts'
import { until } from '../until.ts'
import { MemoryAudit } from './memory.ts'

const key = { id: randomBytes(8), key: Secret.of(randomBytes(32)) }
const vault: JournalVault = {
  seal: (place, secret) => seal(key, place, secret),
  open: (place, sealed) => open(key, place, sealed),
}

/** A database that goes away when a test says so. */
class Reachable implements Reach {
  away: Away | undefined
  readonly #listeners = new Set<(away: Away | undefined) => void>()
  check = async () => this.away === undefined
  onChange(listener: (away: Away | undefined) => void) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
  change(away: Away | undefined): void {
    this.away = away
    for (const listener of this.#listeners) listener(away)
  }
}

const AWAY = { since: 1, reason: 'gone' }

let folder: string
let reach: Reachable
let repository: MemoryAudit
let settings: Map<string, Uint8Array>
let errors: string[]
/** The answer to the next commit of kept events is lost, and the process with it. */
let isKilled: boolean
/** Marks cannot be removed. */
let keepsMarks: boolean

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-journal-'))
  reach = new Reachable()
  repository = new MemoryAudit()
  settings = new Map()
  errors = []
  isKilled = false
  keepsMarks = false
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Returns the log as a process that begins has it. */
function process(maximum?: number): { audit: AuditLog; backlog: Backlog } {
  const backlog = new Backlog({
    folder: join(folder, 'journal'),
    vault,
    audit: repository,
    settings: {
      get: async (name) => settings.get(name),
      remove: async (name) => {
        if (keepsMarks) throw new Error('the database is away')
        settings.delete(name)
      },
    },
    now: () => 1_795_000_000_000,
    ...(maximum !== undefined && { maximum }),
  })
  const upload = async (rows: AuditRow[], { name, value }: Mark) => {
    await repository.append(rows)
    settings.set(name, value)
    if (isKilled) await new Promise(() => undefined)
  }
  const onError = ({ message }: Error) => void errors.push(message)
  const audit = new AuditLog({
    repository,
    now: () => 1_795_000_000_000,
    outages: { reach, backlog, upload, onError },
  })
  return { audit, backlog }
}

const kept = () => readdirSync(join(folder, 'journal')).filter((name) => !name.endsWith('.lock'))
const stored = () => repository.rows.map(({ json }) => JSON.parse(json).fields.object)
const command = (audit: AuditLog, object: string) => audit.record('command', { object })

async function back(audit: AuditLog): Promise<void> {
  reach.change(undefined)
  await audit.flush()
}

test('are stored before all that comes later', async () => {
  const { audit } = process()
  await command(audit, 'a')
  reach.change(AWAY)
  for (const object of ['b', 'c']) await command(audit, object)
  expect(stored()).toEqual(['a'])
  expect(kept()).toHaveLength(1)
  expect(statSync(join(folder, 'journal', kept()[0]!)).mode & 0o777).toBe(0o600)
  reach.change(undefined)
  await Promise.all(['d', 'e'].map((object) => command(audit, object)))
  await audit.flush()
  expect(stored()).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect([kept(), settings.size, errors]).toEqual([[], 0, []])
  expect(await verifyAudit(repository)).toMatchObject({ rows: 5 })
})

test('nothing of them can be read on the disk', async () => {
  const { audit } = process()
  reach.change(AWAY)
  await command(audit, 'passwd secret')
  expect(readFileSync(join(folder, 'journal', kept()[0]!), 'latin1')).not.toMatch(/secret|command/)
})

test.each([true, false])('are stored once after a lost answer, if the commit stood: %s', async (stands) => {
  const { audit } = process()
  await command(audit, 'a')
  const append = repository.append.bind(repository)
  repository.append = async (rows) => {
    if (stands) await append(rows)
    reach.change(AWAY)
    repository.append = append
    throw new StoreUnavailableError('the connection ended')
  }
  await Promise.all(['b', 'c'].map((object) => command(audit, object)))
  await command(audit, 'd')
  await back(audit)
  expect(stored()).toEqual(['a', 'b', 'c', 'd'])
  expect(await verifyAudit(repository)).toMatchObject({ rows: 4 })
})

test('are stored after the connection alone was lost', async () => {
  const { audit } = process()
  repository.failure = new StoreUnavailableError('the connection ended')
  await command(audit, 'a')
  expect(stored()).toEqual(['a'])
})

test.each([true, false])(
  'an outage that nobody noticed: stored once, if the commit stood: %s',
  async (stands) => {
    const { audit } = process()
    await command(audit, 'a')
    const { append, last } = repository
    repository.append = async (rows) => {
      if (stands) await append.call(repository, rows)
      repository.append = append
      throw new StoreUnavailableError('the connection ended')
    }
    repository.last = async () => {
      repository.last = last
      throw new StoreUnavailableError('the connection ended')
    }
    await command(audit, 'b')
    await audit.flush()
    expect(stored()).toEqual(['a', 'b'])
    expect(kept()).toEqual([])
  },
)

test('are stored once if the process is killed after the commit', async () => {
  const before = process()
  reach.change(AWAY)
  await command(before.audit, 'a')
  isKilled = true
  reach.change(undefined)
  await until('the commit', () => settings.size > 0 || undefined)
  reach = new Reachable()
  expect(kept()).toHaveLength(1)
  await before.backlog.close()
  isKilled = false
  const { audit } = process()
  await audit.open()
  await command(audit, 'b')
  expect(stored()).toEqual(['a', 'b'])
  expect([kept(), settings.size]).toEqual([[], 0])
})

test('belong to the process that wrote them while it lives, and to another one when it has died', async () => {
  const [first, second] = [process(), process()]
  reach.change(AWAY)
  await command(first.audit, 'a')
  reach = new Reachable()
  const [third, fourth] = [process(), process()]
  for (const { audit } of [third, fourth]) await audit.open()
  expect(stored()).toEqual([])
  await command(third.audit, 'b')
  await first.backlog.close()
  await Promise.all([third, fourth].map(({ audit }) => audit.adopt()))
  expect(stored()).toEqual(['b', 'a'])
  expect(readdirSync(join(folder, 'journal'))).toEqual([])
  expect([settings.size, errors]).toEqual([0, []])
  await second.backlog.close()
})

test('a mark that another process has moved keeps its rows out', async () => {
  const temp = await temporaryStore()
  try {
    const upload = uploadTo(temp.store)
    const rows = chainRows(undefined, [{ time: 1, code: 'command', fields: { object: 'a' } }])
    const mark = (before: string | undefined, isFinished = false): Mark => ({
      name: 'journal.x',
      before: before === undefined ? undefined : Buffer.from(before),
      value: Buffer.from('2'),
      isFinished: async () => isFinished,
    })
    const changed = 'the journal was changed meanwhile: read it again'
    await expect(upload(rows, mark('1'))).rejects.toThrow(changed)
    await expect(upload(rows, mark(undefined, true))).rejects.toThrow(changed)
    expect(await temp.store.audit.last()).toBeUndefined()
    await upload(rows, mark(undefined))
    await expect(upload(rows, mark(undefined))).rejects.toThrow(changed)
    expect(await temp.store.audit.range(1, 9)).toHaveLength(1)
  } finally {
    await temp.remove()
  }
})

test('more than go up at a time keep their order', async () => {
  const { audit } = process()
  reach.change(AWAY)
  const objects = Array.from({ length: 1234 }, (_, n) => String(n))
  for (const object of objects) await command(audit, object)
  await back(audit)
  expect(stored()).toEqual(objects)
})

test('a last line that is not whole was never answered: it is left out', async () => {
  const { audit, backlog } = process()
  reach.change(AWAY)
  await command(audit, 'a')
  const file = join(folder, 'journal', kept()[0]!)
  appendFileSync(file, readFileSync(file).subarray(0, 40))
  await backlog.close()
  reach = new Reachable()
  const after = process()
  await after.audit.open()
  expect(stored()).toEqual(['a'])
  expect([kept(), errors]).toEqual([[], []])
})

test.each([
  ['changed', (lines: string[]) => [lines[0]!, lines[1]!.replace(/.{8}$/, 'AAAAAAAA'), lines[2]!]],
  ['taken out', (lines: string[]) => [lines[0]!, lines[2]!]],
  ['exchanged', (lines: string[]) => [lines[0]!, lines[2]!, lines[1]!]],
])('a line that was %s is told, with all that follow it, and the file stays', async (_, change) => {
  const { audit, backlog } = process()
  reach.change(AWAY)
  for (const object of ['a', 'b', 'c']) await command(audit, object)
  const file = join(folder, 'journal', kept()[0]!)
  writeFileSync(
    file,
    change(readFileSync(file, 'latin1').trimEnd().split('\n'))
      .map((line) => `${line}\n`)
      .join(''),
  )
  await backlog.close()
  reach = new Reachable()
  const after = process()
  await after.audit.open()
  expect(stored()).toEqual(['a'])
  expect(errors).toEqual([
    expect.stringMatching(/^line 2 of the journal .* is not the one .*; it is kept as .*damaged$/),
  ])
  expect(kept()).toEqual([expect.stringMatching(/\.damaged$/)])
  await command(after.audit, 'd')
  expect(stored()).toEqual(['a', 'd'])
  expect(settings.size).toBe(0)
})

test('a mark that could not be removed is when the database is there', async () => {
  const { audit, backlog } = process()
  reach.change(AWAY)
  await command(audit, 'a')
  const { mark } = (await backlog.next())!
  settings.set(mark.name, mark.value)
  backlog.done()
  keepsMarks = true
  await expect(backlog.next()).rejects.toThrow('the database is away')
  expect([kept(), backlog.isEmpty]).toEqual([[], false])
  keepsMarks = false
  expect(await backlog.next()).toBeUndefined()
  expect([settings.size, backlog.isEmpty]).toEqual([0, true])
})

test('a cut end is seen by the process that wrote it', async () => {
  const { audit } = process()
  reach.change(AWAY)
  for (const object of ['a', 'b']) await command(audit, object)
  const file = join(folder, 'journal', kept()[0]!)
  writeFileSync(file, `${readFileSync(file, 'latin1').split('\n')[0]}\n`)
  await back(audit)
  expect(stored()).toEqual(['a'])
  expect(errors).toEqual([expect.stringContaining('line 2 of the journal')])
})

test('a full journal refuses all but the ends of sessions, which have room of their own', async () => {
  const { audit } = process(8192)
  reach.change(AWAY)
  const refused: string[] = []
  for (let n = 0; n < 100; n++) {
    await command(audit, `${n}`).catch((error: Error) => refused.push(String(error.cause)))
  }
  expect(new Set(refused)).toEqual(
    new Set(['JournalError: the journal is full: more than 8192 bytes wait for the database']),
  )
  await audit.record('session.close', { result: 'failure' })
  await back(audit)
  expect(stored()).toHaveLength(100 - refused.length + 1)
})

test('without a folder to write to events are refused in words, as without the database', async () => {
  writeFileSync(join(folder, 'journal'), '')
  const { audit } = process()
  reach.change(AWAY)
  await expect(command(audit, 'a')).rejects.toMatchObject({
    message: 'the audit log could not be written',
    cause: { message: expect.stringMatching(/^the journal cannot be made: /) },
  })
})
