/** An RDP proxy in this process, with the test's gate, and users that connect over TLS. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { PALETTE } from '../../../proxies/desktop/screens/palette.ts'
import { serverContext } from '../../../proxies/net/tls.ts'
import { parseClientData } from '../../../proxies/rdp/codec/client-data.ts'
import { type ClientInfo, INFO_FLAG } from '../../../proxies/rdp/codec/client-info.ts'
import { BLOCK } from '../../../proxies/rdp/codec/data-blocks.ts'
import { buildConnectionRequest, SECURITY_PROTOCOL } from '../../../proxies/rdp/codec/x224.ts'
import { BackConnection } from '../../../proxies/rdp/connection/back-connection.ts'
import type { LocalDisplay } from '../../../proxies/rdp/local/display.ts'
import { RdpProxy, type RdpProxyOptions } from '../../../proxies/rdp/proxy.ts'
import { Connections } from '../../../proxies/session/connections.ts'
import type {
  AuthenticateAnswer,
  AuthenticateRequest,
  Gate,
  OpenAnswer,
  OpenRequest,
} from '../../../src/contract/gate.ts'
import type { CertificateFiles } from '../../peers/vnc/certificate.ts'
import { until } from '../../until.ts'
import { readText } from '../desktop/screens/reading.ts'
import { listening } from '../listening.ts'
import { WITHOUT_LICENSE } from './connection/pair.ts'
import { clientCore } from './connection/target.ts'
import { FakeClient } from './local/client.ts'

export const SIZE = { width: 640, height: 480 }
/** Scancodes. */
export const KEY = { enter: 0x1c, escape: 0x01, tab: 0x0f, down: 0x50 } as const

export interface WorldOptions extends Partial<Pick<RdpProxyOptions, 'motd' | 'loginGraceMs'>> {
  certificate: CertificateFiles
  authenticate: (request: AuthenticateRequest) => Promise<AuthenticateAnswer>
  open?: (request: OpenRequest) => Promise<OpenAnswer>
  /** Canonical names. */
  targets?: readonly string[]
}

export interface World {
  connections: Connections
  proxy: RdpProxy
  /** Requests to the gate. */
  authenticated: AuthenticateRequest[]
  opened: OpenRequest[]
  /** Tokens of identities, and ids of challenges, that were released. */
  left: string[]
  visit(info?: Partial<ClientInfo>): Promise<Person>
  stop(): void
}

export async function startWorld(options: WorldOptions): Promise<World> {
  const { certificate, authenticate, targets = [], loginGraceMs = 60_000, motd } = options
  const { open = async () => ({ result: 'denied', message: 'nothing is open here' }) } = options
  const authenticated: AuthenticateRequest[] = []
  const opened: OpenRequest[] = []
  const left: string[] = []
  const gate = {
    authenticate: async (request) => {
      // No name here is of a person that signs in in a browser.
      if (request.proof.method === 'browser') return { result: 'rejected' }
      authenticated.push(request)
      return await authenticate(request)
    },
    open: async (request) => {
      opened.push(request)
      return await open(request)
    },
    targets: async () => ({
      targets: targets.map((target) => ({ target, description: '' })),
      total: targets.length,
    }),
    leave: async ({ identity }) => void left.push(identity),
    onNotice: () => {},
  } satisfies Partial<Gate> as unknown as Gate
  const connections = new Connections(gate)
  const proxy = new RdpProxy({
    gate,
    connections,
    bastion: 'Sallyport',
    loginGraceMs,
    motd,
    security: {
      tls: serverContext(certificate.pem),
      certificate: new X509Certificate(certificate.pem.cert).raw,
      nla: 'tickets',
    },
  })
  const bound = await listening(proxy)
  const { port } = bound
  const people: Person[] = []
  return {
    connections,
    proxy,
    authenticated,
    opened,
    left,
    visit: async (info = {}) => {
      const person = await Person.at(port, info)
      people.push(person)
      return person
    },
    stop: () => {
      for (const person of people) person.leave()
      proxy.close()
      proxy.destroy()
    },
  }
}

