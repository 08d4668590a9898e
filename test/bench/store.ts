/**
 * The store on both engines: SQLite and PostgreSQL beside each other, and beside SQLite at an older commit. Each side is a
 * program of its own (store-side.ts), and each round asks all of them in random order. The server writes to the disk as
 * in service.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ENGINE, SERVER } from '../peers/databases.ts'
import type { Postgres } from '../peers/postgres.ts'
import { startWithTemplate } from '../peers/postgres-setup.ts'
import { ProcessTree } from './processor.ts'
import { median, percentile, shuffled, table } from './stats.ts'
import {
  CLIENTS,
  type Revoked,
  type SideNews,
  type SideOrder,
  type Took,
  WORKS,
  type Work,
} from './store-side.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The measuring program: runs in the older tree too. */
const PROGRAM = 'test/bench/store-side.ts'
/** Files that it needs besides, as they are now. */
const BROUGHT = ['test/gate/crowd.ts', 'test/store/temp.ts', 'test/peers/databases.ts', 'test/peers/sql.ts']
/** Time for a measuring program to remove its data. */
const END_MS = 30_000

/** As a server in service, which tests' settings are not. */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  autovacuum: 'on',
  shared_buffers: '128MB',
}

export const SIDES = ['sqlite before', 'sqlite', 'postgres'] as const
export type SideName = (typeof SIDES)[number]

export interface StoreOptions {
  rounds: number
  /** Of the whole count of each work, the part that a round does. */
  part: number
  /** Running sessions of the withdrawal; 0: none is measured. */
  sessions: number
  /** An older commit. */
  against: string | undefined
  progress: (what: string) => void
}

/** A round of a work; `server`: milliseconds of processor time of the server's processes. */
export interface Round extends Took {
  side: SideName
  work: Work
  round: number
  server?: number
}

export interface StoreFigures {
  rounds: Round[]
  revoked: (Revoked & { side: SideName; server?: number })[]
}

/** A program that measures. */
class Side {
  readonly name: SideName
  readonly #program: ChildProcess
  readonly #server: ProcessTree | undefined

