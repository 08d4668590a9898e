/** The cage of a session worker: real processes try what it forbids, and do what they have to. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Cage } from '../../src/confine/cage.ts'
import { confined } from '../../src/confine/command.ts'
import { programFiles } from '../../src/confine/program-files.ts'
import type { CageReport } from '../../src/confine/report.ts'
import { tryCage } from '../../src/confine/try-cage.ts'
import type { Places } from './attempts.ts'

const HERE = import.meta.dirname
const ROOT = join(HERE, '../..')
const isRoot = process.getuid!() === 0
/** The workers' user. A broker that root has not started gives them none. */
const NOBODY = isRoot ? { uid: 65_534, gid: 65_534 } : {}
const OPEN_FILES = 128
const MEMORY = 2 ** 30
const CAGE: Cage = {
  keepOpen: [3, 4],
  readable: [...programFiles(), HERE],
  listens: false,
  openFiles: OPEN_FILES,
  memory: MEMORY,
  isolates: 2,
  threads: 256,
}
const NODE = ['--disable-warning=ExperimentalWarning']

let folder: string
let places: Omit<Places, 'victim'>
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'confine-'))
  chmodSync(folder, 0o777)
  places = {
    secret: join(folder, 'secret'),
    open: join(folder, 'open'),
    folder,
    openFiles: OPEN_FILES,
    memory: 4 * MEMORY,
  }
  for (const path of [places.secret, join(folder, 'doomed')]) {
    writeFileSync(path, 'a secret', { mode: 0o600 })
    if (isRoot) chownSync(path, 65_534, 65_534)
  }
  writeFileSync(places.open, 'no secret', { mode: 0o644 })
})
const running: ChildProcess[] = []
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  rmSync(folder, { recursive: true })
})

async function output(file: string, args: readonly string[], options: object): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(file, args, { ...options, timeout: 300_000 })
  expect(stderr).toBe('')
  return String(stdout)
}

/** Runs a program without a cage, as a worker's user. */
const free = (program: string, ...args: string[]) =>
  output(process.execPath, [...NODE, join(HERE, program), ...args], { ...NOBODY, env: {} })

/** Runs a program in a cage. `keeper`: the user that stands for the broker. */
const caged = (keeper: object, cage: Cage, program: string, ...args: string[]) =>
  output(
    process.execPath,
    [...NODE, join(HERE, 'keeper.ts'), JSON.stringify(cage), join(HERE, program), ...args],
    { ...keeper, env: {} },
  )

async function start(file: string, args: readonly string[], options: object): Promise<ChildProcess> {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  running.push(child)
  await once(child, 'spawn')
  return child
}
const startVictim = () => start('sleep', ['60'], { ...NOBODY })

async function attempts(run: (...args: string[]) => Promise<string>, mode: string, victim: number) {
  const said = await run(mode, JSON.stringify({ ...places, victim } satisfies Places))
  return JSON.parse(said) as Record<string, string>
}

