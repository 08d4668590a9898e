import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT, type SourceFile, sourceFiles } from './imports.ts'
import { type Room, TIERS } from './rules.ts'

const PAGE = join(ROOT, 'docs/architecture.md')
const BEGIN = '<!-- imports:begin -->'
const END = '<!-- imports:end -->'
/** Modules that a pure room may not import. `node:net` depends on the imported names. */
const OF_IO =
  /^node:(fs|fs\/promises|tls|dgram|dns|dns\/promises|http|http2|https|child_process|worker_threads|cluster|sqlite|timers|timers\/promises|readline|process)$/
/** Values that differ from run to run. Keys and nonces come from `node:crypto`, which is allowed. */
const OF_CHANCE = /\bDate\.now\(|new Date\(\)|performance\.now\(|process\.hrtime|Math\.random\(/g
const NET_WITHOUT_IO = /^import \{ (?:(?:BlockList|isIP|isIPv4|isIPv6|SocketAddress),? ?)+\} from 'node:net'$/

const ROOMS: ReadonlyMap<string, Room> = new Map(TIERS.flatMap(({ rooms }) => Object.entries(rooms)))
const FILES = sourceFiles()

/** Returns the room of a file: the longest folder above it with a row. */
function roomOf(path: string): string | undefined {
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
    if (ROOMS.has(folder)) return folder
  }
  return undefined
}

/** Returns the rooms that each room's files import now. */
function importedRooms(files: readonly SourceFile[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const { path, imports } of files) {
    const room = roomOf(path)!
    const others = found.get(room) ?? new Set()
    found.set(room, others)
    for (const imported of imports) if (roomOf(imported) !== room) others.add(roomOf(imported)!)
  }
  return found
}

function table(): string {
  const name = (room: string): string => `\`${room}/\``
  const rows = TIERS.flatMap(({ title, rooms }) => [
    `| **${title}** | |`,
    ...Object.entries(rooms).map(([room, { may, isPure }]) => {
      return `| ${name(room)}${isPure ? ' (pure)' : ''} | ${may.map(name).join(', ') || 'nothing of ours'} |`
    }),
  ])
  return ['| room | may import |', '|---|---|', ...rows].join('\n')
}

describe('the rooms', () => {
  test('hold every file of the product', () => {
    expect(FILES.length).toBeGreaterThan(500)
    expect(FILES.filter(({ path }) => roomOf(path) === undefined).map(({ path }) => path)).toEqual([])
  })

  test('are imported only where their row says so, by types neither', () => {
    const strangers = FILES.flatMap(({ path, imports }) =>
      imports
        .filter((imported) => {
          const [from, to] = [roomOf(path)!, roomOf(imported)!]
          return from !== to && !ROOMS.get(from)!.may.includes(to)
        })
        .map((imported) => `${path} imports ${imported}`),
    )
    expect(strangers).toEqual([])
  })

  test('have no permission that nothing uses', () => {
    const imported = importedRooms(FILES)
    const unused = [...ROOMS].flatMap(([room, { may }]) =>
      may.filter((other) => !imported.get(room)?.has(other)).map((other) => `${room} may import ${other}`),
    )
    expect(unused).toEqual([])
  })

  test('import rooms that stand above them', () => {
    const order = [...ROOMS.keys()]
    const upward = [...ROOMS].flatMap(([room, { may }], row) =>
      may
        .filter((other) => !(order.indexOf(other) < row && ROOMS.has(other)))
        .map((other) => `${room} imports ${other}`),
    )
    expect(upward).toEqual([])
  })

  test('that are pure do no I/O', () => {
    const found = FILES.filter(({ path }) => ROOMS.get(roomOf(path)!)!.isPure).flatMap(
      ({ path, modules }) => {
        const lines = readFileSync(join(ROOT, path), 'utf8').split('\n')
        const net = lines.filter((line) => line.endsWith("from 'node:net'") && !NET_WITHOUT_IO.test(line))
        return [...modules.filter((name) => OF_IO.test(name)), ...net].map((name) => `${path}: ${name}`)
      },
    )
    expect(found).toEqual([])
  })

  test('that are pure read no clock and draw no lots', () => {
    const found = FILES.filter(({ path }) => ROOMS.get(roomOf(path)!)!.isPure).flatMap(({ path }) =>
      [...readFileSync(join(ROOT, path), 'utf8').matchAll(OF_CHANCE)].map(([name]) => `${path}: ${name}`),
    )
    expect(found).toEqual([])
  })
})

test('docs/architecture.md shows the rows; a run outside of CI writes them', () => {
  const page = readFileSync(PAGE, 'utf8')
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  expect(begin, `${BEGIN} in docs/architecture.md`).toBeGreaterThan(-1)
  expect(end, `${END} in docs/architecture.md`).toBeGreaterThan(begin)
  const written = `${page.slice(0, begin)}${BEGIN}\n${table()}\n${page.slice(end)}`
  if (!process.env['CI'] && page !== written) writeFileSync(PAGE, written)
  else expect(page).toBe(written)
})
