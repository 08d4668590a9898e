/** A relay between a test client and a test target, in memory, with a session of given rights. */
import { Buffer } from 'node:buffer'
import type { ByteStream } from '../../../proxies/net/byte-stream.ts'
import type { LogonWatch } from '../../../proxies/rdp/back/logon-watch.ts'
import { RdpTarget } from '../../../proxies/rdp/back/target.ts'
import { planChannels } from '../../../proxies/rdp/channels/plan.ts'
import { buildConfirmActive, buildDemandActive } from '../../../proxies/rdp/codec/active.ts'
import type { Desktop } from '../../../proxies/rdp/codec/capabilities.ts'
import { type ChannelDefinition, parseClientData } from '../../../proxies/rdp/codec/client-data.ts'
import { type ClientInfo, forTarget, INFO_FLAG } from '../../../proxies/rdp/codec/client-info.ts'
import { BLOCK } from '../../../proxies/rdp/codec/data-blocks.ts'
import { buildFastPathUpdate } from '../../../proxies/rdp/codec/fast-path-output.ts'
import { buildFastPathInput, type InputEvent } from '../../../proxies/rdp/codec/input.ts'
import type { Redirection } from '../../../proxies/rdp/codec/redirection.ts'
import { buildShare, buildShareData, CONTROL_PDU, type ShareData } from '../../../proxies/rdp/codec/share.ts'
import { UPDATE, type Update } from '../../../proxies/rdp/codec/updates.ts'
import { buildChunks, ChannelAssembler } from '../../../proxies/rdp/codec/virtual-channel.ts'
import { ByteWriter } from '../../../proxies/rdp/codec/writer.ts'
import { BackConnection } from '../../../proxies/rdp/connection/back-connection.ts'
import { FrontConnection } from '../../../proxies/rdp/connection/front-connection.ts'
import { RdpClient } from '../../../proxies/rdp/front/client.ts'
import { channelPolicy } from '../../../proxies/rdp/relay/channel-rights.ts'
import { RdpRelay } from '../../../proxies/rdp/relay/relay.ts'
import { RdpSession } from '../../../proxies/rdp/relay/session.ts'
import { FRAME, type FrameType } from '../../../recordings/container/frames.ts'
import type { Gate, OpenSession } from '../../../src/contract/gate.ts'
import { RDP_OPTIONS, type RdpOptions } from '../../../src/model/rdp-options.ts'
import type { Right } from '../../../src/model/rights.ts'
import { SESSION_OPTIONS } from '../../../src/model/session-options.ts'
import { FakeStream } from '../net/fake-stream.ts'
import { WITHOUT_LICENSE } from './connection/pair.ts'
import { clientCapabilities, clientCore } from './connection/target.ts'

export const DESKTOP: Desktop = { width: 800, height: 600, depth: 32 }
export const SHARE = 0x000103ea
export const CHANNELS = ['rdpdr', 'cliprdr', 'rdpsnd', 'drdynvc', 'rail']

const INFO: ClientInfo = {
  codePage: 0x409,
  flags: INFO_FLAG.mouse,
  domain: '',
  login: 'ops1',
  password: '',
  alternateShell: '',
  workingFolder: '',
  extended: new Uint8Array(0),
}

/** The test's end of one side. */
export interface End {
  stream: FakeStream
  io(data: Uint8Array): void
  fastPath(pdu: Uint8Array): void
  /** Sends a whole message on the channel of this name, if there is one. */
  channel(name: string, message: Uint8Array): void
  /** Returns the data received since the last call: I/O channel, fast path, and messages by channel. */
  heard(): { io: Buffer[]; fastPath: Buffer[]; channels: [name: string, message: Buffer][] }
  disconnects: number[]
}

export interface TargetEnd extends End {
  draw(update: Update): void
  data(data: Pick<ShareData, 'type' | 'body'>): void
  offer(desktop?: Desktop): void
}

export interface World {
  client: End & { input(...events: InputEvent[]): void; confirm(desktop?: Desktop): void }
  target: TargetEnd
  /** Creates a target for a redirection. */
  another(): { target: RdpTarget; end: TargetEnd }
  session: RdpSession
  relay: RdpRelay
  events: [code: string, fields: object][]
  frames: [type: FrameType, payload: Buffer][]
  /** The recorded graphics, joined. */
  graphics(): Buffer
  told: string[]
  lastWords: { desktop: Desktop | undefined; reason: string; code: number }[]
  closed: { result: string; reason?: string }[]
  ended: number
}