const INFO: ClientInfo = {
  codePage: 0x409,
  flags: INFO_FLAG.mouse,
  domain: '',
  login: '',
  password: '',
  alternateShell: '',
  workingFolder: '',
  extended: new Uint8Array(0),
}

/** A user at a client that accepts every desktop offered: reads its screen and types. */
export class Person {
  readonly client = new FakeClient({ size: SIZE })
  /** Reasons of the server's disconnect messages. */
  disconnects: number[] = []
  isGone = false
  readonly #socket: TLSSocket

  private constructor(socket: TLSSocket, info: Partial<ClientInfo>) {
    this.#socket = socket
    const { client } = this
    const back = new BackConnection({
      client: parseClientData([{ type: BLOCK.clientCore, body: clientCore(SIZE.width, SIZE.height) }]),
      view: { selectedProtocol: SECURITY_PROTOCOL.tls, channels: [], colourDepth: 32 },
      info: { ...INFO, ...info },
      licensing: WITHOUT_LICENSE,
      write: (bytes) => socket.write(bytes),
      visitor: {
        license: () => {},
        licensed: () => client.license(),
        io: (data) => client.sendIo(data),
        channel: () => {},
        fastPath: (pdu) => client.sendFastPath(pdu),
        disconnect: (reason) => void this.disconnects.push(reason),
      },
    })
    const server: Pick<LocalDisplay, 'io' | 'fastPath'> = {
      io: (data) => back.sendIo(data),
      fastPath: (pdu) => back.sendFastPath(pdu),
    }
    client.display = server as LocalDisplay
    socket.on('data', (chunk: Buffer) => back.receive(chunk))
    socket.on('close', () => {
      this.isGone = true
    })
    back.start()
  }

  static async at(port: number, info: Partial<ClientInfo>): Promise<Person> {
    const tcp = connect(port, '127.0.0.1')
    tcp.on('error', () => undefined)
    tcp.write(buildConnectionRequest({ negotiation: { flags: 0, protocols: SECURITY_PROTOCOL.tls } }))
    await once(tcp, 'data', { signal: AbortSignal.timeout(10_000) })
    const socket = connectTls({ socket: tcp, rejectUnauthorized: false })
    socket.on('error', () => undefined)
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(10_000) })
    return new Person(socket, info)
  }

  /** Waits until this text is on the screen, and returns all text on it. */
  sees(text: string): Promise<string> {
    return until(`"${text}" on the screen`, () => {
      const shown = this.#shown()
      return shown.includes(text) ? shown : undefined
    })
  }

  /** Types by Unicode events. */
  type(text: string): void {
    this.client.type(text)
  }

  press(code: number): void {
    this.client.key(code, code === KEY.down ? 1 : 0)
  }

  /** Waits until the connection has closed. */
  async over(): Promise<void> {
    await until('the end of the connection', () => this.isGone || undefined)
  }

  leave(): void {
    this.#socket.destroy()
  }

  #shown(): string {
    const { picture } = this.client
    if (!picture) return ''
    const { width, height, bytes } = picture.framebuffer
    const pixels = new Uint8Array(width * height)
    for (let at = 0; at < pixels.length; at++) pixels[at] = nearest(bytes, 4 * at)
    return readText({ width, height, pixels }, 1)
      .map(({ text }) => text)
      .join('\n')
  }
}

const COLOURS = PALETTE.length / 3
const known = new Map<number, number>()

/** Returns the palette's nearest colour, for colours with five or six bits per part. */
function nearest(bytes: Uint8Array, at: number): number {
  const colour = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
  const found = known.get(colour)
  if (found !== undefined) return found
  let best = 0
  let least = Number.POSITIVE_INFINITY
  for (let place = 0; place < COLOURS; place++) {
    const distance = [0, 1, 2].reduce(
      (sum, part) => sum + Math.abs(bytes[at + part]! - PALETTE[3 * place + part]!),
      0,
    )
    if (distance < least) {
      least = distance
      best = place
    }
  }
  known.set(colour, best)
  return best
}