/** The result of each attempt without a cage, and in it. */
const ATTEMPTS: Readonly<Record<string, readonly [free: string, caged: string]>> = {
  'listen on a port': ['done', 'EACCES'],
  'listen on a port of no choice': ['done', 'EPERM'],
  "read a file of the user's": ['done', 'EACCES'],
  "read everybody's file": ['done', 'EACCES'],
  "write a file of the user's": ['done', 'EACCES'],
  'make a file': ['done', 'EACCES'],
  'make a folder': ['done', 'EACCES'],
  'cut a file': ['done', 'EACCES'],
  'remove a file': ['done', 'EACCES'],
  "read another process's memory by its file": ['done', 'EACCES'],
  "read another process's environment": ['done', 'EACCES'],
  "read another process's memory by a call": ['EFAULT', 'EPERM'],
  'trace another process': ['done', 'EPERM'],
  'hold another process': ['done', 'EPERM'],
  'signal another process': ['done', 'EPERM'],
  'signal all processes': ['done', 'EPERM'],
  'signal a thread by its number alone': ['done', 'EPERM'],
  'limit another process': ['done', 'EPERM'],
  'slow another process down': ['done', 'EPERM'],
  'start a program': ['done', 'EPERM'],
  'become another program': ['ENOENT', 'EPERM'],
  'start a process': ['EINVAL', 'EPERM'],
  'open too many files': ['done', 'EMFILE'],
  'take too much memory': ['done', 'ENOMEM'],
  'take shared memory': ['done', 'EPERM'],
  'take memory as a file': ['done', 'EPERM'],
  'share memory': ['done', 'EPERM'],
  'reach a service of the machine': ['done', 'EPERM'],
  'reach a service of the machine by one of a pair': ['done', 'EPERM'],
  'use another transport': ['done', 'EPERM'],
  'set up a ring': ['done', 'EPERM'],
  'use keys of the kernel': ['done', 'EPERM'],
  'become root of a namespace': ['EINVAL', 'EPERM'],
  'take over page faults': ['done', 'EPERM'],
  'type into the terminal': ['ENOTTY', 'EPERM'],
  'name a file by its number': ['EOVERFLOW', 'EPERM'],
}
const column = (index: 0 | 1) =>
  Object.fromEntries(Object.entries(ATTEMPTS).map(([name, outcomes]) => [name, outcomes[index]]))

describe('a worker that was taken over', () => {
  test('can do all of this without a cage', async () => {
    const victim = await startVictim()
    expect(await attempts((...args) => free('attempts.ts', ...args), 'free', victim.pid!)).toEqual(column(0))
  })

  test.runIf(isRoot)('can do nothing of it in the cage of a broker that root has started', async () => {
    const victim = await startVictim()
    const run = (...args: string[]) => caged({}, { ...CAGE, ...NOBODY }, 'attempts.ts', ...args)
    expect(await attempts(run, 'settled', victim.pid!)).toEqual(column(1))
  })

  test("can do nothing of it as the broker's own user either", async () => {
    const victim = await startVictim()
    const run = (...args: string[]) => caged(NOBODY, CAGE, 'attempts.ts', ...args)
    expect(await attempts(run, 'settled', victim.pid!)).toEqual(column(1))
  })

  test('is refused by Node too, before it asks the kernel', async () => {
    const code = `import { settle } from ${JSON.stringify(join(ROOT, 'src/confine/settle.ts'))}
import { readFileSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
settle()
const errors = [() => readFileSync(${JSON.stringify(places.open)}), () => writeFileSync('/tmp/x', ''), () => spawnSync('true')]
  .map((attempt) => { try { attempt(); return 'done' } catch (error) { return error.code } })
process.stdout.write(errors.join(' '))`
    const command = confined(
      { arguments: ['--input-type=module', '--eval', code], env: {} },
      { ...CAGE, ...NOBODY, keepOpen: [] },
    )
    expect(await output(command.file, command.arguments, command)).toBe(
      'ERR_ACCESS_DENIED ERR_ACCESS_DENIED ERR_ACCESS_DENIED',
    )
  })
})

test('the memory of a worker is closed to processes of its own user that have no cage', async () => {
  const command = confined(
    { arguments: [join(HERE, 'idle.ts')], env: {} },
    { ...CAGE, ...NOBODY, keepOpen: [] },
  )
  const worker = await start(command.file, command.arguments, command)
  await once(worker.stdout!, 'data')
  const said = await attempts((...args) => free('attempts.ts', ...args), 'free', worker.pid!)
  expect(said).toMatchObject({
    "read another process's memory by its file": 'EACCES',
    "read another process's environment": 'EACCES',
    "read another process's memory by a call": 'EPERM',
    'trace another process': 'EPERM',
    'signal another process': 'done',
  })
})

