/**
 * A TACACS+ server for tests, written from RFC 8907 beside the codec of the product: no Debian package has one. Its own
 * proof is Debian's Perl client.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

export interface Request {
  type: number
  minor: number
  sequence: number
  flags: number
  session: number
  body: Buffer
  /** Packet as it came. */
  raw: Buffer
}

export interface Reply {
  body: Buffer
  /** Overrides of the header, for a server that lies. */
  version?: number
  type?: number
  sequence?: number
  flags?: number
  session?: number
  length?: number
}

export interface TacacsPeerOptions {
  key?: string
  users?: Record<string, string>
  /** Asks for a further answer in ASCII sign-ins, which has to be this. */
  code?: string
  /** Arguments of authorizations, by user. */
  args?: Record<string, string[]>
  /** Status of authorizations. */
  authorization?: number
  singleConnect?: boolean
  /** Replaces a reply; `undefined` for none. Bytes go out as they are. */
  twist?: (reply: Reply, request: Request) => Reply | Buffer | undefined
}

export interface AccountedFor {
  kind: number
  user: string
  source: string
  args: string[]
}

export class TacacsPeer {
  readonly options: Required<Pick<TacacsPeerOptions, 'key' | 'users'>> & TacacsPeerOptions
  readonly requests: Request[] = []
  /** All packets, as a decoder wants them. */
  readonly wire: { isRequest: boolean; bytes: Buffer }[] = []
  readonly accounted: AccountedFor[] = []
  /** Status of accounting: 1 SUCCESS, 2 ERROR. */
  accounting = 1
  /** Set to close each connection at once. */
  isAway = false
  connections = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #dialogues = new Map<number, { user: string; asked: 'user' | 'password' | 'code' }>()

  private constructor(options: TacacsPeerOptions) {
    this.options = { key: 'lab-tackey', users: { alice: 'Lab-Pass1' }, ...options }
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static async start(options: TacacsPeerOptions = {}): Promise<TacacsPeer> {
    const peer = new TacacsPeer(options)
    peer.#server.listen(0, '127.0.0.1')
    await once(peer.#server, 'listening')
    return peer
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Closes the connections, as a server that begins anew. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.drop()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(socket: Socket): void {
    if (this.isAway) {
      socket.destroy()
      return
    }
    this.connections++
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => undefined)
    let bytes = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      while (bytes.length >= 12 && bytes.length >= 12 + bytes.readUInt32BE(8)) {
        const raw = bytes.subarray(0, 12 + bytes.readUInt32BE(8))
        bytes = bytes.subarray(raw.length)
        this.#answer(socket, raw)
      }
    })
  }

