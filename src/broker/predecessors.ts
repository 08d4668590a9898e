/**
 * The brokers that were replaced and whose sessions run on, as this broker sees them by their control sockets:
 * it counts their sessions, ends them on request, and accounts for those of a broker that dies.
 */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ControlClient } from '../control/client.ts'
import type { LinkedHold, LinkedSession } from '../control/messages.ts'
import { replacedSockets } from '../control/place.ts'
import type { ElsewhereSession } from '../gate/elsewhere.ts'
import type { OrderedBy } from '../gate/holds.ts'
import type { Id } from '../model/objects.ts'
import type { BrokerFigures } from './nodes.ts'

export interface PredecessorsOptions {
  dataDir: string
  /** Has the running sessions of all of them. */
  elsewhere: Map<Id, ElsewhereSession>
  /** Called for each session when it becomes known. */
  onFound: (session: LinkedSession) => void
  /** Called when a session has ended there, in order. */
  onClosed: (session: LinkedSession) => void
  /** Called when a broker has ended, in whatever way, before `onLost` for the sessions that it had. */
  onGone: () => void
  /** Called when the session's broker has died. */
  onLost: (session: LinkedSession) => void
  onError: (error: Error) => void
}

/** Milliseconds before a link is tried again; doubled with each attempt, up to the last. */
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 10_000
/** Tries at the start, which fails then: the sessions of that broker would not be counted. */
const FIRST_TRIES = 5

/** A replaced broker, as its last link has shown it. */
interface Known {
  place: number
  isLinked: boolean
  sessions: ReadonlyMap<Id, LinkedSession>
}

export class Predecessors {
  readonly #options: PredecessorsOptions
  readonly #clients = new Set<ControlClient>()
  /** By the path of their control sockets. */
  readonly #brokers = new Map<string, Known>()
  /** Place of the last one; this broker has the first. */
  #lastPlace = 1
  #isClosed = false

  constructor(options: PredecessorsOptions) {
    this.#options = options
  }

  /** Links all that run. Rejects if one does not say which sessions it has. */
  async open(): Promise<void> {
    for (const path of replacedSockets(this.#options.dataDir)) await this.#linkFirst(path)
  }

  get figures(): BrokerFigures[] {
    return Array.from(this.#brokers.values(), ({ place, isLinked, sessions }) => ({
      place,
      state: isLinked ? 'replaced' : 'unlinked',
      sessions: sessions.size,
    }))
  }

  /** Leaves them alone. */
  close(): void {
    this.#isClosed = true
    for (const client of this.#clients) client.destroy()
  }

  /** Links the broker there. One that has no sessions may be ending just now. */
  async #linkFirst(path: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#link(path, new Map())
        return
      } catch (error) {
        if (tries === FIRST_TRIES) throw error
        await sleep(FIRST_RETRY_MS)
      }
    }
  }

  /** Links the broker there. `known` are the sessions of an earlier link to it. */
  async #link(path: string, known: ReadonlyMap<Id, LinkedSession>): Promise<void> {
    const { elsewhere, onFound, onClosed, onGone, onLost } = this.#options
    const client = await ControlClient.connect(path)
    const sessions = new Map<Id, LinkedSession>()
    if (client) {
      this.#clients.add(client)
      client.onNews = (news) => {
        if (news.type === 'closed') this.#closed(sessions, news.session)
        else if (news.type === 'held') this.#held(sessions, news.session, news.hold)
        else for (const session of news.sessions) sessions.set(session.id, session)
      }
      try {
        await requireLink(client, path)
      } catch (error) {
        this.#clients.delete(client)
        throw error
      }
    } else {
      rmSync(path, { force: true })
      this.#brokers.delete(path)
      onGone()
    }
    for (const session of known.values()) {
      // Its end may have been reported in an attempt that failed.
      if (sessions.has(session.id) || !elsewhere.delete(session.id)) continue
      if (client) onClosed(session)
      else onLost(session)
    }
    if (!client) return
    for (const session of sessions.values()) {
      elsewhere.set(session.id, { ...session, ...orders(client, session.id) })
      if (!known.has(session.id)) onFound(session)
    }
    const broker: Known = { place: this.#placeOf(path), isLinked: true, sessions }
    this.#brokers.set(path, broker)
    void client.onClosed.then(() => {
      broker.isLinked = false
      this.#clients.delete(client)
      void this.#linkAgain(path, sessions)
    })
  }

  /** Tries until the broker there says which sessions it has, or is gone. Reports the first failure. */
  async #linkAgain(path: string, known: ReadonlyMap<Id, LinkedSession>): Promise<void> {
    for (let delay = FIRST_RETRY_MS; !this.#isClosed; delay = Math.min(2 * delay, LAST_RETRY_MS)) {
      try {
        await this.#link(path, known)
        return
      } catch (error) {
        if (delay === FIRST_RETRY_MS) this.#options.onError(error as Error)
        await sleep(delay, undefined, { ref: false })
      }
    }
  }

  #placeOf(path: string): number {
    return this.#brokers.get(path)?.place ?? ++this.#lastPlace
  }

  #held(sessions: Map<Id, LinkedSession>, id: Id, hold: LinkedHold | undefined): void {
    const session = sessions.get(id)
    if (!session) return
    if (hold) session.hold = hold
    else delete session.hold
    const known = this.#options.elsewhere.get(id)
    if (known) known.hold = hold
  }

  #closed(sessions: Map<Id, LinkedSession>, id: Id): void {
    const session = sessions.get(id)
    if (!session) return
    sessions.delete(id)
    if (this.#options.elsewhere.delete(id)) this.#options.onClosed(session)
  }
}

async function requireLink(client: ControlClient, path: string): Promise<void> {
  try {
    await client.ask({ type: 'link' })
  } catch (error) {
    client.destroy()
    throw new Error(
      `a broker that was replaced still has sessions, and does not say which (${path}): ${(error as Error).message}`,
      { cause: error },
    )
  }
}

function orders(client: ControlClient, session: Id): Pick<ElsewhereSession, 'kill' | 'suspend' | 'release'> {
  const kill: ElsewhereSession['kill'] = async (reason, by, apiKey) => {
    const answer = await client.ask({
      type: 'kill',
      session,
      reason,
      by,
      ...(apiKey !== undefined && { apiKey }),
    })
    return answer.type === 'killed' && answer.wasRunning
  }
  const suspend = async ({ name, apiKey }: OrderedBy, reason?: string) => {
    const answer = await client.ask({
      type: 'suspend',
      session,
      by: name,
      ...(reason !== undefined && { reason }),
      ...(apiKey !== undefined && { apiKey }),
    })
    return answer.type === 'suspended' ? answer.result : 'not_running'
  }
  return {
    kill,
    suspend: async (reason, by) => (await suspend(by, reason)) === 'suspended',
    release: async (by) => {
      const result = await suspend(by)
      return result === 'suspended' ? 'not_suspended' : result
    },
  }
}
