/**
 * A worker that does as its argument says, for tests of the broker's side. Honest in all else: it begins, answers pings,
 * and sends back what a connection sends, after a line with its process id.
 */
import { Buffer } from 'node:buffer'
import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { AuthenticateAnswer, OpenAnswer, Source } from '../../src/contract/gate.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage } from '../../src/contract/wire.ts'
import {
  type FromWorker,
  MESSAGES_DESCRIPTOR,
  type PassedConnection,
  RECORDINGS_DESCRIPTOR,
  type ToWorker,
  WORKER_VERSION,
} from '../../src/contract/worker.ts'
import { signInOf } from './sign-in.ts'

const LONG = 'x'.repeat(1024 * 1024)

/** Behaviour of the worker; `at ready`: as soon as it has begun, `at connection`: when the first connection comes. */
export const MODES = {
  honest: {},
  /** Signs `ops1` in at each connection and opens the target; the line has the session's id too. */
  opens: { connection: (source) => opening(source) },
  'dies at start': { begin: () => process.exit(3) },
  'never begins': { begin: () => undefined },
  'begins twice': { ready: () => ready() },
  'of another version': { begin: () => ready({ version: WORKER_VERSION + 1 }) },
  'a report of its bounds that is none': { begin: () => ready({ cage: { uid: 'root' } }) },
  'dies at once': { ready: () => process.exit(4) },
  'bytes that are no message': { connection: () => void socket.write('GET / HTTP/1.1\r\n\r\n') },
  'a message that is too long': { connection: () => void socket.write(Buffer.alloc(8, 0xff)) },
  'a message of no type': { connection: () => send({ type: 'exec', file: '/bin/sh' }) },
  'an unknown method': { connection: () => ask('kill', { session: 'S' }) },
  'a field too many': { connection: () => ask('leave', { identity: 'T', user: 'admin' }) },
  /** The session that the test names in the connection's first line. */
  'the session of another': { line: (session) => ask('sign', { session, statement: Buffer.alloc(9) }) },
  'pongs ahead': { ping: () => send({ type: 'pong', number: Number.MAX_SAFE_INTEGER, delayMs: 0 }) },
  'no pongs': { ping: () => undefined },
  'does not read': { ready: () => void socket.pause() },
  'takes memory': { connection: () => takeMemory() },
  'floods standard error': { connection: () => floodErrors() },
  'closes the messages': { connection: () => void socket.destroy() },
  'closes the handles': { connection: () => process.disconnect() },
  'asks without end': {
    connection: (source) =>
      void askWithoutEnd(source, (identity) => ask('targets', { identity, protocol: 'SSH' })),
  },
  'records without end': { connection: (source) => void recordWithoutEnd(source) },
  'asks at length without end': {
    connection: (source) =>
      void askWithoutEnd(source, (identity) =>
        ask('denied', { identity, protocol: 'SSH', what: LONG, reason: '' }),
      ),
  },
} satisfies Record<string, Fake>
export type Mode = keyof typeof MODES

interface Fake {
  begin?: () => void
  ready?: () => void
  ping?: () => void
  connection?: (source: Source) => unknown
  line?: (text: string) => void
}

const fake: Fake = MODES[process.argv[2] as Mode]
const socket = new Socket({ fd: MESSAGES_DESCRIPTOR, readable: true, writable: true })
const reader = new MessageReader()
const answers = new Map<number, (answer: unknown) => void>()
let asked = 0
const memory: Buffer[] = []
let isKept = true

socket.on('data', (piece: Buffer) => {
  for (const message of reader.read(piece)) take(message as ToWorker)
})
// A worker that was taken over does not end with its connection to the broker.
socket.on('close', () => {
  if (!isKept) process.exit(0)
})
setInterval(() => undefined, 60_000)

