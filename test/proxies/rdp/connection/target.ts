/** The back's end of RDP toward a real target, behind TLS: as a client of its own that takes a desktop. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import {
  buildConfirmActive,
  type Capability,
  parseDemandActive,
} from '../../../../proxies/rdp/codec/active.ts'
import {
  CAPABILITY,
  type Desktop,
  readDesktop,
  stripConfirm,
  stripDemand,
} from '../../../../proxies/rdp/codec/capabilities.ts'
import { parseClientData } from '../../../../proxies/rdp/codec/client-data.ts'
import { forTarget, INFO_FLAG, type TargetLogon } from '../../../../proxies/rdp/codec/client-info.ts'
import { BLOCK } from '../../../../proxies/rdp/codec/data-blocks.ts'
import { UpdateAssembler } from '../../../../proxies/rdp/codec/fast-path-output.ts'
import { buildNoLicense } from '../../../../proxies/rdp/codec/licensing.ts'
import { SERVER_USER } from '../../../../proxies/rdp/codec/mcs.ts'
import {
  buildControl,
  buildFontList,
  buildSynchronize,
  CONTROL_ACTION,
  parseErrorInfo,
  parseSessionInfo,
} from '../../../../proxies/rdp/codec/session-pdus.ts'
import {
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
  type ShareData,
} from '../../../../proxies/rdp/codec/share.ts'
import { parseSlowPointer, parseSlowUpdate, type Update } from '../../../../proxies/rdp/codec/updates.ts'
import { BackConnection } from '../../../../proxies/rdp/connection/back-connection.ts'
import { BackNegotiation } from '../../../../proxies/rdp/connection/back-negotiation.ts'

export interface Session {
  desktop?: Desktop
  /** Codes of updates in their order. */
  updates: number[]
  sessionInfo: string[]
  errorInfo: number[]
  disconnect?: number
  error?: unknown
  close(): void
}

/** What a client of ours would say of itself. */
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

/** What a client of ours can: bitmaps only. */
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
    { type: CAPABILITY.general, body: words(1, 3, 0x200, 0, 0, 0x40d, 0, 0, 0, 0) },
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

/** A connection to a target as far as TLS. */
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

export async function openTarget(port: number, logon: TargetLogon, depth: 16 | 32): Promise<Session> {
  const tls = await dial(port, logon.login)
  const session: Session = { updates: [], sessionInfo: [], errorInfo: [], close: () => tls.destroy() }
  const assembler = new UpdateAssembler()
  const keep = (update: Update): void => {
    session.updates.push(update.code)
  }
  const back = new BackConnection({
    client: parseClientData([{ type: BLOCK.clientCore, body: clientCore(800, 600) }]),
    view: { selectedProtocol: 1, channels: [{ name: 'cliprdr', options: 0xc0a00000 }], colourDepth: depth },
    info: forTarget(
      {
        codePage: 0,
        flags: INFO_FLAG.mouse | INFO_FLAG.compression,
        domain: '',
        login: 'alice',
        password: 'not the password of the account',
        alternateShell: '/bin/false',
        workingFolder: '',
        extended: new Uint8Array(0),
      },
      logon,
    ),
    licensing: { answer: () => buildNoLicense() },
    write: (bytes) => tls.write(bytes),
    visitor: {
      license: () => {},
      licensed: () => {},
      channel: () => {},
      fastPath: (pdu) => assembler.feed(pdu, keep),
      disconnect: (reason) => {
        session.disconnect = reason
      },
      io: (data) => {
        for (const pdu of parseShare(data)) {
          if (pdu.type === CONTROL_PDU.demandActive) activate(parseDemandActive(pdu.body))
          else if (pdu.type === CONTROL_PDU.data) hear(parseShareData(pdu))
        }
      },
    },
  })
  const send = (data: ShareData) => back.sendIo(buildShareData(data, back.user))
  const activate = ({ shareId, capabilities }: ReturnType<typeof parseDemandActive>): void => {
    const desktop = readDesktop(stripDemand(capabilities))
    session.desktop = desktop
    back.sendIo(
      buildConfirmActive({ shareId, capabilities: stripConfirm(clientCapabilities(desktop)) }, back.user),
    )
    send(buildSynchronize(shareId, SERVER_USER))
    send(buildControl(shareId, CONTROL_ACTION.cooperate))
    send(buildControl(shareId, CONTROL_ACTION.requestControl))
    send(buildFontList(shareId))
  }
  const hear = ({ type, body }: ShareData): void => {
    if (type === DATA_PDU.update) keep(parseSlowUpdate(body))
    else if (type === DATA_PDU.pointer) keep(parseSlowPointer(body))
    else if (type === DATA_PDU.setErrorInfo) session.errorInfo.push(parseErrorInfo(body))
    else if (type === DATA_PDU.saveSessionInfo) session.sessionInfo.push(parseSessionInfo(body).kind)
  }
  tls.on('error', (error) => {
    session.error = error
  })
  tls.on('data', (chunk: Buffer) => {
    try {
      back.receive(chunk)
    } catch (error) {
      session.error = error
      tls.destroy()
    }
  })
  back.start()
  return session
}
