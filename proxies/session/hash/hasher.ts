/**
 * Computes hashes on a separate thread, one for the process, started on first use: SHA-256 costs the relay's
 * thread about as much as all its other work on a byte, a copy a seventh of that. Content is copied into
 * batches; a session that is too far ahead of the thread is paused.
 */
import { programBeside, Thread } from '../../../src/threads/thread.ts'
import type { ContentHash } from './content-hash.ts'
import type { FromHasher, ToHasher } from './messages.ts'

/** Bytes sent to the thread at a time. */
const BATCH = 256 * 1024
/** Buffers of batches that are kept for reuse. */
const KEPT_BATCHES = 16
/** Bytes of one account above which it is behind: they are not hashed yet. */
export const LAG_LIMIT = 2 * 1024 * 1024

/** A session's share of unhashed data: its peers wait while it is behind. */
export class HashAccount {
  readonly #hasher: Hasher
  readonly #onDrain: () => void
  #lag = 0
  #isBehind = false

  /** `onDrain` is called when the account is no longer behind. */
  constructor(hasher: Hasher, onDrain: () => void) {
    this.#hasher = hasher
    this.#onDrain = onDrain
  }

  /** True while nothing more should be read until `onDrain`. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  newHash(): ContentHash {
    return this.#hasher.stream(this)
  }

  /** Counts bytes sent to the thread, or (negative) hashed by it. */
  add(bytes: number): void {
    this.#lag += bytes
    if (this.#lag >= LAG_LIMIT) this.#isBehind = true
    else if (this.#isBehind && this.#lag <= LAG_LIMIT / 2) {
      this.#isBehind = false
      this.#onDrain()
    }
  }
}

/** A batch, while it is filled and until the thread returns it. */
interface Batch {
  bytes: Uint8Array<ArrayBuffer>
  filled: number
  segments: number[]
  accounts: Map<HashAccount, number>
}

type Digested = (sha256: string | undefined) => void

export class Hasher {
  readonly #thread: Thread<ToHasher, FromHasher>
  #nextStream = 0
  #batch: Batch | undefined
  /** Batches sent to the thread, the oldest first. */
  #given: Batch['accounts'][] = []
  #free: ArrayBuffer[] = []
  readonly #digests = new Map<number, Digested>()

  constructor(program: URL = programBeside(import.meta.url, 'worker')) {
    this.#thread = new Thread('hash', {
      program,
      onAnswer: (message) => this.#answered(message),
      onLost: () => this.#lost(),
    })
  }

  stream(account: HashAccount): ContentHash {
    const run = this.#thread.start()
    const stream = this.#nextStream++
    let isOver = false
    // The state of a stream is lost with a thread that has died.
    const isLost = () => this.#thread.run !== run
    return {
      update: (bytes) => {
        if (!isLost()) this.#add(account, stream, bytes)
      },
      digest: (done) => {
        isOver = true
        if (isLost()) {
          done(undefined)
          return
        }
        this.#digests.set(stream, done)
        this.#give()
        this.#thread.send({ kind: 'digest', stream })
      },
      drop: () => {
        if (isOver || isLost()) return
        isOver = true
        this.#give()
        this.#thread.send({ kind: 'drop', stream })
      },
    }
  }

  #add(account: HashAccount, stream: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      this.#batch ??= this.#newBatch()
      const batch = this.#batch
      const piece = bytes.subarray(at, at + BATCH - batch.filled)
      batch.bytes.set(piece, batch.filled)
      batch.filled += piece.length
      at += piece.length
      const last = batch.segments.length - 2
      if (batch.segments[last] === stream) batch.segments[last + 1]! += piece.length
      else batch.segments.push(stream, piece.length)
      batch.accounts.set(account, (batch.accounts.get(account) ?? 0) + piece.length)
      if (batch.filled === BATCH) this.#give()
    }
    account.add(bytes.length)
  }

  #newBatch(): Batch {
    const buffer = this.#free.pop() ?? new ArrayBuffer(BATCH)
    return { bytes: new Uint8Array(buffer), filled: 0, segments: [], accounts: new Map() }
  }

  #give(): void {
    if (this.#batch === undefined) return
    const { bytes, segments, accounts } = this.#batch
    this.#batch = undefined
    this.#given.push(accounts)
    this.#thread.send({ kind: 'data', buffer: bytes.buffer, segments }, [bytes.buffer])
  }

  #answered(message: FromHasher): void {
    if (message.kind === 'free') {
      if (this.#free.length < KEPT_BATCHES) this.#free.push(message.buffer)
      settle(this.#given.shift())
      return
    }
    const done = this.#digests.get(message.stream)
    this.#digests.delete(message.stream)
    done?.(message.sha256)
  }

  /** Gives up on a thread that has died; the next hash starts another. */
  #lost(): void {
    const given = [...this.#given, this.#batch?.accounts]
    const digests = [...this.#digests.values()]
    this.#given = []
    this.#batch = undefined
    this.#digests.clear()
    for (const accounts of given) settle(accounts)
    for (const done of digests) done(undefined)
  }
}

function settle(accounts: Batch['accounts'] | undefined): void {
  for (const [account, bytes] of accounts ?? []) account.add(-bytes)
}

/** The one of this process. */
export const hasher = new Hasher()
