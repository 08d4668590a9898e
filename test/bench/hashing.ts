/**
 * The broker's cost of an SFTP upload, by thread: the one that relays, and all. Run it by hand, as root; it
 * measures and never fails. It measures processor time, which is the same on a busy machine.
 *
 *   node test/bench/hashing.ts [MIB] [ROUNDS] [RIGHT…]
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startBastion } from '../e2e/bastion.ts'
import { scp } from '../peers/openssh.ts'
import { randomFileBytes } from './file.ts'
import { median, table } from './stats.ts'

const [mebibytes = '512', rounds = '3', ...subprotocols] = process.argv.slice(2)
const TICKS_PER_SECOND = 100

/** Returns the seconds of processor time of each thread of a process, by its id. */
function threads(pid: number): Map<string, number> {
  const seconds = new Map<string, number>()
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const fields = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(') ')[1]!.split(' ')
    seconds.set(thread, (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND)
  }
  return seconds
}

const bastion = await startBastion(subprotocols.length > 0 ? { subprotocols } : {})
const local = join('/dev/shm', `sallyport-bench-${process.pid}`)
try {
  randomFileBytes(local, Number(mebibytes))
  const { pid } = bastion.broker
  const rows = { up: [] as number[][], down: [] as number[][] }
  const there = `/dev/shm/sallyport-bench-there-${process.pid}`
  for (let round = 0; round <= Number(rounds); round++) {
    for (const direction of ['up', 'down'] as const) {
      const before = threads(pid)
      const began = performance.now()
      const [from, to] = direction === 'up' ? [local, { remote: there }] : [{ remote: there }, '/dev/null']
      const { code, stderr } = await scp(bastion.home, bastion.login(), from, to, [], { timeout: 120_000 })
      if (code !== 0) throw new Error(stderr)
      const wall = (performance.now() - began) / 1000
      const spent = [...threads(pid)].map(([id, seconds]) => [id, seconds - (before.get(id) ?? 0)] as const)
      const main = spent.find(([id]) => id === String(pid))?.[1] ?? 0
      const all = spent.reduce((sum, [, seconds]) => sum + seconds, 0)
      // The first round warms up.
      if (round > 0)
        rows[direction].push([main, all, wall].map((seconds) => (seconds * 1024) / Number(mebibytes)))
    }
  }
  rmSync(there, { force: true })
  const line = (direction: 'up' | 'down') => [
    direction,
    ...[0, 1, 2].map((column) => median(rows[direction].map((row) => row[column]!)).toFixed(2)),
  ]
  console.log(
    table([['scp', 'main thread s/GiB', 'all threads s/GiB', 'wall s/GiB'], line('up'), line('down')]),
  )
} finally {
  rmSync(local, { force: true })
  await bastion.stop()
}
