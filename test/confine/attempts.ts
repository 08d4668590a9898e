/**
 * A program that tries what a session worker that was taken over would try: system calls of its own, past Node. It writes
 * to standard output what each of them came to, `done` or the error's name, as one JSON object.
 *
 * Arguments: `settled` or `free`, and a JSON object of the places that it is after.
 */
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { constants } from 'node:os'
import { type Kernel, openKernel } from '../../src/confine/kernel.ts'
import { settle } from '../../src/confine/settle.ts'
import { CALLS, FORBIDDEN, type NumberOf, PROGRAMS } from '../../src/confine/system-calls.ts'

export interface Places {
  /** A file that only this user may read, and one that all may read. */
  secret: string
  open: string
  /** A folder that all may write to, with a file `doomed` of this user in it. */
  folder: string
  /** Another process of this user. */
  victim: number
  /** How many files may be open. */
  openFiles: number
  /** Bytes of memory that are too many. */
  memory: number
}

const [mode, placesText] = process.argv.slice(2)
const places = JSON.parse(placesText!) as Places
if (mode === 'settled') settle()
const opened = openKernel()
if (!('kernel' in opened)) throw new Error(opened.missing)
const { kernel } = opened

const OPENAT: NumberOf = { x64: 257, arm64: 56 }
const MKDIRAT: NumberOf = { x64: 258, arm64: 34 }
const UNLINKAT: NumberOf = { x64: 263, arm64: 35 }
const TRUNCATE: NumberOf = { x64: 76, arm64: 45 }
const CLOSE: NumberOf = { x64: 3, arm64: 57 }
const AT_FDCWD = -100
const O_RDWR = 2
const O_CREAT = 0o100
const PTRACE_SEIZE = 0x4206
const SIGCONT = 18
const RLIMIT_CORE = 4
const CLONE_NEWUSER = 0x10000000
const TIOCSTI = 0x5412
const PROT_WRITE = 3
const PRIVATE_ANONYMOUS = 0x22
const SHARED_ANONYMOUS = 0x21
const CLONE_INVALID = 0x800 | constants.signals.SIGCHLD
const AF_UNIX = 1
const AF_INET = 2
const SOCK_STREAM = 1
const SOCK_DGRAM = 2

const text = (value: string): Uint8Array => Buffer.from(`${value}\0`)
const names = new Map(Object.entries(constants.errno).map(([name, number]) => [number as number, name]))
const outcome = (result: number): string => (result < 0 ? (names.get(-result) ?? String(-result)) : 'done')

/** `struct iovec` for both sides of process_vm_readv. */
function vector(address: bigint, length: number): Uint8Array {
  const bytes = Buffer.alloc(16)
  bytes.writeBigUInt64LE(address, 0)
  bytes.writeBigUInt64LE(BigInt(length), 8)
  return bytes
}

function openTooMany(call: Kernel['call']): number {
  const taken: number[] = []
  try {
    for (;;) {
      const descriptor = call(OPENAT, AT_FDCWD, text('/dev/null'), 0, 0)
      if (descriptor < 0) return descriptor
      taken.push(descriptor)
      if (taken.length > places.openFiles) return 0
    }
  } finally {
    for (const descriptor of taken) call(CLOSE, descriptor)
  }
}

/** By the C library, which forks and runs it. */
function startProgram(): number {
  const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi')
  const spawn = koffi
    .load(null)
    .func('int posix_spawn(int *, const char *, void *, void *, const void *, const void *)')
  const [path, none] = [text('/bin/true'), new BigUint64Array(1)]
  const argv = BigUint64Array.of(koffi.address(path), 0n)
  return -spawn([0], '/bin/true', null, null, argv, none)
}

function listenAnywhere(): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen(0, '127.0.0.1', () => server.close(() => resolve('done')))
  })
}

/** The kernel takes a port of its own choice for a socket that has none, and Landlock does not see it. */
function listenUnbound(): number {
  const socket = call(CALLS.socket, AF_INET, SOCK_STREAM, 0)
  return call(CALLS.listen, socket, 1)
}

