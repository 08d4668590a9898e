/**
 * A broker's control socket: the same user, or root, asks it here to end, to be replaced, or for its sessions.
 * The data folder lets nobody else in.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, renameSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { Lines } from './lines.ts'
import {
  type ControlAnswer,
  ControlError,
  type ControlReply,
  type ControlRequest,
  type ControlStatus,
  type LinkedHold,
  type LinkedSession,
  requestOf,
  SESSIONS_TOGETHER,
} from './messages.ts'
import { CONTROL_SOCKET, withShortPath } from './place.ts'

/** Connections at a time. */
const MAX_CONNECTIONS = 32
/** Milliseconds for which a connection may be silent, unless it is linked. */
const SILENCE_MS = 10_000
/** Requests of one connection that are not answered yet. */
const MAX_OPEN_REQUESTS = 32
/** Characters of a refusal. */
const MAX_REASON = 1_000
/** Bytes that wait for a client to read them: it does not read any more. */
const MAX_UNREAD = 16 * 1024 * 1024

type Of<T extends ControlRequest['type']> = Extract<ControlRequest, { type: T }>

/** The broker's action for each request. The message of an error is the answer. */
export interface ControlHandler {
  status(): ControlStatus
  drain(request: Of<'drain'>): void
  /** `isThere` returns whether the sender still waits for the answer. */
  takeOver(request: Of<'takeOver'>, isThere: () => boolean): Promise<void>
  /** Returns the sessions that run. @throws Error to refuse the link */
  link(request: Of<'link'>): LinkedSession[]
  /** Returns false if no such session runs. */
  kill(request: Of<'kill'>): Promise<boolean>
  suspend(request: Of<'suspend'>): Promise<Extract<ControlAnswer, { type: 'suspended' }>['result']>
}

export class ControlServer {
  readonly #dataDir: string
  readonly #handler: ControlHandler
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  /** The present name of the socket. */
  #path: string

  private constructor(dataDir: string, handler: ControlHandler, path: string) {
    this.#dataDir = dataDir
    this.#handler = handler
    this.#path = path
    this.#server = createServer((socket) => {
      const connection: Connection = new Connection(socket, this.#handler, () =>
        this.#connections.delete(connection),
      )
      this.#connections.add(connection)
    })
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  /**
   * Listens on `control.sock` in the place of a broker that has ended. The caller holds the data folder, so no
   * other broker serves there.
   */
  static async open(dataDir: string, handler: ControlHandler): Promise<ControlServer> {
    // Node removes the name that it was given when it closes the socket: by then that is another broker's. So
    // it is given a name for now.
    const draft = join(dataDir, replacedName().replace('.sock', '.new'))
    const control = new ControlServer(dataDir, handler, draft)
    await withShortPath(draft, (path) => control.#listen(path))
    chmodSync(draft, 0o600)
    control.#rename(CONTROL_SOCKET)
    return control
  }

  #listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(path, () => {
        this.#server.off('error', reject)
        // Later errors come from accept(2), such as too many open files: they are temporary.
        this.#server.on('error', () => undefined)
        resolve()
      })
    })
  }

  #rename(name: string): void {
    const path = join(this.#dataDir, name)
    renameSync(this.#path, path)
    this.#path = path
  }

  /** Leaves the name `control.sock` to the broker that replaces this one. */
  makeRoom(): void {
    this.#rename(replacedName())
  }

  /** Reports the end of a session to the linked clients. */
  onSessionClosed(session: string): void {
    for (const connection of this.#connections)
      if (connection.isLinked) connection.send({ type: 'closed', session })
  }

  /** Reports to the linked clients that a session's input is held, or released without a `hold`. */
  onHeld(session: string, hold?: LinkedHold): void {
    for (const connection of this.#connections)
      if (connection.isLinked) connection.send({ type: 'held', session, ...(hold && { hold }) })
  }

  /** Removes the socket; connections stay. */
  drain(): void {
    rmSync(this.#path, { force: true })
    this.#server.close()
  }

  /** Closes all connections. */
  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

class Connection {
  readonly #socket: Socket
  readonly #handler: ControlHandler
  readonly #lines = new Lines()
  #open = 0
  isLinked = false

  constructor(socket: Socket, handler: ControlHandler, onClosed: () => void) {
    this.#socket = socket
    this.#handler = handler
    socket.setTimeout(SILENCE_MS, () => {
      if (this.#open === 0 && !this.isLinked) socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', onClosed)
    socket.on('data', (piece) => this.#read(piece))
  }

  send(message: ControlReply): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return
    if (this.#socket.writableLength > MAX_UNREAD) this.#socket.destroy()
    else this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  close(): void {
    this.#socket.end()
    this.#socket.unref()
  }

  #read(piece: Buffer): void {
    try {
      for (const line of this.#lines.take(piece)) {
        if (this.#open >= MAX_OPEN_REQUESTS) throw new ControlError('too many requests at a time')
        void this.#take(requestOf(line))
      }
    } catch (error) {
      if (!(error instanceof ControlError)) throw error
      this.#socket.destroy()
    }
  }

  async #take(request: ControlRequest): Promise<void> {
    this.#open++
    try {
      this.send(await this.#answer(request))
    } catch (error) {
      this.send({ id: request.id, type: 'refused', message: (error as Error).message.slice(0, MAX_REASON) })
    } finally {
      this.#open--
    }
  }

  async #answer(request: ControlRequest): Promise<ControlAnswer> {
    const { id } = request
    switch (request.type) {
      case 'status':
        return { id, type: 'status', ...this.#handler.status() }
      case 'drain':
        this.#handler.drain(request)
        return { id, type: 'done' }
      case 'takeOver':
        await this.#handler.takeOver(request, () => !this.#socket.readableEnded && !this.#socket.destroyed)
        return { id, type: 'done' }
      case 'link':
        this.#link(this.#handler.link(request))
        return { id, type: 'done' }
      case 'kill':
        return { id, type: 'killed', wasRunning: await this.#handler.kill(request) }
      case 'suspend':
        return { id, type: 'suspended', result: await this.#handler.suspend(request) }
    }
  }

  #link(sessions: LinkedSession[]): void {
    this.isLinked = true
    for (let at = 0; at < sessions.length; at += SESSIONS_TOGETHER) {
      this.send({ type: 'sessions', sessions: sessions.slice(at, at + SESSIONS_TOGETHER) })
    }
  }
}

function replacedName(): string {
  return `control-${randomBytes(8).toString('hex')}.sock`
}
