/**
 * TCP's urgent data by the C library's own functions. This folder is the only part of the broker that calls
 * foreign code; Node does everything else of a socket.
 */
import type { UrgentData } from '../contract/urgent-data.ts'
import { descriptorOf } from './descriptor.ts'

/** Linux's numbers, equal on every processor that Node supports there. */
const SOL_SOCKET = 1
const SO_OOBINLINE = 10
const MSG_OOB = 0x1
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000

interface Functions {
  setOption(descriptor: number, level: number, name: number, value: number[], length: number): number
  send(descriptor: number, bytes: Uint8Array, length: number, flags: number): number
  isAtMark(descriptor: number): number
}

export type OpenedUrgentData = { urgent: UrgentData } | { missing: string }

/** `missing`: why this system does not support it. */
export async function openUrgentData(): Promise<OpenedUrgentData> {
  if (process.platform !== 'linux') return { missing: `not known how on ${process.platform}` }
  try {
    return { urgent: urgentDataBy(await loadFunctions()) }
  } catch (error) {
    return { missing: (error as Error).message }
  }
}

async function loadFunctions(): Promise<Functions> {
  // koffi may have no binding for this processor: then only this feature is missing.
  const { default: koffi } = await import('koffi')
  const library = koffi.load(null)
  return {
    setOption: library.func('int setsockopt(int, int, int, const int *, uint32_t)'),
    send: library.func('long send(int, const uint8_t *, size_t, int)'),
    isAtMark: library.func('int sockatmark(int)'),
  }
}

function urgentDataBy({ setOption, send, isAtMark }: Functions): UrgentData {
  return {
    keepInPlace(of) {
      const descriptor = descriptorOf(of)
      if (descriptor === undefined) return
      if (setOption(descriptor, SOL_SOCKET, SO_OOBINLINE, [1], 4) !== 0) {
        throw new Error('the system refuses to keep urgent data in its place (SO_OOBINLINE)')
      }
    },
    write(socket, bytes) {
      const descriptor = descriptorOf(socket)
      const isFree = socket.writable && socket.writableLength === 0 && !('encrypted' in socket)
      const flags = MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL
      // A failure here repeats below, where the socket reports it.
      const sent =
        descriptor !== undefined && isFree ? Math.max(0, send(descriptor, bytes, bytes.length, flags)) : 0
      if (sent < bytes.length) socket.write(bytes.subarray(sent))
    },
    isNext(socket) {
      const descriptor = descriptorOf(socket)
      return descriptor !== undefined && isAtMark(descriptor) === 1
    },
  }
}
