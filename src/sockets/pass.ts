/**
 * Passes an accepted connection to a session worker: its descriptor goes with one of Node's own messages (SCM_RIGHTS,
 * unix(7)), which the worker's Node delivers as `message` with a handle. Node's channel itself is of no use here: it
 * parses what the other side sends, without a bound.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { descriptorOf } from './descriptor.ts'

/** Linux's numbers, equal on every processor that Node supports there. */
const SOL_SOCKET = 1
const SCM_RIGHTS = 1
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
/** A cmsghdr with one descriptor: 16 bytes, the descriptor, and 4 bytes of padding. */
const CONTROL_LENGTH = 24
const CONTROL_USED = 20

/** Returns false if the channel is full or closed: the connection was not passed. */
export type PassConnection = (channel: Socket, descriptor: number, message: object) => boolean

/** `missing`: why this system cannot. */
export type OpenedPass = { pass: PassConnection } | { missing: string }

export async function openPass(): Promise<OpenedPass> {
  if (process.platform !== 'linux') return { missing: `not known how on ${process.platform}` }
  try {
    // koffi may have no binding for this processor.
    const { default: koffi } = await import('koffi')
    const iovec = koffi.struct({ base: 'void *', length: 'size_t' })
    const header = koffi.struct({
      name: 'void *',
      nameLength: 'uint32_t',
      parts: koffi.pointer(iovec),
      partCount: 'size_t',
      control: 'void *',
      controlLength: 'size_t',
      flags: 'int',
    })
    const sendMessage = koffi.load(null).func('sendmsg', 'long', ['int', koffi.pointer(header), 'int'])
    return {
      pass: (channel, descriptor, message) => {
        const to = descriptorOf(channel)
        if (to === undefined) return false
        const text = Buffer.from(
          `${JSON.stringify({ cmd: 'NODE_HANDLE', type: 'net.Native', msg: message })}\n`,
        )
        const control = Buffer.alloc(CONTROL_LENGTH)
        control.writeBigUInt64LE(BigInt(CONTROL_USED), 0)
        control.writeInt32LE(SOL_SOCKET, 8)
        control.writeInt32LE(SCM_RIGHTS, 12)
        control.writeInt32LE(descriptor, 16)
        const sent: number = sendMessage(
          to,
          {
            name: null,
            nameLength: 0,
            parts: [{ base: text, length: text.length }],
            partCount: 1,
            control,
            controlLength: CONTROL_LENGTH,
            flags: 0,
          },
          MSG_DONTWAIT | MSG_NOSIGNAL,
        )
        // A part of the text went out: the channel is of no more use.
        if (sent >= 0 && sent < text.length) channel.destroy()
        return sent === text.length
      },
    }
  } catch (error) {
    return { missing: (error as Error).message }
  }
}
