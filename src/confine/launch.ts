/**
 * The launcher of a session worker, loaded by `node --require` ahead of the worker's own program: it gives up the
 * rights that the worker does not need, and becomes that program. The worker cannot do so itself, since its threads
 * would keep theirs.
 *
 * It runs before the event loop and imports nothing that waits: Node has a parent's channel open by now, and would
 * read the worker's messages from it.
 */
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { CAGE_VARIABLE, type Cage, type Launch, type Launched } from './cage.ts'
import { installFilter, workerFilter } from './filter.ts'
import { type Kernel, openKernel } from './kernel.ts'
import { restrictFiles } from './landlock.ts'
import { CALLS } from './system-calls.ts'
import { systemFiles } from './system-files.ts'

const F_SETFD = 2
const FIRST_AFTER_STANDARD = 3
const LAST_DESCRIPTOR = 0xffffffff
const CLOSE_RANGE_CLOEXEC = 4
const PR_SET_PDEATHSIG = 1
const PR_SET_NO_NEW_PRIVS = 38
/** Bytes of addresses that V8 reserves for an isolate's code, and its stacks: they count as data, used or not. */
const CODE_RANGE = 544 * 2 ** 20
/** `struct __user_cap_header_struct` of version 3 for the calling thread, and the empty sets that follow it. */
const CAPABILITY_HEADER = Uint32Array.of(0x20080522, 0)
const NO_CAPABILITIES = new Uint8Array(24)
const RLIMIT_DATA = 2
const RLIMIT_CORE = 4
const RLIMIT_NPROC = 6
const RLIMIT_NOFILE = 7
const O_PATH = 0o10000000

function launch({ arguments: programArguments, cage }: Launch): void {
  const opened = openKernel()
  if (!('kernel' in opened)) {
    // The descriptors would not survive: this process goes on as the worker.
    process.env[CAGE_VARIABLE] = JSON.stringify({
      filtered: false,
      missing: [opened.missing],
    } satisfies Launched)
    return
  }
  const environment = givenEnvironment()
  const launched = restrict(opened.kernel, cage)
  keepOpen(opened.kernel, cage.keepOpen)
  environment[CAGE_VARIABLE] = JSON.stringify(launched)
  process.execve!(process.execPath, [process.execPath, ...programArguments], environment)
}

/** Reports the steps that fail on this system; the others hold. */
function restrict(kernel: Kernel, cage: Cage): Launched {
  const missing = limit(kernel, cage)
  goFirst()
  // Drops the rights that root or a unit of systemd has given the broker, as ports below 1024. Without new
  // privileges, starting a program does not bring them back.
  kernel.call(CALLS.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
  // Without the broker nothing is recorded: a worker that was taken over must not go on either.
  kernel.call(CALLS.prctl, PR_SET_PDEATHSIG, constants.signals.SIGKILL, 0, 0, 0)
  kernel.call(CALLS.capset, new Uint8Array(CAPABILITY_HEADER.buffer), NO_CAPABILITIES)
  const files = [process.execPath, ...cage.readable, ...systemFiles(cage.uid !== undefined)]
  const restricted = restrictFiles(kernel, files)
  if ('missing' in restricted) missing.push(restricted.missing)
  const fault = installFilter(
    kernel,
    workerFilter(kernel.processor, { process: process.pid, listens: cage.listens }),
  )
  if (fault !== undefined) missing.push(fault)
  const landlock = 'version' in restricted && { landlock: restricted.version }
  return { ...landlock, filtered: fault === undefined, missing }
}

/** Lets a system without memory end this process before the broker. */
function goFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '500')
  } catch {
    // A container may hide the file: then the system decides by size alone.
  }
}

/** Reads it from the kernel: Node has removed from its own copy what is about the parent's channel. */
function givenEnvironment(): Record<string, string> {
  const pairs = readFileSync('/proc/self/environ', 'utf8').split('\0').filter(Boolean)
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  )
}

/** Returns a sentence for each limit that could not be set. */
function limit(kernel: Kernel, { uid, openFiles, memory, isolates, threads }: Cage): string[] {
  const limits: [name: string, resource: number, value: number][] = [
    ['core dumps', RLIMIT_CORE, 0],
    ['open files', RLIMIT_NOFILE, openFiles],
    ['memory', RLIMIT_DATA, memory + isolates * CODE_RANGE],
    ...(uid === undefined ? [] : [['threads', RLIMIT_NPROC, threads] as [string, number, number]]),
  ]
  return limits.flatMap(([name, resource, value]) => {
    const present = new BigUint64Array(2)
    kernel.call(CALLS.prlimit64, 0, resource, 0, new Uint8Array(present.buffer))
    // A lower limit stays: only root can raise it.
    const wanted = BigInt(value) < present[1]! ? BigInt(value) : present[1]!
    const both = new Uint8Array(BigUint64Array.of(wanted, wanted).buffer)
    const result = kernel.call(CALLS.prlimit64, 0, resource, both, 0)
    return result < 0 ? [`the limit of ${name} cannot be set (error ${-result})`] : []
  })
}

function keepOpen(kernel: Kernel, descriptors: readonly number[]): void {
  const { call } = kernel
  call(CALLS.close_range, FIRST_AFTER_STANDARD, LAST_DESCRIPTOR, CLOSE_RANGE_CLOEXEC)
  // Landlock's rule for it holds for the folder in the kernel's memory, which a descriptor keeps there.
  const ownFolder = openSync('/proc/self', O_PATH)
  for (const descriptor of [...descriptors, ownFolder]) {
    const result = call(CALLS.fcntl, descriptor, F_SETFD, 0)
    if (result === -constants.errno.EBADF) throw new Error(`descriptor ${descriptor} is not open`)
  }
}

const launchOf = process.env[CAGE_VARIABLE]
if (launchOf === undefined) throw new Error(`the launcher of session workers needs ${CAGE_VARIABLE}`)
delete process.env[CAGE_VARIABLE]
launch(JSON.parse(launchOf) as Launch)