export interface WorldOptions {
  rights?: Right[]
  options?: Partial<RdpOptions>
  opened?: Partial<OpenSession>
  watch?: LogonWatch
  channels?: string[]
  /** Flags of the Client Info. */
  flags?: number
  /** The target has drawn nothing on its desktop. */
  isBlank?: boolean
  redirect?: (world: World, redirection: Redirection) => Promise<RdpTarget>
}

const definitions = (names: readonly string[]): ChannelDefinition[] =>
  names.map((name) => ({ name, options: 0xc0a00000 }))

/** Carries bytes between both sides until neither sends any. */
function settle(pairs: [FakeStream, { receive(bytes: Uint8Array): void }, () => Buffer][]): void {
  for (let isQuiet = false; !isQuiet; ) {
    isQuiet = true
    for (const [stream, peer, sent] of pairs) {
      const toPeer = stream.take()
      const fromPeer = sent()
      if (toPeer.length > 0) peer.receive(toPeer)
      if (fromPeer.length > 0) stream.say(fromPeer)
      if (toPeer.length + fromPeer.length > 0) isQuiet = false
    }
  }
}

class Peer implements Omit<End, 'io' | 'fastPath' | 'channel'> {
  readonly stream = new FakeStream()
  readonly disconnects: number[] = []
  readonly names: readonly string[]
  readonly #assemblers: ChannelAssembler[]
  #heard: ReturnType<End['heard']> = { io: [], fastPath: [], channels: [] }
  #sent: Buffer[] = []

  constructor(names: readonly string[]) {
    this.names = names
    this.#assemblers = names.map((name) => new ChannelAssembler(name, 1 << 24))
  }

  readonly visitor = {
    io: (data: Uint8Array) => void this.#heard.io.push(Buffer.from(data)),
    fastPath: (pdu: Uint8Array) => void this.#heard.fastPath.push(Buffer.from(pdu)),
    channel: (index: number, chunk: Uint8Array) => {
      const message = this.#assemblers[index]!.feed(chunk)
      if (message) this.#heard.channels.push([this.names[index]!, Buffer.from(message)])
    },
    disconnect: (reason: number) => void this.disconnects.push(reason),
    license: () => {},
  }

  readonly write = (bytes: Uint8Array): void => void this.#sent.push(Buffer.from(bytes))

  heard(): ReturnType<End['heard']> {
    const heard = this.#heard
    this.#heard = { io: [], fastPath: [], channels: [] }
    return heard
  }

