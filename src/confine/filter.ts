/**
 * Filters of system calls (seccomp, classic BPF). A worker's filter names what is forbidden, since the calls that
 * Node and the C library need change from release to release; a call that is younger than its lists is
 * forbidden too.
 */
import { constants } from 'node:os'
import type { Kernel } from './kernel.ts'
import { CALLS, FORBIDDEN, LAST_KNOWN_CALL, type NumberOf, PROGRAMS, type Processor } from './system-calls.ts'

/** Instructions of classic BPF (linux/bpf_common.h): load a word, compare with a constant, mask, return. */
const LOAD = 0x20
const EQUAL = 0x15
const GREATER = 0x25
const ANY_BIT = 0x45
const AND = 0x54
const RETURN = 0x06
const INSTRUCTION_BYTES = 8

/** Offsets in `struct seccomp_data`. Arguments are 64 bits wide; the low word comes first on both processors. */
const NUMBER = 0
const ARCHITECTURE = 4
const argument = (index: number): number => 16 + 8 * index

const ARCHITECTURES: Readonly<Record<Processor, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 }

const SECCOMP_SET_MODE_FILTER = 1
const SECCOMP_FILTER_FLAG_TSYNC = 1

const ALLOW = 0x7fff0000
const KILL_PROCESS = 0x80000000
const refuse = (error: number): number => 0x00050000 | error
const { EPERM, ENOSYS } = constants.errno

const CLONE_THREAD = 0x10000
/** Put input into a terminal: the one that a broker was started from would run it. */
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
/** MAP_SHARED and MAP_ANONYMOUS: memory that the limit of data does not count. */
const SHARED_MEMORY = 0x21
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
/** Socket types are below; SOCK_NONBLOCK and SOCK_CLOEXEC above. */
const SOCKET_TYPE = 0xf
const IPPROTO_TCP = 6
const IPPROTO_UDP = 17

type Instruction = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number]

/**
 * Returns the filter of a worker, without the calls that start programs: the launcher has to make one more.
 * `process`: the only process that may be a target of the worker's signals, which is itself.
 */
export function workerFilter(
  processor: Processor,
  { process, listens }: { process: number; listens: boolean },
): Uint8Array {
  const allowed = { found: ALLOW, otherwise: refuse(EPERM) }
  const own = choose(argument(0), [process], allowed)
  const ownOrSelf = choose(argument(0), [0, process], allowed)
  const typing = choose(argument(1), [TIOCSTI, TIOCLINUX], { found: refuse(EPERM), otherwise: ALLOW })
  const judged: [NumberOf, readonly Instruction[]][] = [
    // Its flags lie in memory, out of a filter's reach. The C library falls back to `clone`.
    [CALLS.clone3, [[RETURN, refuse(ENOSYS)]]],
    [
      CALLS.clone,
      [
        [LOAD, argument(0)],
        [ANY_BIT, CLONE_THREAD, 1, 0],
        [RETURN, refuse(EPERM)],
        [RETURN, ALLOW],
      ],
    ],
    [CALLS.kill, own],
    [CALLS.tgkill, own],
    [CALLS.rt_sigqueueinfo, own],
    [CALLS.rt_tgsigqueueinfo, own],
    [CALLS.prlimit64, ownOrSelf],
    [CALLS.sched_setaffinity, ownOrSelf],
    [CALLS.sched_setscheduler, ownOrSelf],
    [CALLS.sched_setparam, ownOrSelf],
    [CALLS.sched_setattr, ownOrSelf],
    [CALLS.mmap, ofMappings()],
    [CALLS.ioctl, typing],
    [CALLS.socket, ofSockets()],
    [CALLS.listen, [[RETURN, listens ? ALLOW : refuse(EPERM)]]],
  ]
  return encode([
    ...begin(processor),
    [GREATER, LAST_KNOWN_CALL, 0, 1],
    [RETURN, refuse(ENOSYS)],
    ...forbid(processor, FORBIDDEN),
    ...judged.flatMap(([numbers, judgement]) => when(numbers[processor], judgement)),
    [RETURN, ALLOW],
  ])
}