  #answer(socket: Socket, raw: Buffer): void {
    const request: Request = {
      type: raw[1]!,
      minor: raw[0]! & 15,
      sequence: raw[2]!,
      flags: raw[3]!,
      session: raw.readUInt32BE(4),
      body: masked(raw, this.options.key),
      raw,
    }
    this.requests.push(request)
    this.wire.push({ isRequest: true, bytes: raw })
    const body = this.#judge(request)
    if (!body) return
    const flags = this.options.singleConnect && request.sequence === 1 ? request.flags & 4 : 0
    const twisted = this.options.twist ? this.options.twist({ body, flags }, request) : { body, flags }
    if (!twisted) return
    const packet = Buffer.isBuffer(twisted) ? twisted : this.packet(twisted, request)
    this.wire.push({ isRequest: false, bytes: packet })
    socket.write(packet)
    const isLast = Buffer.isBuffer(twisted) || isVerdict(request.type, twisted.body)
    if (!this.options.singleConnect && isLast) socket.end()
  }

  /** Returns the bytes of a reply to a request. */
  packet(reply: Reply, request: Request): Buffer {
    const head = Buffer.alloc(12)
    head[0] = reply.version ?? 0xc0 | request.minor
    head[1] = reply.type ?? request.type
    head[2] = reply.sequence ?? request.sequence + 1
    head[3] = reply.flags ?? 0
    head.writeUInt32BE(reply.session ?? request.session, 4)
    head.writeUInt32BE(reply.length ?? reply.body.length, 8)
    return Buffer.concat([head, masked(Buffer.concat([head, reply.body]), this.options.key)])
  }

  #judge(request: Request): Buffer | undefined {
    if (request.type === 1) return this.#authenticate(request)
    return request.type === 2 ? this.#authorize(request) : this.#account(request)
  }

  #authenticate({ body, session, sequence }: Request): Buffer | undefined {
    const { users, code } = this.options
    if (sequence === 1) {
      const [kind, user, , , data] = [body[2], ...fields(body, 8, [...body.subarray(4, 8)])]
      const name = String(user)
      if (kind === 2) return verdict(users[name] !== undefined && users[name] === String(data) ? 1 : 2)
      this.#dialogues.set(session, { user: name, asked: name === '' ? 'user' : 'password' })
      return name === '' ? question(4, 'Username: ') : question(5, 'Password: ', 1)
    }
    const dialogue = this.#dialogues.get(session)
    if (!dialogue || body[4]! & 1) return undefined
    const answer = body.subarray(5, 5 + body.readUInt16BE(0)).toString()
    if (dialogue.asked === 'user') {
      Object.assign(dialogue, { user: answer, asked: 'password' })
      return question(5, 'Password: ', 1)
    }
    if (dialogue.asked === 'code') return verdict(answer === code ? 1 : 2)
    const { user } = dialogue
    if (users[user] === undefined || users[user] !== answer) return verdict(2)
    if (code === undefined) return verdict(1)
    dialogue.asked = 'code'
    return question(3, 'Welcome.\nCode of your token: ')
  }

  #authorize({ body }: Request): Buffer {
    const { user } = withArguments(body, 4)
    const own = (this.options.args?.[user] ?? []).map((arg) => Buffer.from(arg))
    const status = this.options.users[user] === undefined ? 16 : (this.options.authorization ?? 1)
    const head = Buffer.from([status, own.length, 0, 0, 0, 0, ...own.map(({ length }) => length)])
    return Buffer.concat([head, ...own])
  }

  #account({ body }: Request): Buffer {
    if (this.accounting === 1) this.accounted.push({ kind: body[0]!, ...withArguments(body, 5) })
    return Buffer.from([0, 0, 0, 0, this.accounting])
  }
}

const verdict = (status: number): Buffer => Buffer.from([status, 0, 0, 0, 0, 0])
const isVerdict = (type: number, body: Buffer): boolean => type !== 1 || ![3, 4, 5].includes(body[0]!)

function question(status: number, text: string, flags = 0): Buffer {
  return Buffer.concat([Buffer.from([status, flags, 0, text.length, 0, 0]), Buffer.from(text)])
}

function fields(body: Buffer, from: number, lengths: readonly number[]): Buffer[] {
  let at = from
  return lengths.map((length) => {
    at += length
    return body.subarray(at - length, at)
  })
}

function withArguments(body: Buffer, at: number): { user: string; source: string; args: string[] } {
  const count = body[at + 3]!
  const lengths = [...body.subarray(at, at + 3), ...body.subarray(at + 4, at + 4 + count)]
  const [user, , source, ...args] = fields(body, at + 4 + count, lengths).map(String)
  return { user: user!, source: source!, args }
}

/** Returns the body of a packet with the pad of RFC 8907 4.5 over it. */
function masked(packet: Buffer, key: string): Buffer {
  const seed = Buffer.concat([
    packet.subarray(4, 8),
    Buffer.from(key),
    packet.subarray(0, 1),
    packet.subarray(2, 3),
  ])
  const body = packet.subarray(12)
  const pads: Buffer[] = []
  for (let bytes = 0; bytes < body.length; bytes += 16)
    pads.push(
      createHash('md5')
        .update(Buffer.concat([seed, pads.at(-1) ?? Buffer.alloc(0)]))
        .digest(),
    )
  const pad = Buffer.concat(pads)
  return Buffer.from(body.map((byte, i) => byte ^ pad[i]!))
}
