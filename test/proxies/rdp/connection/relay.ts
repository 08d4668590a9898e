/** Front and back of RDP joined by the filter on loopback: the bastion without rights and recording. */
import type { TLSSocket } from 'node:tls'
import type { SendChunk, Side } from '../../../../proxies/rdp/channels/direction.ts'
import type { Desktop } from '../../../../proxies/rdp/codec/capabilities.ts'
import type { ClientData } from '../../../../proxies/rdp/codec/client-data.ts'
import { type ClientInfo, forTarget, type TargetLogon } from '../../../../proxies/rdp/codec/client-info.ts'
import { DISCONNECT_REASON } from '../../../../proxies/rdp/codec/mcs.ts'
import { BackConnection } from '../../../../proxies/rdp/connection/back-connection.ts'
import { FrontConnection } from '../../../../proxies/rdp/connection/front-connection.ts'
import { SessionFilter } from '../../../../proxies/rdp/connection/session-filter.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { RdpPainter } from '../../../../recordings/decode/graphics/rdp/painter.ts'
import { message } from '../../../recordings/decode/graphics/rdp/updates.ts'
import { type Door, openDoor } from './listener.ts'

export interface Relay extends Door {
  desktops: Desktop[]
  /** Pictures of the updates so far, as in a replay: one for each in `desktops`. */
  drawn: RdpPainter[]
  /** Codes of updates, and kinds of input, in order. */
  updates: number[]
  input: string[]
  /** Bytes sent to the client. */
  down: Buffer[]
  errors: unknown[]
}

export interface RelayOptions {
  /** Connects to the target, up to TLS or CredSSP. */
  dial: () => Promise<TLSSocket>
  selectedProtocol: number
  logon: TargetLogon
  depth: 16 | 32
  /** Filters of static channels by name; other channels are forwarded unchanged. */
  filters?: Record<string, (send: SendChunk) => ChannelFilter>
}

interface ChannelFilter {
  receive(from: Side, chunk: Uint8Array): void
}

export async function openRelay(options: RelayOptions): Promise<Relay> {
  const seen = {
    desktops: [],
    drawn: [],
    updates: [],
    input: [],
    down: [],
    errors: [],
  } satisfies Partial<Relay> as Pick<Relay, 'desktops' | 'drawn' | 'updates' | 'input' | 'down' | 'errors'>
  const door = await openDoor({
    serve: (tls, requestedProtocols) => serve(tls, requestedProtocols, seen, options),
  })
  return { ...door, ...seen }
}

function serve(
  client: TLSSocket,
  requestedProtocols: number,
  seen: Omit<Relay, keyof Door>,
  { dial, selectedProtocol, logon, depth, filters = {} }: RelayOptions,
): void {
  const { desktops, drawn, updates, input, down, errors } = seen
  let data: ClientData | undefined
  let back: BackConnection | undefined
  let filter: SessionFilter | undefined
  let target: TLSSocket | undefined
  let channels: (ChannelFilter | undefined)[] = []
  const send = (to: Side, index: number, chunk: Uint8Array): void => {
    if (to === 'client') front.sendChannel(index, chunk)
    else back?.sendChannel(index, chunk)
  }
  const receive = (from: Side, index: number, chunk: Uint8Array): void => {
    const channel = channels[index]
    if (channel) channel.receive(from, chunk)
    else send(from === 'client' ? 'target' : 'client', index, chunk)
  }
  const end = (error?: unknown): void => {
    if (error !== undefined) errors.push(error)
    client.end()
    target?.destroy()
  }
  const guarded = (receive: (chunk: Buffer) => void) => (chunk: Buffer) => {
    try {
      receive(chunk)
    } catch (error) {
      end(error)
    }
  }
  const front = new FrontConnection({
    requestedProtocols,
    write: (bytes) => {
      down.push(Buffer.from(bytes))
      client.write(bytes)
    },
    visitor: {
      settings: (settings) => {
        data = settings
        channels = settings.channels.map(({ name }, index) =>
          filters[name]?.((to, chunk) => send(to, index, chunk)),
        )
      },
      logon: (info) => void connectBack(info).catch(end),
      license: (bytes) => back?.sendIo(bytes),
      io: (bytes) => {
        for (const one of filter!.fromClient(bytes)) back?.sendIo(one)
      },
      channel: (index, chunk) => receive('client', index, chunk),
      fastPath: (pdu) => {
        const kept = filter?.fastPathFromClient(pdu)
        if (kept) back?.sendFastPath(kept)
      },
      disconnect: () => end(),
    },
  })
  const connectBack = async (info: ClientInfo): Promise<void> => {
    target = await dial()
    const one = new BackConnection({
      client: data!,
      view: { selectedProtocol, channels: data!.channels, colourDepth: depth },
      info: forTarget(info, logon),
      licensing: 'relayed',
      write: (bytes) => target!.write(bytes),
      visitor: {
        license: (bytes) => front.sendIo(bytes),
        licensed: () => {
          front.startSession()
          filter = new SessionFilter(
            {
              desktop: (desktop) => {
                desktops.push(desktop)
                drawn.push(new RdpPainter(desktop))
              },
              deactivated: () => {},
              confirmed: () => {},
              update: ({ code, data }) => {
                updates.push(code)
                const payload = message(code, data)
                drawn.at(-1)!.apply({ type: FRAME.graphics, payload })
              },
              skips: () => false,
              input: (events) => input.push(...events.map(({ kind }) => kind)) > 0,
              sessionInfo: () => {},
              errorInfo: () => {},
              redirected: () => {},
            },
            one.user,
          )
        },
        io: (bytes) => {
          for (const share of filter!.fromTarget(bytes)) front.sendIo(share)
        },
        channel: (index, chunk) => receive('target', index, chunk),
        fastPath: (pdu) => {
          const kept = filter!.fastPathFromTarget(pdu)
          if (kept) front.sendFastPath(kept)
        },
        disconnect: () => {
          front.close(DISCONNECT_REASON.userRequested)
          end()
        },
      },
    })
    back = one
    target.on('error', end)
    target.on('close', () => end())
    target.on(
      'data',
      guarded((chunk) => one.receive(chunk)),
    )
    one.start()
  }
  client.on(
    'data',
    guarded((chunk) => front.receive(chunk)),
  )
}
