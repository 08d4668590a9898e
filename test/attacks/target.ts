/** A target that follows no rule: an SSH server that accepts the bastion and then sends a test's messages. */
import type { AddressInfo, Socket } from 'node:net'
import ssh2, { type AuthContext, type Connection } from 'ssh2'
import { buildChannelOpenConfirmation, buildChannelSuccess } from '../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelOpen, parseChannelRequest } from '../../proxies/ssh/codec/messages.ts'
import { Transport } from '../../proxies/ssh/transport/transport.ts'
import { generateKey } from '../peers/keys.ts'

/** The target's number of its one channel. */
export const TARGET_CHANNEL = 40
export const TARGET_WINDOW = 1_000_000

export interface HostileTarget {
  port: number
  /** Connection-layer messages from the bastion, of all connections. */
  received: Buffer[]
  /** The leg of the last connection. */
  readonly leg: Transport | undefined
  stop(): void
}

/** Runs when the client's program begins; `channel` is the bastion's number. */
export type Script = (leg: Transport, channel: number) => void

export interface HostileOptions {
  script?: () => Script
  /** The host key; default: a new one of Ed25519. */
  privateKey?: string
  /** Collects the received passwords. */
  passwords?: string[]
}

/**
 * Confirms channels, grants their main requests and answers no other, and runs the script at the main
 * request. Without a script it sends nothing by itself.
 */
export async function startHostileTarget(
  folder: string,
  { script, privateKey, passwords }: HostileOptions = {},
): Promise<HostileTarget> {
  const hostKey = privateKey ?? (await generateKey(folder)).privateKey
  const received: Buffer[] = []
  const sockets = new Set<Socket>()
  let last: Transport | undefined
  const server = new ssh2.Server({ hostKeys: [hostKey], keepaliveInterval: 0 }, (client: Connection) => {
    const { _sock: socket } = client as unknown as { _sock: Socket }
    sockets.add(socket)
    const leg = new Transport(client, socket, { strict: false })
    last = leg
    let channel = 0
    client.on('error', () => socket.destroy())
    client.on('authentication', (context: AuthContext) => {
      if (context.method === 'password') passwords?.push(context.password)
      if (context.method === 'password') context.accept()
      else context.reject(['password'])
    })
    leg.onMessage = (payload) => {
      received.push(Buffer.from(payload))
      if (!script) return
      if (payload[0] === MSG.channelOpen) {
        channel = parseChannelOpen(payload).sender
        const sizes = { window: TARGET_WINDOW, maxPacket: 32_768 }
        leg.send(buildChannelOpenConfirmation({ recipient: channel, sender: TARGET_CHANNEL, ...sizes }))
      } else if (payload[0] === MSG.channelRequest) {
        const { type, wantReply } = parseChannelRequest(payload)
        if (type !== 'exec' && type !== 'shell') return
        if (wantReply) leg.send(buildChannelSuccess(channel))
        script()(leg, channel)
      }
    }
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
  return {
    port,
    received,
    get leg() {
      return last
    },
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
