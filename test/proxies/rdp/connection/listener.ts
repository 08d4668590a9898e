/** An RDP server on loopback, made of the front's end behind TLS, with a desktop of its own. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { generate } from 'selfsigned'
import type { ClientData } from '../../../../proxies/rdp/codec/client-data.ts'
import type { ClientInfo } from '../../../../proxies/rdp/codec/client-info.ts'
import type { InputEvent } from '../../../../proxies/rdp/codec/input.ts'
import { DISCONNECT_REASON } from '../../../../proxies/rdp/codec/mcs.ts'
import { FrontConnection } from '../../../../proxies/rdp/connection/front-connection.ts'
import { FrontDesktop } from '../../../../proxies/rdp/connection/front-desktop.ts'
import {
  type FrontNegotiated,
  FrontNegotiation,
} from '../../../../proxies/rdp/connection/front-negotiation.ts'
import { type Outcome, serveCredSsp } from '../credssp/connections.ts'

export interface DoorOptions {
  /** Users for NLA, and their passwords. Without it there is no NLA. */
  users?: Readonly<Record<string, string>>
  /** Serves a client after TLS, in place of the desktop. */
  serve?: (tls: TLSSocket, requestedProtocols: number) => void
  /** Code of ERROR_INFO that is sent once the client has the desktop, before the connection ends. */
  refusal?: number
  /** Receives the data of the I/O channel. */
  io?: (data: Uint8Array) => void
  /** Handles input. */
  input?: (desktop: FrontDesktop, events: readonly InputEvent[], tls: TLSSocket) => void
  /** Draws on the desktop. */
  paint?: (desktop: FrontDesktop, size: { width: number; height: number }, tls: TLSSocket) => void
}

export interface Visit {
  negotiated?: FrontNegotiated
  core?: ClientData['core']
  channels?: ClientData['channels']
  info?: ClientInfo
  /** Result of NLA. */
  outcome?: Outcome
  input: InputEvent[]
  painted: number
  /** The error that ended the connection, unless it ended normally. */
  error?: unknown
  ended: boolean
}

export interface Door {
  port: number
  visits: Visit[]
  close(): Promise<void>
}

export async function openDoor(options: DoorOptions = {}): Promise<Door> {
  const made = await generate([{ name: 'commonName', value: 'front' }], { keySize: 2048 })
  const context = createSecureContext({ key: made.private, cert: made.cert })
  const visits: Visit[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    const visit: Visit = { input: [], painted: 0, ended: false }
    visits.push(visit)
    socket.on('close', () => {
      visit.ended = true
    })
    const negotiation = new FrontNegotiation(() => (options.users ? 'required' : 'off'))
    const hello = (chunk: Buffer): void => {
      try {
        const negotiated = negotiation.receive(chunk)
        if (!negotiated) return
        visit.negotiated = negotiated
        socket.off('data', hello)
        socket.pause()
        socket.write(negotiated.answer)
        if (negotiated.result === 'refused') {
          socket.end()
          return
        }
        const tls = new TLSSocket(socket, { isServer: true, secureContext: context })
        tls.on('error', () => {})
        if (options.serve) options.serve(tls, negotiated.hello.requestedProtocols)
        else if (options.users) {
          const identity = { cert: made.cert, key: made.private }
          void serveCredSsp(tls, identity, options.users).then((outcome) => {
            visit.outcome = outcome
            if ('credentials' in outcome) serve(tls, negotiated, visit, options)
            else tls.end()
          })
        } else serve(tls, negotiated, visit, options)
      } catch (error) {
        visit.error = error
        socket.destroy()
      }
    }
    socket.on('data', hello)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    visits,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function serve(tls: TLSSocket, { hello }: FrontNegotiated, visit: Visit, options: DoorOptions): void {
  let desktop: FrontDesktop | undefined
  let size = { width: 0, height: 0 }
  const front = new FrontConnection({
    requestedProtocols: hello.requestedProtocols,
    write: (bytes) => tls.write(bytes),
    visitor: {
      settings: ({ core, channels }) => {
        visit.core = core
        visit.channels = channels
        size = { width: core.width, height: core.height }
      },
      logon: (info) => {
        visit.info = info
        front.licensed()
        desktop = new FrontDesktop({
          desktop: { ...size, depth: 16 },
          user: front.user,
          sendIo: (data) => front.sendIo(data),
          sendFastPath: (pdu) => front.sendFastPath(pdu),
          visitor: {
            paint: () => {
              visit.painted++
              if (options.refusal !== undefined) {
                desktop!.tellError(options.refusal)
                front.close(DISCONNECT_REASON.providerInitiated)
                tls.end()
              } else options.paint?.(desktop!, size, tls)
            },
            input: (events) => {
              visit.input.push(...events)
              options.input?.(desktop!, events, tls)
            },
            shutdown: () => {
              front.close(DISCONNECT_REASON.userRequested)
              tls.end()
            },
          },
        })
      },
      license: () => {},
      io: (data) => {
        options.io?.(data)
        desktop?.receiveIo(data)
      },
      channel: () => {},
      fastPath: (pdu) => desktop?.receiveFastPath(pdu),
      disconnect: () => tls.end(),
    },
  })
  tls.on('data', (chunk: Buffer) => {
    try {
      front.receive(chunk)
    } catch (error) {
      visit.error = error
      tls.destroy()
    }
  })
}
