/** A test client for targets: its settings and capabilities, and its connection up to TLS. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Capability } from '../../../../proxies/rdp/codec/active.ts'
import { CAPABILITY, type Desktop } from '../../../../proxies/rdp/codec/capabilities.ts'
import { BackNegotiation } from '../../../../proxies/rdp/connection/back-negotiation.ts'

/** The test client's core data. */
export function clientCore(width: number, height: number): Buffer {
  const core = Buffer.alloc(212)
  core.writeUInt32LE(0x00080004, 0)
  core.writeUInt16LE(width, 4)
  core.writeUInt16LE(height, 6)
  core.writeUInt16LE(0xca01, 8)
  core.writeUInt16LE(0xaa03, 10)
  core.writeUInt32LE(0x409, 12)
  core.writeUInt32LE(2600, 16)
  core.write('client', 20, 'utf16le')
  core.writeUInt32LE(4, 52)
  core.writeUInt32LE(12, 60)
  core.writeUInt16LE(0xca01, 128)
  core.writeUInt16LE(1, 130)
  core.writeUInt16LE(24, 136)
  core.writeUInt16LE(7, 138)
  return core
}

/** The test client's capabilities: bitmaps only. */
export function clientCapabilities({ width, height, depth }: Desktop): Capability[] {
  const words = (...numbers: number[]) => Buffer.from(Uint16Array.from(numbers).buffer)
  const order = Buffer.alloc(84)
  order.writeUInt16LE(1, 20)
  order.writeUInt16LE(20, 22)
  order.writeUInt16LE(1, 26)
  order.writeUInt16LE(0xa, 30)
  order.fill(1, 32, 64)
  const input = Buffer.alloc(84)
  input.writeUInt16LE(0x35)
  return [
    { type: CAPABILITY.general, body: words(1, 3, 0x200, 0, 0, 0x40d, 0, 0, 0, 0x101) },
    { type: CAPABILITY.bitmap, body: words(depth, 1, 1, 1, width, height, 0, 1, 1, 0x0a00, 1, 0) },
    { type: CAPABILITY.order, body: order },
    { type: CAPABILITY.pointer, body: words(1, 20, 20) },
    { type: CAPABILITY.input, body: input },
    { type: CAPABILITY.virtualChannel, body: words(1, 0, 1600, 0) },
    { type: CAPABILITY.share, body: words(0, 0) },
    { type: CAPABILITY.font, body: words(1, 0) },
    { type: CAPABILITY.multifragment, body: words(0xffff, 0) },
    { type: CAPABILITY.surfaceCommands, body: words(0x52, 0, 0, 0) },
  ]
}

/** Connects to a target, up to TLS. */
export async function dial(port: number, login: string): Promise<TLSSocket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const negotiation = new BackNegotiation({ protocols: ['tls'], login })
  socket.write(negotiation.request)
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    if (negotiation.receive(chunk)) break
  }
  socket.pause()
  const tls = connectTls({ socket, rejectUnauthorized: false })
  await once(tls, 'secureConnect')
  return tls
}
