/**
 * Reads one PROXY header, and no byte behind it: the system keeps those for the protocol. Whatever reads on with the
 * same handle needs a buffer of its own, as TLS and `acceptShared` have: Node leaves ours in place for others.
 */
import { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import { type Claim, type HeaderFault, ProxyHeaderError } from '../balancers/claim.ts'
import { readHeader, SHORTEST } from '../balancers/header.ts'
import { type TcpHandle, takeHandle } from './accept.ts'

/** Bytes of most headers; longer ones get more room. */
const ROOM = 256

/** `slow`: not there in time. `torn`: the connection ended within it. */
export type Refusal = HeaderFault | 'slow' | 'torn'

/** How the reading ends: with what the balancer says, or with the connection closed. `gone`: there is nothing to tell. */
export type Outcome = { claim: Claim } | { refusal: Refusal; reason: string } | 'gone'

export class HeaderRead {
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: (outcome: Outcome) => void
  #bytes = Buffer.alloc(ROOM)
  #length = 0
  /** Bytes that belong to the header at least. */
  #missing = SHORTEST
  #isOver = false

  /** Nothing of the connection may have been read. `onEnd` is called once, and never within the constructor. */
  constructor(handle: TcpHandle, timeMs: number, onEnd: (outcome: Outcome) => void) {
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => {
      this.refuse('slow', `expected a PROXY header in ${timeMs / 1000} s, got ${this.#length} bytes of one`)
    }, timeMs)
    const onread = { buffer: () => this.#room(), callback: (count: number) => this.#take(count) }
    this.#socket = new Socket({ handle, onread } as object)
    const torn = () => {
      // A health check may only connect.
      if (this.#length === 0) this.close()
      else this.refuse('torn', `expected a whole PROXY header, got ${this.#length} bytes of one and the end`)
    }
    this.#socket.on('error', torn)
    this.#socket.on('end', torn)
  }

  /** Closes the connection, if its header is not there yet. */
  refuse(refusal: Refusal, reason: string): void {
    this.#end({ refusal, reason })
  }

  /** Does the same without a reason. */
  close(): void {
    this.#end('gone')
  }

  #end(outcome: Outcome): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    if (outcome === 'gone' || 'refusal' in outcome) this.#socket.destroy()
    else takeHandle(this.#socket)
    // A new reader may begin when this one has stopped: see `#take`.
    process.nextTick(this.#onEnd, outcome)
  }

  #room(): Buffer {
    const end = this.#length + this.#missing
    if (this.#bytes.length < end) this.#bytes = Buffer.concat([this.#bytes], end)
    return this.#bytes.subarray(this.#length, end)
  }

  /** Returns false to stop reading. */
  #take(count: number): boolean {
    if (this.#isOver) return false
    this.#length += count
    try {
      const reading = readHeader(this.#bytes.subarray(0, this.#length))
      if ('missing' in reading) {
        this.#missing = reading.missing
        return true
      }
      this.#missing = 1
      this.#end(reading)
    } catch (error) {
      if (!(error instanceof ProxyHeaderError)) throw error
      this.refuse(error.fault, error.message)
    }
    return false
  }
}