/** Returns the filter that keeps a process from starting programs. */
export function lastProgramFilter(processor: Processor): Uint8Array {
  return encode([...begin(processor), ...forbid(processor, PROGRAMS), [RETURN, ALLOW]])
}

/** Loads the call's number. A call by another processor's numbers (32 bits on x86-64) ends the process. */
function begin(processor: Processor): readonly Instruction[] {
  return [
    [LOAD, ARCHITECTURE],
    [EQUAL, ARCHITECTURES[processor], 1, 0],
    [RETURN, KILL_PROCESS],
    [LOAD, NUMBER],
  ]
}

function forbid(
  processor: Processor,
  calls: Readonly<Record<string, Partial<NumberOf>>>,
): readonly Instruction[] {
  return Object.values(calls).flatMap((numbers) => when(numbers[processor], [[RETURN, refuse(EPERM)]]))
}

/** Runs the judgement, which ends in a return, for this call only. */
function when(number: number | undefined, judgement: readonly Instruction[]): readonly Instruction[] {
  return number === undefined ? [] : [[EQUAL, number, 0, judgement.length], ...judgement]
}

/** Returns `found` if the argument is one of the values, else `otherwise`. */
function choose(
  offset: number,
  values: readonly number[],
  { found, otherwise }: { found: number; otherwise: number },
): readonly Instruction[] {
  return [
    [LOAD, offset],
    ...values.map((value, index): Instruction => [EQUAL, value, values.length - index, 0]),
    [RETURN, otherwise],
    [RETURN, found],
  ]
}

function ofMappings(): readonly Instruction[] {
  return [
    [LOAD, argument(3)],
    [AND, SHARED_MEMORY],
    [EQUAL, SHARED_MEMORY, 0, 1],
    [RETURN, refuse(EPERM)],
    [RETURN, ALLOW],
  ]
}

/**
 * TCP and UDP; and netlink's routes, which the C library asks for the machine's addresses. No Unix sockets: they
 * lead to the services of the machine. Without them, it looks names up itself instead of asking a daemon.
 */
function ofSockets(): readonly Instruction[] {
  const internet: Instruction[] = [
    [LOAD, argument(1)],
    [AND, SOCKET_TYPE],
    [EQUAL, SOCK_STREAM, 1, 0],
    [EQUAL, SOCK_DGRAM, 0, 4],
    [LOAD, argument(2)],
    [EQUAL, 0, 3, 0],
    [EQUAL, IPPROTO_TCP, 2, 0],
    [EQUAL, IPPROTO_UDP, 1, 0],
    [RETURN, refuse(EPERM)],
    [RETURN, ALLOW],
  ]
  return [
    [LOAD, argument(0)],
    [EQUAL, AF_INET, 5, 0],
    [EQUAL, AF_INET6, 4, 0],
    [EQUAL, AF_NETLINK, 0, 2],
    // Protocol 0 is NETLINK_ROUTE.
    [LOAD, argument(2)],
    [EQUAL, 0, internet.length, 0],
    [RETURN, refuse(EPERM)],
    ...internet,
  ]
}

/** Installs the filter for all threads of this process. Returns why not, or undefined if it holds. */
export function installFilter(kernel: Kernel, filter: Uint8Array): string | undefined {
  // struct sock_fprog: the number of instructions, and where they are.
  const program = Buffer.alloc(16)
  program.writeUInt16LE(filter.length / INSTRUCTION_BYTES, 0)
  program.writeBigUInt64LE(kernel.addressOf(filter), 8)
  const result = kernel.call(CALLS.seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program)
  return result === 0 ? undefined : `system calls are not filtered (error ${-result})`
}

function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES)
  for (const [index, [code, value, ifTrue = 0, ifFalse = 0]] of program.entries()) {
    const at = index * INSTRUCTION_BYTES
    bytes.writeUInt16LE(code, at)
    bytes.writeUInt8(ifTrue, at + 2)
    bytes.writeUInt8(ifFalse, at + 3)
    bytes.writeUInt32LE(value >>> 0, at + 4)
  }
  return bytes
}
