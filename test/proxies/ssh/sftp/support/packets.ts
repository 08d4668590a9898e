/** SFTP packets of a client and a target, and a target that serves a small tree of names. */
import { Buffer } from 'node:buffer'
import { posix } from 'node:path'
import { FXP } from '../../../../../proxies/ssh/codec/sftp.ts'
import { Writer } from '../../../../../proxies/ssh/codec/writer.ts'

export const READ = 1
export const WRITE = 2
export const APPEND = 4
export const CREATE = 8
export const TRUNCATE = 16

export function packet(type: number, body: (writer: Writer) => Writer): Buffer {
  return new Writer().string(body(new Writer().byte(type)).finish()).finish()
}

export const init = (version = 3) => packet(FXP.init, (w) => w.uint32(version))
export const open = (id: number, path: string, flags: number) =>
  packet(FXP.open, (w) => w.uint32(id).string(path).uint32(flags).uint32(0))
/** Builds a request whose fields are strings: a path, two paths, a handle. */
export const named = (type: number, id: number, ...texts: string[]) =>
  packet(type, (w) => texts.reduce((all, text) => all.string(text), w.uint32(id)))
export const read = (id: number, handle: string, offset: number, length: number) =>
  packet(FXP.read, (w) => w.uint32(id).string(handle).uint64(BigInt(offset)).uint32(length))
export const write = (id: number, handle: string, offset: number, data: string) =>
  packet(FXP.write, (w) => w.uint32(id).string(handle).uint64(BigInt(offset)).string(data))
export const attributes = (type: number, id: number, path: string, size?: number) =>
  packet(type, (w) => {
    const flagged = w
      .uint32(id)
      .string(path)
      .uint32(size === undefined ? 0 : 1)
    return size === undefined ? flagged : flagged.uint64(BigInt(size))
  })
export const extended = (id: number, name: string, ...texts: string[]) =>
  named(FXP.extended, id, name, ...texts)
export const status = (id: number, code: number) =>
  packet(FXP.status, (w) => w.uint32(id).uint32(code).string('').string(''))

export interface Packet {
  type: number
  /** The bytes after the type. */
  body: Buffer
}

/** Cuts a stream into packets; drops an incomplete one. */
export function packetsOf(stream: Buffer): Packet[] {
  const packets: Packet[] = []
  for (let at = 0; at + 4 <= stream.length; ) {
    const end = at + 4 + stream.readUInt32BE(at)
    if (end > stream.length) break
    packets.push({ type: stream[at + 4]!, body: stream.subarray(at + 5, end) })
    at = end
  }
  return packets
}

export const idOf = ({ body }: Packet) => body.readUInt32BE(0)

/** Returns the strings at the beginning of a request, after its id. */
export function stringsOf({ body }: Packet, count: number): string[] {
  const found: string[] = []
  for (let at = 4; found.length < count; ) {
    const length = body.readUInt32BE(at)
    found.push(body.toString('utf8', at + 4, at + 4 + length))
    at += 4 + length
  }
  return found
}

export const EXTENSIONS = [
  'posix-rename@openssh.com',
  'hardlink@openssh.com',
  'copy-data',
  'limits@openssh.com',
  'fsync@openssh.com',
  'unheard-of@example.com',
]

/** A target with symbolic links (`links`) and files with sizes (`files`). Other paths are folders. */
export class Target {
  readonly links: Readonly<Record<string, string>>
  readonly files: Readonly<Record<string, number>>
  /** The packets received. */
  readonly got: Packet[] = []
  #handles = 0
  #stream = Buffer.alloc(0)

  constructor(links: Record<string, string> = {}, files: Record<string, number> = {}) {
    this.links = links
    this.files = files
  }

  /** Receives bytes; returns the replies. */
  take(bytes: Uint8Array): Buffer {
    this.#stream = Buffer.concat([this.#stream, bytes])
    const answers: Buffer[] = []
    for (const packet of packetsOf(this.#stream)) {
      this.#stream = this.#stream.subarray(5 + packet.body.length)
      this.got.push(packet)
      answers.push(this.#answer(packet))
    }
    return Buffer.concat(answers)
  }

  /** Resolves every link on the way. */
  real(path: string): string {
    let done = '/'
    let names = posix.resolve('/home/me', path).split('/').slice(1)
    for (let steps = 0; names.length > 0 && steps < 100; steps++) {
      const [first = '', ...rest] = names
      const next = posix.join(done, first)
      const aim = this.links[next]
      if (aim === undefined) {
        done = next
        names = rest
      } else {
        const whole = posix.resolve(done, aim)
        names = [...whole.split('/').slice(1), ...rest].filter((name) => name !== '')
        done = '/'
      }
    }
    return done
  }

  #answer({ type, body }: Packet): Buffer {
    if (type === FXP.init) {
      return packet(FXP.version, (w) =>
        EXTENSIONS.reduce((all, name) => all.string(name).string('1'), w.uint32(3)),
      )
    }
    const asked = { type, body }
    const id = idOf(asked)
    switch (type) {
      case FXP.open:
      case FXP.opendir:
        return named(FXP.handle, id, `h${this.#handles++}`)
      case FXP.read: {
        const [handle = ''] = stringsOf(asked, 1)
        const length = body.readUInt32BE(8 + handle.length + 8)
        return named(FXP.data, id, 'x'.repeat(Math.min(length, 100)))
      }
      case FXP.realpath: {
        const real = this.real(stringsOf(asked, 1)[0]!)
        return packet(FXP.name, (w) => w.uint32(id).uint32(1).string(real).string(real).uint32(0))
      }
      case FXP.lstat:
      case FXP.stat: {
        const path = stringsOf(asked, 1)[0]!
        const whole = posix.resolve('/home/me', path)
        const there = type === FXP.stat ? this.real(path) : whole
        const size = this.files[there]
        const mode = this.links[there] !== undefined ? 0o120777 : size === undefined ? 0o040755 : 0o100644
        return packet(FXP.attrs, (w) =>
          w
            .uint32(id)
            .uint32(5)
            .uint64(BigInt(size ?? 0))
            .uint32(mode),
        )
      }
      default:
        return status(id, 0)
    }
  }
}