const { call } = kernel
const { victim } = places
const buffer = Buffer.alloc(64)
const here = kernel.addressOf(buffer)
const file = (path: string, flags: number): number => call(OPENAT, AT_FDCWD, text(path), flags, 0o600)

const attempts: Record<string, () => number> = {
  "read a file of the user's": () => file(places.secret, 0),
  "read everybody's file": () => file(places.open, 0),
  "write a file of the user's": () => file(places.secret, O_RDWR),
  'make a file': () => file(`${places.folder}/made-${process.pid}`, O_RDWR | O_CREAT),
  'make a folder': () => call(MKDIRAT, AT_FDCWD, text(`${places.folder}/folder-${process.pid}`), 0o700),
  'cut a file': () => call(TRUNCATE, text(places.secret), 3),
  'remove a file': () => call(UNLINKAT, AT_FDCWD, text(`${places.folder}/doomed`), 0),
  "read another process's memory by its file": () => file(`/proc/${victim}/mem`, 0),
  "read another process's environment": () => file(`/proc/${victim}/environ`, 0),
  "read another process's memory by a call": () =>
    // Nothing is mapped at the address: the right is checked first.
    call(FORBIDDEN.process_vm_readv, victim, vector(here, 8), 1, vector(4096n, 8), 1, 0),
  'trace another process': () => call(FORBIDDEN.ptrace, PTRACE_SEIZE, victim, 0, 0),
  'hold another process': () => call(FORBIDDEN.pidfd_open, victim, 0),
  'signal another process': () => call(CALLS.kill, victim, SIGCONT),
  'signal all processes': () => call(CALLS.kill, -1, 0),
  'signal a thread by its number alone': () => call(FORBIDDEN.tkill, process.pid, 0),
  'limit another process': () => call(CALLS.prlimit64, victim, RLIMIT_CORE, 0, buffer),
  'slow another process down': () => call(CALLS.setpriority, 0, victim, 19),
  'start a program': startProgram,
  // There is no such program: the right is checked first.
  'become another program': () => call(PROGRAMS.execve, text('/none'), 0, 0),
  // The kernel refuses these flags too, with another error.
  'start a process': () => call(CALLS.clone, CLONE_INVALID, 0, 0, 0, 0),
  'open too many files': () => openTooMany(call),
  'take too much memory': () => call(CALLS.mmap, 0, places.memory, PROT_WRITE, PRIVATE_ANONYMOUS, -1, 0),
  'take shared memory': () => call(CALLS.mmap, 0, 4096, PROT_WRITE, SHARED_ANONYMOUS, -1, 0),
  'take memory as a file': () => call(FORBIDDEN.memfd_create, text('m'), 0),
  'share memory': () => call(FORBIDDEN.shmget, 0, 4096, 0o1600),
  'listen on a port of no choice': listenUnbound,
  'reach a service of the machine': () => call(CALLS.socket, AF_UNIX, SOCK_STREAM, 0),
  'reach a service of the machine by one of a pair': () =>
    call(FORBIDDEN.socketpair, AF_UNIX, SOCK_DGRAM, 0, Buffer.alloc(8)),
  'use another transport': () => call(CALLS.socket, AF_INET, SOCK_STREAM, 262),
  'set up a ring': () => call(FORBIDDEN.io_uring_setup, 4, Buffer.alloc(120)),
  'use keys of the kernel': () => call(FORBIDDEN.keyctl, 0, -3, 1),
  'become root of a namespace': () => call(FORBIDDEN.unshare, CLONE_NEWUSER),
  'take over page faults': () => call(FORBIDDEN.userfaultfd, 1),
  'type into the terminal': () => call(CALLS.ioctl, 0, TIOCSTI, buffer),
  'name a file by its number': () =>
    call(FORBIDDEN.name_to_handle_at, AT_FDCWD, text('/dev/null'), buffer, buffer, 0),
}

const results: Record<string, string> = { 'listen on a port': await listenAnywhere() }
for (const [name, attempt] of Object.entries(attempts)) results[name] = outcome(attempt())
process.stdout.write(JSON.stringify(results))