  sent(): Buffer {
    const sent = Buffer.concat(this.#sent)
    this.#sent = []
    return sent
  }
}

export async function newWorld(given: WorldOptions = {}): Promise<World> {
  const { rights = [], options = {}, opened = {}, watch, channels = CHANNELS, flags = INFO.flags } = given
  const events: World['events'] = []
  const closed: World['closed'] = []
  const gate = {
    event: async ({ code, fields }: { code: string; fields: object }) => void events.push([code, fields]),
    close: async ({ result, reason }: { result: string; reason?: string }) =>
      void closed.push({ result, ...(reason !== undefined && { reason }) }),
  } as unknown as Gate
  const session = await RdpSession.of(
    {
      id: 'S',
      user: 'ops1',
      target: { canonical: 'root@local:desk1:rdp', device: 'desk1' },
      rights: ['RDP', ...rights],
      options: SESSION_OPTIONS,
      rdpOptions: { ...RDP_OPTIONS, ...options },
      ...opened,
    } as unknown as OpenSession,
    gate,
  )
  const frames: World['frames'] = []
  Object.defineProperty(session.recording, 'isOn', { value: true })
  session.recording.write = (type, _channel, payload) => void frames.push([type, Buffer.from(payload)])
  const plan = planChannels(definitions(channels), channelPolicy(session.rights, session.rdp))

  const clientPeer = new Peer(channels)
  const clientEnd = new BackConnection({
    client: parseClientData([{ type: BLOCK.clientCore, body: clientCore(800, 600) }]),
    view: { selectedProtocol: 1, channels: definitions(channels), colourDepth: 32 },
    info: { ...INFO, flags },
    licensing: 'relayed',
    write: clientPeer.write,
    visitor: { ...clientPeer.visitor, licensed: () => {} },
  })
  const pairs: Parameters<typeof settle>[0][number][] = [
    [clientPeer.stream, clientEnd, () => clientPeer.sent()],
  ]
  const settleAll = () => settle(pairs)

  const connecting = RdpClient.receive({
    stream: clientPeer.stream as unknown as ByteStream,
    requestedProtocols: 1,
  })
  clientEnd.start()
  settleAll()
  const client = await connecting
  client.license()
  settleAll()

  const end = (peer: Peer, connection: BackConnection | FrontConnection): End => ({
    stream: peer.stream,
    disconnects: peer.disconnects,
    io: (data) => {
      connection.sendIo(data)
      settleAll()
    },
    fastPath: (pdu) => {
      connection.sendFastPath(pdu)
      settleAll()
    },
    channel: (name, message) => {
      for (const chunk of buildChunks(message)) connection.sendChannel(peer.names.indexOf(name), chunk)
      settleAll()
    },
    heard: () => {
      settleAll()
      return peer.heard()
    },
  })
  const targetOf = (side: End): TargetEnd => ({
    ...side,
    draw: (update) => {
      for (const pdu of buildFastPathUpdate(update)) side.fastPath(pdu)
    },
    data: (data) => side.io(buildShareData({ shareId: SHARE, ...data })),
    offer: (desktop = DESKTOP) =>
      side.io(buildDemandActive({ shareId: SHARE, capabilities: clientCapabilities(desktop) })),
  })
  const reach = () => {
    const peer = new Peer(plan.channels.map(({ name }) => name))
    const far: FrontConnection = new FrontConnection({
      requestedProtocols: 1,
      write: peer.write,
      visitor: { ...peer.visitor, settings: () => {}, logon: () => far.licensed() },
    })
    const target = new RdpTarget({
      stream: peer.stream as unknown as ByteStream,
      protocol: 'tls',
      watch,
      clipboard: undefined,
      channels: plan.channels.length,
    })
    target.connection = new BackConnection({
      client: client.settings,
      view: { selectedProtocol: 1, channels: plan.channels, colourDepth: 32 },
      info: forTarget(INFO, { domain: '', login: 'root', password: 'Target-Pass1' }),
      licensing: WITHOUT_LICENSE,
      write: (bytes) => target.send(bytes),
      visitor: target.listener,
    })
    peer.stream.onData = (chunk) => target.receive(chunk)
    pairs.push([peer.stream, far, () => peer.sent()])
    target.connection.start()
    settleAll()
    return { target, end: targetOf(end(peer, far)) }
  }

  const world: Omit<World, 'relay' | 'client' | 'target' | 'another'> = {
    session,
    events,
    frames,
    closed,
    told: [],
    lastWords: [],
    ended: 0,
    graphics: () =>
      Buffer.concat(frames.filter(([type]) => type === FRAME.graphics).map(([, payload]) => payload)),
  }
  const first = reach()
  const relay = new RdpRelay({
    client,
    target: first.target,
    session,
    plan,
    redirect: (redirection) =>
      given.redirect?.(world as World, redirection) ??
      Promise.reject(new Error('no redirection was expected')),
    onLastWords: (desktop, reason, code) => void world.lastWords.push({ desktop, reason, code }),
    onClosed: () => {
      world.ended++
    },
  })
  const tell = session.onTell
  session.onTell = (text) => {
    world.told.push(text)
    tell?.(text)
  }
  settleAll()

  const clientSide = end(clientPeer, clientEnd)
  return Object.assign(world, {
    relay,
    another: reach,
    client: {
      ...clientSide,
      input: (...input: InputEvent[]) => clientSide.fastPath(buildFastPathInput(input)),
      confirm: (desktop = DESKTOP) =>
        clientSide.io(
          buildConfirmActive({ shareId: SHARE, capabilities: clientCapabilities(desktop) }, clientEnd.user),
        ),
    },
    target: first.end,
  })
}

/** One bitmap over the whole desktop, without pixels, since no test draws it. */
export function wholeOf({ width, height }: { width: number; height: number }): Update {
  const numbers = [1, 1, 0, 0, width - 1, height - 1, width, height, 32, 0x401, 0]
  return { code: UPDATE.bitmap, data: Buffer.from(Uint16Array.from(numbers).buffer) }
}

/** A world whose client has the target's desktop, drawn unless `isBlank`, with nothing heard or recorded. */
export async function newWorldWithDesktop(given?: WorldOptions): Promise<World> {
  const world = await newWorld(given)
  world.target.offer()
  world.client.confirm()
  if (!given?.isBlank) world.target.draw(wholeOf(DESKTOP))
  world.client.heard()
  world.target.heard()
  world.frames.splice(0, Infinity, ...world.frames.filter(([type]) => type !== FRAME.graphics))
  return world
}

/** Sends the session on to 192.0.2.7 (MS-RDPBCGR 2.2.13.1). */
export function redirection(): Buffer {
  const address = Buffer.from('192.0.2.7\0', 'utf16le')
  const packet = new ByteWriter().zeros(2).uint16(0x400).uint16(0).uint32(5).uint32(0x1)
  return buildShare(
    CONTROL_PDU.serverRedirection,
    1002,
    packet.uint32(address.length).bytes(address).finish(),
  )
}
