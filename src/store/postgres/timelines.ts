/**
 * The latest timeline of a primary that a data folder has seen, in a file there. A failover begins a new timeline: a
 * former primary that came back unasked still takes writes, and a broker that starts then could not tell it from the
 * real one.
 */
import { randomUUID } from 'node:crypto'
import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { StoreUnavailableError } from '../engine/errors.ts'

const FILE = 'database.timeline'

/** A cluster by its identifier, which a dump that is restored on a new server does not carry; and its timeline. */
const CONTENT = /^(\d+) ([0-9A-F]{8})\n$/

export class Timelines {
  readonly #folder: string
  readonly #path: string
  /** The last note in work: of two hosts that answer at once the later timeline must stay. */
  #noting: Promise<unknown> = Promise.resolve()

  /** `folder`: the data folder. */
  constructor(folder: string) {
    this.#folder = folder
    this.#path = join(folder, FILE)
  }

  /**
   * Notes the timeline of a server of that cluster, if it is later than the one that was seen before. Nothing is
   * known of a cluster without an identifier: two of them may be different ones.
   * @throws StoreUnavailableError if it is an earlier one of the same cluster
   */
  async see(cluster: string, timeline: string): Promise<void> {
    if (cluster === '') return
    const noted = this.#noting.then(() => this.#note(cluster, timeline))
    this.#noting = noted.catch(() => undefined)
    await noted
  }

  async #note(cluster: string, timeline: string): Promise<void> {
    const [, known, latest = ''] = CONTENT.exec(await readFile(this.#path, 'latin1').catch(() => '')) ?? []
    const isSame = known === cluster
    if (isSame && timeline < latest)
      throw new StoreUnavailableError(
        `it is of timeline ${timeline}, and this bastion has worked with ${latest}: another server has taken over ` +
          `(if it was put back to an earlier state on purpose, remove ${this.#path} and start again)`,
      )
    if (isSame && timeline === latest) return
    const made = `${this.#path}.${randomUUID()}`
    try {
      await writeFile(made, `${cluster} ${timeline}\n`, { mode: 0o600, flush: true })
      const { uid, gid } = await stat(this.#folder)
      // A command of root must not take it from the broker.
      if (process.geteuid?.() === 0 && uid !== 0) await chown(made, uid, gid)
      await rename(made, this.#path)
    } catch {
      // A full disk is no reason to do without the database: the next process notes it.
      await rm(made, { force: true }).catch(() => undefined)
    }
  }
}

/** Returns the identifier of the server's cluster, or nothing if the server keeps it from its users. */
export async function clusterOf(client: pg.ClientBase): Promise<string> {
  const asked = client.query<{ id: string }>('select system_identifier::text as id from pg_control_system()')
  const { rows } = await asked.catch(() => ({ rows: [] as { id: string }[] }))
  return rows[0]?.id ?? ''
}
