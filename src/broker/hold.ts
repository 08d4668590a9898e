/**
 * The broker's hold on its data folder: taken at the start, or taken over from a broker that runs there, whose
 * sessions run on.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ControlClient } from '../control/client.ts'
import { CONTROL_VERSION } from '../control/messages.ts'
import { CONTROL_SOCKET, replacedSockets } from '../control/place.ts'
import { FolderInUseError, holdDataFolder } from '../host/data-folder.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'

/** Milliseconds in which a broker has to close what only one may have. */
const HAND_OVER_MS = 120_000
/** Milliseconds in which what it has closed is free. */
export const FREE_MS = 5_000
const RETRY_MS = 20

export interface Takeover {
  /** Milliseconds for the sessions of the replaced broker. Absent: they run on until they end. */
  graceMs?: number
}

export class Hold {
  readonly #dataDir: string
  readonly #takeover: Takeover
  #release: (() => void) | undefined

  private constructor(dataDir: string, takeover: Takeover, release: (() => void) | undefined) {
    this.#dataDir = dataDir
    this.#takeover = takeover
    this.#release = release
  }

  /**
   * Holds the folder. If another broker holds it and `takeover` is set, makes sure that it can be replaced, and
   * leaves it in its place until `take`. Throws FolderInUseError, or why it cannot be replaced.
   */
  static async open(dataDir: string, takeover?: Takeover): Promise<Hold> {
    let release: (() => void) | undefined
    try {
      release = holdDataFolder(dataDir)
    } catch (error) {
      if (!takeover || !(error instanceof FolderInUseError)) throw error
    }
    const hold = new Hold(dataDir, takeover ?? {}, release)
    try {
      if (!release) await withBroker(dataDir, requireReplaceable)
      for (const path of replacedSockets(dataDir)) await requireAlike(path)
      return hold
    } catch (error) {
      hold.release()
      throw error
    }
  }

  /** Replaces the broker that holds the folder, if one does. Returns its process, or undefined. */
  async take(): Promise<number | undefined> {
    if (this.#release) return undefined
    const pid = await withBroker(this.#dataDir, async (broker) => {
      const { pid } = await broker.status()
      await broker.ask({ type: 'takeOver', pid: process.pid, ...this.#takeover }, HAND_OVER_MS)
      return pid
    })
    this.#release = await soon(
      () => holdDataFolder(this.#dataDir),
      (error) => error instanceof FolderInUseError,
    )
    return pid
  }

  /** Leaves the folder to another broker. Does nothing if it is not held. */
  release(): void {
    this.#release?.()
    this.#release = undefined
  }
}

/** Tries again for some seconds while the error is one that `isPassing`. */
export async function soon<T>(
  work: () => T | Promise<T>,
  isPassing: (error: unknown) => boolean,
): Promise<T> {
  const until = performance.now() + FREE_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isPassing(error) || performance.now() > until) throw error
      await sleep(RETRY_MS)
    }
  }
}

/** Throws unless the broker is ready to be replaced by this program. */
async function requireReplaceable(broker: ControlClient): Promise<void> {
  const { state, version, schema, pid } = await broker.status()
  if (state === 'starting')
    throw new Error(`the broker (process ${pid}) is starting: try again when it serves`)
  if (state !== 'serving')
    throw new Error(`the broker (process ${pid}) is stopping: start again when it has ended`)
  if (version === CONTROL_VERSION && schema === SCHEMA_VERSION) return
  throw new Error(
    `this version of sallyport cannot replace the one that runs (process ${pid}), because ` +
      `${schema === SCHEMA_VERSION ? 'they do not speak with one another' : 'it changes the database'}: ` +
      'stop that broker first (sallyport drain)',
  )
}

/** Throws if a broker that was replaced still has sessions, and cannot share the database with this program. */
async function requireAlike(path: string): Promise<void> {
  const broker = await ControlClient.connect(path)
  if (!broker) return
  try {
    const { version, schema, pid } = await broker.status()
    if (version === CONTROL_VERSION && schema === SCHEMA_VERSION) return
    throw new Error(
      `an older version of sallyport (process ${pid}) still has sessions here, and this one cannot work beside it: ` +
        'wait until they have ended, or end them (sallyport drain)',
    )
  } finally {
    broker.destroy()
  }
}

async function withBroker<T>(dataDir: string, work: (broker: ControlClient) => Promise<T>): Promise<T> {
  const broker = await ControlClient.connect(join(dataDir, CONTROL_SOCKET))
  if (!broker) {
    throw new Error(
      `the data folder ${dataDir} is in use by a process that has no control socket: it is starting or ending, or it is not a broker`,
    )
  }
  try {
    return await work(broker)
  } finally {
    broker.destroy()
  }
}
