import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StoredEvent } from '../../src/audit/chain.ts'
import type { EventCode } from '../../src/audit/events/catalogue.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import type { Feed } from '../../src/audit/feeds/feed.ts'
import { Feeds } from '../../src/audit/feeds/feeds.ts'
import { freshRegister, type Register } from '../../src/audit/feeds/register.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { type After, type Connection, type Sink, systemAfter } from '../../src/audit/sink.ts'
import { MemoryAudit } from './memory.ts'

/** Runs the feeds' timers faster: one second is 20 ms. */
export const hurried: After = (ms, action) => systemAfter(ms / 50, action)

export async function until(condition: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 10_000; !condition(); await sleep(5)) {
    if (Date.now() > deadline) throw new Error('the condition did not come true')
  }
}

export interface Fed {
  audit: AuditLog
  repository: MemoryAudit
  feeds: Feeds
  feed: Feed
  /** Folder of the positions. */
  folder: string
  record(code: EventCode, fields?: EventFields): Promise<void>
  /** Returns the stored events of this code. */
  events(code: EventCode): StoredEvent[]
  errors: Error[]
  /** Closes as a broker that stops. */
  close(): Promise<void>
}

export interface FedOptions {
  repository?: MemoryAudit
  folder?: string
  after?: After
  begin?: number
  /** Clock of the events. */
  now?: () => number
}

const folders: string[] = []
/** Registers by the folders of their positions. */
const registers = new Map<string, Register>()

function registerOf(folder: string): Register {
  let kept = freshRegister()
  const made: Register = {
    read: async () => kept,
    async write(registered) {
      kept = registered
    },
  }
  const register = registers.get(folder) ?? made
  registers.set(folder, register)
  return register
}

/** Removes the folders; call it after a test. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

/** Makes an audit log in memory whose events go to these receivers. */
export async function feeding(sinks: readonly Sink[], options: FedOptions = {}): Promise<Fed> {
  const { repository = new MemoryAudit(), after = hurried, begin, now = Date.now } = options
  let { folder } = options
  if (folder === undefined) {
    folder = join(mkdtempSync(join(tmpdir(), 'sallyport-feeds-')), 'sinks')
    folders.push(join(folder, '..'))
  }
  const errors: Error[] = []
  const audit = new AuditLog({ repository, now, onStored: (events) => feeds.stored(events) })
  const feeds = new Feeds({
    repository,
    folder,
    register: registerOf(folder),
    audit,
    onError: (error) => errors.push(error),
    after,
  })
  await feeds.open(sinks, begin)
  return {
    audit,
    repository,
    feeds,
    folder,
    errors,
    get feed() {
      return feeds.feeds[0]!
    },
    record: (code, fields = {}) => audit.record(code, fields),
    events: (code) =>
      repository.rows.filter((row) => row.code === code).map(({ json }) => JSON.parse(json) as StoredEvent),
    async close() {
      await audit.close()
      await feeds.close()
    },
  }
}

/** A receiver in memory that acknowledges its events, and can be down. */
export class MemorySink implements Sink {
  readonly type = 'syslog'
  readonly address: string
  readonly identity: string
  received: StoredEvent[] = []
  isAway = false
  /** Set to accept events and settle none of them. */
  isSilent = false
  /** Set to acknowledge more rows than there are. */
  isLiar = false
  /** Set to leave connections without any response. */
  isStuck = false
  #break: ((reason: string) => void) | undefined

  constructor(name = 'memory') {
    this.address = name
    this.identity = name
  }

  wants(): boolean {
    return true
  }

  get sequences(): number[] {
    return this.received.map(({ sequence }) => sequence)
  }

  /** Closes its connection. */
  leave(): void {
    this.isAway = true
    this.#break?.('it left')
  }

  async connect(...[{ settled, broken }]: Parameters<Sink['connect']>): Promise<Connection> {
    if (this.isAway) throw new Error('it is away')
    this.#break = broken
    return {
      send: async (events) => {
        if (this.isStuck) await new Promise(() => {})
        this.received.push(...events)
        const last = events.at(-1)
        if (last && !this.isSilent) settled(this.isLiar ? last.sequence + 1000 : last.sequence)
      },
      close: async () => {},
    }
  }
}
