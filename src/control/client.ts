/** Speaks with a broker by its control socket. */
import { createConnection, type Socket } from 'node:net'
import { Lines } from './lines.ts'
import {
  type ControlAnswer,
  ControlError,
  type ControlReply,
  type ControlRequest,
  type ControlStatus,
  replyOf,
} from './messages.ts'
import { withShortPath } from './place.ts'

const CONNECT_MS = 5_000
/** Milliseconds for an answer, unless the request says otherwise. */
const ANSWER_MS = 10_000

/** A message without a number. */
export type ControlNews = Exclude<ControlReply, ControlAnswer>
type Asked = ControlRequest extends infer R ? (R extends { id: number } ? Omit<R, 'id'> : never) : never

interface Waiting {
  resolve: (answer: ControlAnswer) => void
  reject: (error: Error) => void
}

/** The broker has refused the request. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

export class ControlClient {
  readonly #socket: Socket
  readonly #lines = new Lines()
  readonly #waiting = new Map<number, Waiting>()
  #next = 1
  /** Gets the messages that are no answers. */
  onNews: ((news: ControlNews) => void) | undefined
  /** Resolves when the connection is closed, by either side. */
  readonly onClosed: Promise<void>

  private constructor(socket: Socket) {
    this.#socket = socket
    this.onClosed = new Promise((resolve) => {
      socket.once('close', () => {
        const error = new ControlError('the broker has closed the connection')
        for (const { reject } of this.#waiting.values()) reject(error)
        this.#waiting.clear()
        resolve()
      })
    })
    socket.on('error', () => undefined)
    socket.on('data', (piece) => this.#read(piece))
  }

  /** Returns undefined if no broker listens there. Rejects with the system's other errors. */
  static async connect(path: string): Promise<ControlClient | undefined> {
    try {
      const socket = await withShortPath(path, connected)
      return new ControlClient(socket)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ECONNREFUSED') return undefined
      throw error
    }
  }

  /** Rejects with RefusedError if the broker refuses, and with ControlError if it does not answer. */
  async ask(request: Asked, withinMs: number = ANSWER_MS): Promise<ControlAnswer> {
    const id = this.#next++
    const answer = await new Promise<ControlAnswer>((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(id)
        reject(new ControlError(`the broker did not answer within ${withinMs / 1000} s`))
      }, withinMs)
      const done = () => clearTimeout(late)
      this.#waiting.set(id, {
        resolve: (value) => {
          done()
          resolve(value)
        },
        reject: (error) => {
          done()
          reject(error)
        },
      })
      if (this.#socket.destroyed) {
        this.#waiting.delete(id)
        done()
        reject(new ControlError('the broker has closed the connection'))
      } else this.#socket.write(`${JSON.stringify({ id, ...request })}\n`)
    })
    if (answer.type === 'refused') throw new RefusedError(answer.message)
    return answer
  }

  async status(): Promise<ControlStatus> {
    const answer = await this.ask({ type: 'status' })
    if (answer.type !== 'status') throw new ControlError('expected the state of the broker')
    return answer
  }

  /** Closes the connection now. */
  destroy(): void {
    this.#socket.destroy()
  }

  #read(piece: Buffer): void {
    try {
      for (const line of this.#lines.take(piece)) this.#take(replyOf(line))
    } catch (error) {
      if (!(error instanceof ControlError)) throw error
      this.#socket.destroy()
    }
  }

  #take(reply: ControlReply): void {
    if (!('id' in reply)) {
      this.onNews?.(reply)
      return
    }
    const waiting = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    waiting?.resolve(reply)
  }
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path)
    const late = setTimeout(() => {
      socket.destroy()
      reject(new ControlError(`the broker at ${path} does not accept connections`))
    }, CONNECT_MS)
    const settle = () => clearTimeout(late)
    socket.once('error', (error) => {
      settle()
      reject(error)
    })
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
  })
}