process.on('message', ({ connection }: PassedConnection, handle: object) => {
  const client = new Socket({ handle } as ConstructorParameters<typeof Socket>[0])
  client.on('error', () => undefined)
  client.once('close', () => send({ type: 'closed', connection }))
  void greet(client)
})

async function greet(client: Socket): Promise<void> {
  const source = { address: client.remoteAddress!, port: client.remotePort! }
  const more = await fake.connection?.(source)
  client.write(`${process.pid} ${typeof more === 'string' ? more : ''}\n`)
  client.on('data', (piece) => {
    fake.line?.(String(piece).trim())
    client.write(piece)
  })
}

function take(message: ToWorker): void {
  switch (message.type) {
    case 'begin':
      if (fake.begin) {
        fake.begin()
        return
      }
      ready()
      fake.ready?.()
      return
    case 'ping':
      if (fake.ping) fake.ping()
      else send({ type: 'pong', number: message.number, delayMs: 12.5 })
      return
    case 'answer':
      answers.get(message.id)?.(message.answer)
      return
    case 'failure':
      answers.get(message.id)?.(new Error(message.message))
      return
    case 'drain':
      isKept = false
      send({ type: 'drained' })
  }
}

function send(message: FromWorker | object): void {
  for (const part of encodeMessage(message)) socket.write(part)
}

function ready(more: object = {}): void {
  const cage = {
    uid: process.getuid!(),
    gid: process.getgid!(),
    capabilities: true,
    noNewPrivileges: false,
    seccomp: false,
    dumpable: true,
    permission: false,
    missing: [],
  }
  send({ type: 'ready', version: WORKER_VERSION, cage, ...more })
}

function ask(method: string, request: object): Promise<unknown> {
  const id = asked++
  send({ type: 'ask', id, method, request })
  return new Promise((resolve) => answers.set(id, resolve))
}

async function opening(source: Source): Promise<string> {
  const signedIn = (await ask('authenticate', signInOf('ops1', source))) as AuthenticateAnswer
  if (signedIn.result !== 'accepted') return JSON.stringify(signedIn)
  const { token } = signedIn.identity
  const opened = (await ask('open', { identity: token, protocol: 'SSH', source })) as OpenAnswer
  return opened.result === 'opened' ? opened.session.id : JSON.stringify(opened)
}

/** Takes it in pieces: memory that is new takes a slow machine seconds, and pings have to be answered. */
function takeMemory(pieces = 24): void {
  memory.push(Buffer.alloc(16 * 1024 * 1024, pieces))
  if (pieces > 1) setImmediate(takeMemory, pieces - 1)
}

function floodErrors(): void {
  const text = Buffer.alloc(64 * 1024, 'flood ')
  for (let i = 0; i < 200; i++) writeSync(2, text)
}

/** Sends appends by the descriptor of the sealing thread, and now and then a statement to be signed. */
async function recordWithoutEnd(source: Source): Promise<void> {
  const session = await opening(source)
  const recordings = new Socket({ fd: RECORDINGS_DESCRIPTOR, readable: false, writable: true })
  const part = new Uint8Array(4 * 1024 * 1024)
  const more = (): void => {
    while (!recordings.writableNeedDrain) {
      const request = { session, offset: 0, parts: [part] }
      const message: FromWorker = { type: 'ask', id: asked++, method: 'appendRecording', request }
      for (const bytes of encodeMessage(message)) recordings.write(bytes)
    }
    recordings.once('drain', more)
  }
  more()
  setInterval(() => void ask('sign', { session, statement: new Uint8Array(100) }), 20)
}

/** Asks what has no pace of its own. */
async function askWithoutEnd(source: Source, question: (identity: string) => unknown): Promise<void> {
  const signedIn = (await ask('authenticate', signInOf('ops1', source))) as AuthenticateAnswer
  if (signedIn.result !== 'accepted') return
  const { token: identity } = signedIn.identity
  const more = (): void => {
    while (!socket.writableNeedDrain) question(identity)
    socket.once('drain', more)
  }
  more()
}
