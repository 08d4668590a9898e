/** The bytes written to a socket that the peer's system has not acknowledged yet, from the C library. */
import type { Socket } from 'node:net'
import { descriptorOf } from './descriptor.ts'

/** Linux's number, equal on every processor that Node supports there. */
const SIOCOUTQ = 0x5411

/**
 * Returns the bytes that the system holds unacknowledged, or undefined if that is not known for this socket.
 */
export type Unacknowledged = (socket: Socket) => number | undefined

/** Returns undefined if this system has no such call. */
export async function openUnacknowledged(): Promise<Unacknowledged | undefined> {
  if (process.platform !== 'linux') return undefined
  let ioctl: (descriptor: number, request: number, answer: [number]) => number
  try {
    // koffi may have no binding for this processor.
    const { default: koffi } = await import('koffi')
    ioctl = koffi.load(null).func('int ioctl(int, unsigned long, _Out_ int *)')
  } catch {
    return undefined
  }
  return (socket) => {
    const descriptor = descriptorOf(socket)
    if (descriptor === undefined) return undefined
    const answer: [number] = [0]
    return ioctl(descriptor, SIOCOUTQ, answer) === 0 ? answer[0] : undefined
  }
}
