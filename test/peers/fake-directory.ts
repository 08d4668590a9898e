/** A directory whose answers are those that a test says, message by message. */
import { createServer, type Socket } from 'node:net'
import { BerReader, BerWriter } from 'ldapts'
import { freePort } from './process.ts'

const [BIND, SEARCH, UNBIND, MODIFY, EXTENDED] = [0x60, 0x63, 0x42, 0x66, 0x77]
const [BIND_RESPONSE, ENTRY, DONE, MODIFY_RESPONSE, EXTENDED_RESPONSE] = [0x61, 0x64, 0x65, 0x67, 0x78]

export type Request =
  | { op: 'bind'; dn: string; password: string }
  | { op: 'search'; base: string; attributes: string }
  | { op: 'modify' | 'extended' }

export interface Reply {
  /** Result code; 0 unless given. */
  code?: number
  words?: string
  entries?: { dn: string; attributes: Record<string, (string | Buffer)[]> }[]
}

export interface FakeDirectory {
  port: number
  requests: Request[]
  /** Number of connections so far. */
  connections(): number
  stop(): Promise<void>
}

/** `answer` gets the connection, counted from 1, and returns the reply, or undefined if the server says nothing. */
export async function fakeDirectory(
  answer: (request: Request, connection: number) => Reply | undefined,
): Promise<FakeDirectory> {
  const port = await freePort()
  const sockets = new Set<Socket>()
  const requests: Request[] = []
  let connections = 0
  const server = createServer((socket) => {
    const connection = ++connections
    let bytes = Buffer.alloc(0)
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      for (let length = lengthOf(bytes); length && length <= bytes.length; length = lengthOf(bytes)) {
        const read = readRequest(bytes.subarray(0, length))
        bytes = bytes.subarray(length)
        if (!read) return socket.destroy()
        requests.push(read.request)
        const reply = answer(read.request, connection)
        if (reply) socket.write(written(read.id, read.request, reply))
      }
      return undefined
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    requests,
    connections: () => connections,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function lengthOf(bytes: Buffer): number | undefined {
  if (bytes.length < 2) return undefined
  const reader = new BerReader(bytes)
  return reader.readSequence() === null ? undefined : reader.offset + reader.length
}

function readRequest(bytes: Buffer): { id: number; request: Request } | undefined {
  const reader = new BerReader(bytes)
  reader.readSequence()
  const id = reader.readInt() ?? 0
  const op = reader.readSequence()
  if (op === BIND) {
    reader.readInt()
    return {
      id,
      request: { op: 'bind', dn: reader.readString() ?? '', password: reader.readString(0x80) ?? '' },
    }
  }
  // The names of attributes are at the end.
  if (op === SEARCH)
    return {
      id,
      request: { op: 'search', base: reader.readString() ?? '', attributes: bytes.toString('latin1') },
    }
  if (op === MODIFY) return { id, request: { op: 'modify' } }
  if (op === EXTENDED) return { id, request: { op: 'extended' } }
  if (op !== UNBIND) throw new Error(`unexpected operation ${op}`)
  return undefined
}

const RESPONSES = {
  bind: BIND_RESPONSE,
  search: DONE,
  modify: MODIFY_RESPONSE,
  extended: EXTENDED_RESPONSE,
} as const

function written(id: number, { op }: Request, { code = 0, words = '', entries = [] }: Reply): Buffer {
  const messages = entries.map(({ dn, attributes }) =>
    message(id, ENTRY, (writer) => {
      writer.writeString(dn)
      writer.startSequence()
      for (const [name, values] of Object.entries(attributes)) {
        writer.startSequence()
        writer.writeString(name)
        writer.startSequence(0x31)
        for (const value of values) writer.writeBuffer(Buffer.from(value as string), 0x04)
        writer.endSequence()
        writer.endSequence()
      }
      writer.endSequence()
    }),
  )
  const end = message(id, RESPONSES[op], (writer) => {
    writer.writeEnumeration(code)
    writer.writeString('')
    writer.writeString(words)
  })
  return Buffer.concat([...messages, end])
}

function message(id: number, tag: number, write: (writer: BerWriter) => void): Buffer {
  const writer = new BerWriter()
  writer.startSequence()
  writer.writeInt(id)
  writer.startSequence(tag)
  write(writer)
  writer.endSequence()
  writer.endSequence()
  return writer.buffer
}
