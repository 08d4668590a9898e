/** System calls that Node does not make, by the C library's `syscall`. */
import { createRequire } from 'node:module'
import type { NumberOf, Processor } from './system-calls.ts'

export interface Kernel {
  processor: Processor
  /** Returns the call's result, or the negative number of its error. A buffer stands for its address. */
  call(of: NumberOf, ...values: readonly (number | Uint8Array)[]): number
  /** Returns where the buffer lies, for a structure that points to it. The buffer has to outlive the call. */
  addressOf(buffer: Uint8Array): bigint
}

export type OpenedKernel = { kernel: Kernel } | { missing: string }

/** `missing`: why this process cannot make system calls of its own. Loads koffi, at once. */
export function openKernel(): OpenedKernel {
  if (process.platform !== 'linux') return { missing: `not known how on ${process.platform}` }
  const { arch } = process
  if (arch !== 'x64' && arch !== 'arm64') return { missing: `not known how on the processor ${arch}` }
  try {
    return { kernel: load(arch) }
  } catch (error) {
    return { missing: (error as Error).message.split('\n', 1)[0]! }
  }
}

function load(processor: Processor): Kernel {
  // Not `import()`: the launcher may not wait, and koffi may have no binding for this processor.
  const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi')
  const syscall = koffi
    .load(null)
    .func('long syscall(long, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t)')
  return {
    processor,
    call(of, ...values) {
      const registers = values.map((value) => (typeof value === 'number' ? value : koffi.address(value)))
      while (registers.length < 6) registers.push(0)
      const result = Number(syscall(of[processor], ...registers))
      return result === -1 ? -koffi.errno() : result
    },
    addressOf: (buffer) => koffi.address(buffer),
  }
}
