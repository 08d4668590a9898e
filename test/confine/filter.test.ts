/** The filters of system calls, run as the kernel runs them, for both processors. */
import { describe, expect, test } from 'vitest'
import { lastProgramFilter, workerFilter } from '../../src/confine/filter.ts'
import {
  CALLS,
  FORBIDDEN,
  LAST_KNOWN_CALL,
  PROGRAMS,
  type Processor,
} from '../../src/confine/system-calls.ts'

const OWN = 4242
const ARCHITECTURES = { x64: 0xc000003e, arm64: 0xc00000b7 }
const ALLOW = 0x7fff0000
const KILL = 0x80000000
const EPERM = 0x00050001
const ENOSYS = 0x00050026

/** Runs a filter over `struct seccomp_data`. An instruction that is not known here, or a jump past the end, throws. */
function run(filter: Uint8Array, architecture: number, call: number, values: readonly number[]): number {
  const view = new DataView(filter.buffer, filter.byteOffset, filter.length)
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, call, true)
  data.setUint32(4, architecture, true)
  for (const [index, value] of values.entries()) data.setBigInt64(16 + 8 * index, BigInt(value), true)
  let register = 0
  for (let at = 0; ; at++) {
    const code = view.getUint16(8 * at, true)
    const value = view.getUint32(8 * at + 4, true)
    const jump = (condition: boolean): void => {
      at += view.getUint8(8 * at + (condition ? 2 : 3))
    }
    if (code === 0x20) register = data.getUint32(value, true)
    else if (code === 0x15) jump(register === value)
    else if (code === 0x25) jump(register > value)
    else if (code === 0x45) jump((register & value) !== 0)
    else if (code === 0x54) register = (register & value) >>> 0
    else if (code === 0x06) return value
    else throw new Error(`instruction ${code.toString(16)} at ${at}`)
  }
}

describe.each<Processor>(['x64', 'arm64'])('on %s', (processor) => {
  const filter = workerFilter(processor, { process: OWN, listens: false })
  const judge = (call: number, ...values: number[]) => run(filter, ARCHITECTURES[processor], call, values)

  test('calls that are on no list are allowed, up to the last known one', () => {
    const listed = new Set(
      [...Object.values(FORBIDDEN), ...Object.values(CALLS)].map((one) => (one as never)[processor]),
    )
    for (let call = 0; call <= LAST_KNOWN_CALL; call++) {
      if (!listed.has(call as never)) expect([call, judge(call)]).toEqual([call, ALLOW])
    }
  })

  test('forbidden calls are refused whatever their arguments', () => {
    for (const numbers of Object.values(FORBIDDEN)) {
      const call = (numbers as Partial<Record<Processor, number>>)[processor]
      if (call !== undefined) expect([call, judge(call, 0, 1, 2)]).toEqual([call, EPERM])
    }
  })

  test('younger calls, and those of the x32 numbers, are unknown', () => {
    expect(judge(LAST_KNOWN_CALL + 1)).toBe(ENOSYS)
    expect(judge(0x40000000 | CALLS.socket[processor])).toBe(ENOSYS)
  })

  test("calls by another processor's numbers end the process", () => {
    const other = processor === 'x64' ? 0x40000003 : 0x40000028
    expect(run(filter, other, 1, [])).toBe(KILL)
    expect(run(lastProgramFilter(processor), other, 1, [])).toBe(KILL)
  })

  test.each(['kill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo'] as const)(
    '%s reaches the own process only',
    (name) => {
      const call = CALLS[name][processor]
      expect(judge(call, OWN)).toBe(ALLOW)
      for (const other of [1, 0, -1, -OWN, OWN + 1])
        expect([other, judge(call, other)]).toEqual([other, EPERM])
    },
  )

  test.each([
    'prlimit64',
    'sched_setaffinity',
    'sched_setscheduler',
    'sched_setparam',
    'sched_setattr',
  ] as const)('%s reaches the own process only, also as 0', (name) => {
    const call = CALLS[name][processor]
    for (const own of [OWN, 0]) expect(judge(call, own)).toBe(ALLOW)
    expect(judge(call, 1)).toBe(EPERM)
  })

  test('threads may be started, processes may not', () => {
    expect(judge(CALLS.clone[processor], 0x3d0f00)).toBe(ALLOW)
    expect(judge(CALLS.clone[processor], 17)).toBe(EPERM)
    expect(judge(CALLS.clone[processor], 0x4100 | 17)).toBe(EPERM)
    expect(judge(CALLS.clone3[processor], 0, 88)).toBe(ENOSYS)
  })

  test.each([
    ['TCP', 2, 1, 0, ALLOW],
    ['TCP by IPv6, named, not blocking', 10, 1 | 0o2004000, 6, ALLOW],
    ['UDP', 2, 2, 17, ALLOW],
    ['netlink routes', 16, 3, 0, ALLOW],
    ['other netlink', 16, 3, 9, EPERM],
    ['a Unix socket', 1, 1, 0, EPERM],
    ['MPTCP', 2, 1, 262, EPERM],
    ['SCTP', 2, 1, 132, EPERM],
    ['raw packets', 2, 3, 1, EPERM],
    ['packets of the link', 17, 3, 0, EPERM],
    ['virtual machines', 40, 1, 0, EPERM],
    ['the crypto of the kernel', 38, 5, 0, EPERM],
  ])('socket: %s', (_, family, type, protocol, verdict) => {
    expect(judge(CALLS.socket[processor], family, type, protocol)).toBe(verdict)
  })

  test('memory is private, and shared mappings are of files', () => {
    const call = CALLS.mmap[processor]
    for (const flags of [0x22, 0x4022, 0x02, 0x01]) expect(judge(call, 0, 4096, 3, flags)).toBe(ALLOW)
    for (const flags of [0x21, 0x4021, 0x23]) expect(judge(call, 0, 4096, 3, flags)).toBe(EPERM)
  })

  test('ioctl puts nothing into a terminal', () => {
    const call = CALLS.ioctl[processor]
    expect(judge(call, 0, 0x5401)).toBe(ALLOW)
    for (const request of [0x5412, 0x541c]) expect(judge(call, 0, request)).toBe(EPERM)
  })

  test('listening is allowed to a worker that is handed sockets', () => {
    expect(judge(CALLS.listen[processor], 5, 1)).toBe(EPERM)
    const listening = workerFilter(processor, { process: OWN, listens: true })
    expect(run(listening, ARCHITECTURES[processor], CALLS.listen[processor], [5, 1])).toBe(ALLOW)
  })

  test('the launcher may start one more program, and the worker none', () => {
    for (const numbers of Object.values(PROGRAMS)) {
      expect(judge(numbers[processor])).toBe(ALLOW)
      expect(run(lastProgramFilter(processor), ARCHITECTURES[processor], numbers[processor], [])).toBe(EPERM)
    }
    expect(run(lastProgramFilter(processor), ARCHITECTURES[processor], CALLS.socket[processor], [])).toBe(
      ALLOW,
    )
  })
})
