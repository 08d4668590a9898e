/** How much of what was written to a socket its peer's system has not acknowledged yet, by the C library. */
import type { Socket } from 'node:net'
import { descriptorOf } from './descriptor.ts'

/** Linux's number, the same on every processor that Node runs on there. */
const SIOCOUTQ = 0x5411

/** Bytes that were handed to the system and are not acknowledged; undefined: not known of this socket. */
export type Unacknowledged = (socket: Socket) => number | undefined

/** undefined: this system has no way to it. */
export async function openUnacknowledged(): Promise<Unacknowledged | undefined> {
  if (process.platform !== 'linux') return undefined
  let ioctl: (descriptor: number, request: number, answer: [number]) => number
  try {
    // There may be no binding for this processor.
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
