/** The memory of idle sessions: of a new broker at its start, with each number of sessions, and after all have ended. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CrowdedBroker } from './crowded.ts'
import { ProcessTree } from './processor.ts'
import { table } from './stats.ts'

const MIB = 1024 * 1024
const KIB = 1024
/** Time in which what the last sessions left behind is collected: an idle process takes its time. */
const SETTLE_MS = 50_000

export interface Point {
  what: string
  sessions: number
  processes: { number: number; own: number; files: number }[]
  /** Resident bytes of all processes, with the files that they share counted once. */
  resident: number
}

/** Measures at the start, at each number of sessions (which rise), and after the end of all. */
export async function measureMemory(
  sessions: readonly number[],
  progress: (what: string) => void,
): Promise<Point[]> {
  const crowded = await CrowdedBroker.start(1)
  try {
    const tree = new ProcessTree(crowded.broker.pid)
    const points = [await point(tree, 'at start', 0)]
    for (const count of sessions) {
      progress(`${count} idle sessions`)
      await crowded.open(count)
      points.push(await point(tree, `${count} sessions`, count))
    }
    progress('the end of all')
    await crowded.close()
    await tree.quiet()
    points.push(await point(tree, 'after their end', 0))
    return points
  } finally {
    await crowded.stop()
  }
}

async function point(tree: ProcessTree, what: string, sessions: number): Promise<Point> {
  await sleep(SETTLE_MS)
  const processes = tree.memory()
  const files = Math.max(...processes.map((one) => one.files))
  return {
    what,
    sessions,
    processes,
    resident: processes.reduce((total, { own }) => total + own, files),
  }
}

export function showMemory(points: readonly Point[]): string {
  const start = points[0]
  return table([
    ['memory', 'resident, MiB', 'to start', 'KiB a session', 'of each process, and files'],
    ...points.map(({ what, sessions, processes, resident }) => [
      what,
      (resident / MIB).toFixed(0),
      `× ${(resident / (start?.resident ?? 1)).toFixed(2)}`,
      sessions === 0 ? '-' : ((resident - (start?.resident ?? 0)) / sessions / KIB).toFixed(0),
      [...processes.map(({ own }) => own), Math.max(...processes.map(({ files }) => files))]
        .map((bytes) => (bytes / MIB).toFixed(0))
        .join(' + '),
    ]),
  ])
}