  constructor(name: SideName, tree: string, server?: Postgres) {
    this.name = name
    this.#program = fork(join(tree, PROGRAM), {
      cwd: tree,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: { ...process.env, ...(server && { [ENGINE]: 'postgres', [SERVER]: String(server.port) }) },
    })
    this.#server = server && new ProcessTree(server.pid)
  }

  /** Returns the answer, and milliseconds of the server's processor time. */
  async ask(order: SideOrder): Promise<{ news: SideNews; server?: number }> {
    const before = this.#server?.spent().all ?? 0
    const answer = new Promise<SideNews>((resolve, reject) => {
      const ended = () => reject(new Error(`the measuring program of ${this.name} has ended`))
      this.#program.once('exit', ended)
      this.#program.once('message', (news: SideNews) => {
        this.#program.off('exit', ended)
        resolve(news)
      })
    })
    this.#program.send(order)
    const news = await answer
    if ('failed' in news) throw new Error(`${this.name}: ${news.failed}`)
    return { news, ...(this.#server && { server: (this.#server.spent().all - before) * 1000 }) }
  }

  /** Ends the program, which removes its data; one that does not is killed. */
  async end(): Promise<void> {
    if (this.#program.exitCode !== null || !this.#program.connected) return
    const ended = new Promise((resolve) => this.#program.once('exit', resolve))
    const timer = setTimeout(() => this.#program.kill('SIGKILL'), END_MS)
    this.#program.send({ end: true } satisfies SideOrder)
    await ended
    clearTimeout(timer)
  }
}

export async function measureStore(options: StoreOptions): Promise<StoreFigures> {
  const { against, progress } = options
  progress('a PostgreSQL server')
  const server = await startWithTemplate(SETTINGS)
  const old = against === undefined ? undefined : olderTree(against)
  const open = (name: SideName): Side =>
    name === 'postgres'
      ? new Side(name, ROOT, server)
      : new Side(name, name === 'sqlite' ? ROOT : old!.folder)
  const names = SIDES.filter((name) => name !== 'sqlite before' || old)
  const figures: StoreFigures = { rounds: [], revoked: [] }
  try {
    const sides = names.map(open)
    try {
      figures.rounds = await measureRounds(sides, options)
    } finally {
      await Promise.all(sides.map((side) => side.end()))
    }
    if (options.sessions > 0) {
      for (const name of shuffled(names)) {
        progress(`${options.sessions} sessions lose their right: ${name}`)
        const side = open(name)
        try {
          const { news, server: spent } = await side.ask({ revoke: options.sessions })
          if ('revoked' in news)
            figures.revoked.push({
              side: name,
              ...news.revoked,
              ...(spent !== undefined && { server: spent }),
            })
        } finally {
          await side.end()
        }
      }
    }
    return figures
  } finally {
    await server.stop()
    old?.remove()
  }
}

/** Asks all sides in random order, in each round and before the first to warm them up. */
async function measureRounds(sides: readonly Side[], options: StoreOptions): Promise<Round[]> {
  const rounds: Round[] = []
  for (let round = 0; round <= options.rounds; round++) {
    options.progress(round === 0 ? 'warm-up' : `round ${round}`)
    for (const work of Object.keys(WORKS) as Work[]) {
      const count = Math.max(1, Math.round(WORKS[work] * options.part))
      for (const side of shuffled(sides)) {
        const { news, server } = await side.ask({ work, count })
        if (round > 0 && 'took' in news)
          rounds.push({ side: side.name, work, round, ...news.took, ...(server !== undefined && { server }) })
      }
    }
  }
  return rounds
}

/** Checks the commit out in a folder of its own, with the packages of this tree and what measures. */
function olderTree(commit: string): { folder: string; remove: () => void } {
  const folder = join(mkdtempSync(join(tmpdir(), 'sallyport-older-')), 'tree')
  const git = (...args: string[]) => execFileSync('git', ['-C', ROOT, ...args], { stdio: 'pipe' })
  const remove = () => {
    git('worktree', 'remove', '--force', folder)
    rmSync(dirname(folder), { recursive: true, force: true })
  }
  git('worktree', 'add', '--detach', folder, commit)
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    for (const file of [PROGRAM, ...BROUGHT]) copyFileSync(join(ROOT, file), join(folder, file))
  } catch (error) {
    remove()
    throw error
  }
  return { folder, remove }
}

/** A cell with the median of the rounds and their spread, the quarters. */
function spread(values: readonly number[], digits: number): string {
  const at = (p: number) => percentile(values, p).toFixed(digits)
  return `${at(0.5)} (${at(0.25)}–${at(0.75)})`
}

/** Tables of the works, and of the withdrawal. */
export function showStore({ rounds, revoked }: StoreFigures): string {
  const names = SIDES.filter((name) => rounds.some(({ side }) => side === name))
  const hasOlder = names.includes('sqlite before')
  const of = (side: SideName, work: Work) => rounds.filter((one) => one.side === side && one.work === work)
  const each = (value: (one: Round) => number) => (one: Round) => (value(one) * 1000) / one.count
  const cpu = each((one) => one.cpu)
  const loop = each((one) => one.loop)
  // Of one round each, which was measured at the same time.
  const ratios = (work: Work, value: (one: Round) => number) =>
    of('sqlite', work).flatMap((now) => {
      const before = of('sqlite before', work).find(({ round }) => round === now.round)
      return before ? [value(before) / value(now)] : []
    })
  const works = Object.keys(WORKS) as Work[]
  return [
    table([
      [
        'processor time of one, µs',
        ...names,
        'the server',
        ...(hasOlder ? ['before / now', 'of the loop'] : []),
      ],
      ...works.map((work) => [
        work,
        ...names.map((side) => spread(of(side, work).map(cpu), 0)),
        median(of('postgres', work).map(each((one) => one.server ?? 0))).toFixed(0),
        ...(hasOlder ? [spread(ratios(work, cpu), 2), spread(ratios(work, loop), 2)] : []),
      ]),
    ]),
    table([
      ['elapsed', ...names],
      ...works.map((work) => [
        isOneByOne(work) ? `${work}, median, ms` : `${work}, a second`,
        ...names.map((side) =>
          isOneByOne(work)
            ? spread(
                of(side, work).map((one) => one.median ?? Number.NaN),
                2,
              )
            : spread(
                of(side, work).map(({ count, wall }) => (count * 1000) / wall),
                0,
              ),
        ),
      ]),
    ]),
    ...(revoked.length === 0 ? [] : [showRevoked(revoked)]),
  ].join('\n\n')
}

const isOneByOne = (work: Work): boolean => work !== `events of ${CLIENTS} clients`

function showRevoked(revoked: StoreFigures['revoked']): string {
  const count = revoked[0]?.told.count ?? 0
  return table([
    [`${count} sessions lose their right, ms`, 'told, elapsed', 'processor', 'closed, elapsed', 'processor'],
    ...revoked.map(({ side, told, closed }) => [
      side,
      ...[told.wall, told.cpu, closed.wall, closed.cpu].map((value) => value.toFixed(0)),
    ]),
  ])
}
