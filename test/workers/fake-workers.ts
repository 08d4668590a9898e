/** Fake workers behind the real code of the broker's side, with clients that connect to them over TCP. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { AuthenticateAnswer, Source } from '../../src/contract/gate.ts'
import { type Bound, listenAt, type TcpHandle } from '../../src/sockets/accept.ts'
import { peerOf } from '../../src/sockets/claimed.ts'
import { openPass, type PassConnection } from '../../src/sockets/pass.ts'
import type { WorkerCommand, WorkerOptions } from '../../src/workers/process.ts'
import type { SeatGate } from '../../src/workers/seat.ts'
import { until } from '../until.ts'
import type { Mode } from './fake-worker.ts'

const PROGRAM = join(import.meta.dirname, 'fake-worker.ts')

export function fakeCommand(mode: Mode): WorkerCommand {
  return {
    file: process.execPath,
    arguments: ['--disable-warning=ExperimentalWarning', PROGRAM, mode],
    env: { NODE_CHANNEL_FD: '4', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
  }
}

/** A gate that refuses everything. */
export function noGate(): SeatGate {
  const methods =
    'authenticate targets open hostKey event denied sign close live askCommand withdraw leave beginRecording appendRecording endRecording'
  const refuse = () => Promise.reject(new Error('no gate here'))
  return {
    ...Object.fromEntries(methods.split(' ').map((name) => [name, refuse])),
    onNotice: () => () => undefined,
    isRunning: () => false,
    isSignedIn: () => false,
    abandon: refuse,
  } as unknown as SeatGate
}

/** Refuses everything but sign-ins. */
export function signInGate(): SeatGate {
  const identity = { token: 'T' } as Extract<AuthenticateAnswer, { result: 'accepted' }>['identity']
  return { ...noGate(), authenticate: async () => ({ result: 'accepted', identity }) }
}

export type Common = Omit<WorkerOptions, 'onEnded' | 'command'>

/** Returns options for a worker, whose log goes to `log`. */
export async function commonOptions(log: string[], gate: SeatGate = noGate()): Promise<Common> {
  return {
    settings: { hostname: 'bastion', loginGraceMs: 60_000 },
    gate,
    pass: await realPass(),
    maxMemory: 1024 ** 3,
    onBegun: () => undefined,
    warn: (message, details) => log.push(`${message} ${JSON.stringify(details)}`),
  }
}

async function realPass(): Promise<PassConnection> {
  const opened = await openPass()
  if ('missing' in opened) throw new Error(opened.missing)
  return opened.pass
}

/** Listens on a port of 127.0.0.1 and gives away each connection with its client's address. */
export function doors(onConnection: (handle: TcpHandle, source: Source) => void): Promise<Bound> {
  return listenAt({
    host: '127.0.0.1',
    port: 0,
    onConnection: (handle) => {
      onConnection(handle, peerOf(handle) ?? { address: '', port: 0 })
    },
  })
}

export class Client {
  readonly socket: Socket
  text = ''
  isClosed = false

  constructor({ port }: Bound) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('data', (piece) => {
      this.text += piece
    })
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.isClosed = true
    })
  }

  /** Returns the first line: the worker's process id, and the session's id if it has opened one. */
  async greeting(): Promise<{ pid: number; more: string }> {
    const line = await until('the greeting', () => this.text.match(/^(\d+) (.*)\n/) ?? undefined, 20_000)
    return { pid: Number(line[1]), more: line[2]! }
  }

  /** Sends a line and waits until it comes back. */
  async echo(line: string): Promise<void> {
    this.socket.write(`${line}\n`)
    await until(`the echo of ${line}`, () => (this.text.includes(`${line}\n`) ? true : undefined), 20_000)
  }

  async closed(): Promise<void> {
    if (!this.isClosed) await once(this.socket, 'close')
  }

  end(): void {
    this.socket.destroy()
  }
}