describe('a worker in its cage', () => {
  async function peaceful(cage: Cage): Promise<Record<string, unknown>> {
    const server = createServer({ allowHalfOpen: true }, (socket) => socket.end('pong'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const said = await caged({}, cage, 'peaceful.ts', String(port))
      expect(said).toMatch(/through the pipe/)
      return JSON.parse(said.replace('through the pipe', ''))
    } finally {
      server.close()
    }
  }

  test('has its descriptors and its channel from the first message on, and does its work', async () => {
    const { report, limits, ...done } = await peaceful({ ...CAGE, ...NOBODY })
    expect(done).toEqual({
      answer: 'pong',
      addresses: expect.arrayContaining(['127.0.0.1']),
      thought: 42,
      timers: 100,
      binding: true,
      foreign: true,
      source: true,
      packages: expect.any(Number),
      memory: true,
      isFirstWithoutMemory: true,
      random: 8,
      unzipped: 'text',
      authorities: true,
      messages: 101,
      environment: {},
      arguments: [expect.any(String)],
    })
    expect(report).toEqual({
      uid: isRoot ? NOBODY.uid : process.getuid!(),
      gid: isRoot ? NOBODY.gid : process.getgid!(),
      capabilities: false,
      noNewPrivileges: true,
      landlock: expect.any(Number),
      seccomp: true,
      dumpable: false,
      permission: true,
      missing: [],
    })
    expect(limits).toMatch(/Max core file size +0 +0/)
    expect(limits).toMatch(/Max open files +128 +128/)
    if (isRoot) expect(limits).toMatch(/Max processes +256 +256/)
  })

  test('has none of the capabilities of a broker that is root', async () => {
    const { capabilities, uid } = await tryCage({ ...CAGE, keepOpen: [] })
    expect({ capabilities, uid }).toEqual({ capabilities: false, uid: process.getuid!() })
  })

  test.runIf(isRoot)('is tried from a folder that is closed to its user', async () => {
    const here = process.cwd()
    const closed = join(folder, 'closed')
    mkdirSync(closed, { mode: 0o700 })
    process.chdir(closed)
    try {
      expect(await tryCage({ ...CAGE, ...NOBODY, keepOpen: [] })).toMatchObject({
        uid: NOBODY.uid,
        missing: [],
      })
    } finally {
      process.chdir(here)
    }
  })

  test('that listens does so on the socket of its broker', async () => {
    const run = (...args: string[]) =>
      caged({}, { ...CAGE, ...NOBODY, listens: true }, 'attempts.ts', ...args)
    const victim = await startVictim()
    expect(await attempts(run, 'settled', victim.pid!)).toMatchObject({
      'listen on a port': 'EACCES',
      'listen on a port of no choice': 'done',
    })
  })

  test('without koffi runs as its user, with its descriptors, and reports the rest as missing', async () => {
    const copy = join(folder, 'copy')
    for (const part of ['src', 'test']) {
      mkdirSync(join(copy, part), { recursive: true })
      cpSync(join(ROOT, part, 'confine'), join(copy, part, 'confine'), { recursive: true })
    }
    writeFileSync(join(copy, 'package.json'), '{"type":"module"}')
    const cage = { ...CAGE, ...NOBODY, readable: [copy] }
    const code = `import { writeSync } from 'node:fs'
import { settle } from ${JSON.stringify(join(copy, 'src/confine/settle.ts'))}
writeSync(3, 'through the pipe')
process.send(settle(), () => process.disconnect())`
    const program = ['--input-type=module', '--eval', code]
    const said = await output(
      process.execPath,
      [...NODE, join(copy, 'test/confine/keeper.ts'), JSON.stringify(cage), ...program],
      { env: {} },
    )
    expect(said).toMatch(/through the pipe/)
    const report = JSON.parse(said.replace('through the pipe', '')) as CageReport
    expect(report).not.toHaveProperty('landlock')
    expect(report).toMatchObject({
      uid: isRoot ? NOBODY.uid : process.getuid!(),
      seccomp: false,
      missing: ["Cannot find module 'koffi'"],
    })
  })
})
