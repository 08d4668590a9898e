/**
 * Records the channel of an rsync or git: the operation, and for each direction its bytes and SHA-256. That
 * suffices only if both sides begin as the protocol does; a stream that begins otherwise is recorded whole,
 * from its first byte, for anything can hide in it.
 *
 * Until both sides have sent data, it is held, up to HELD_LIMIT. If a target sends more before the client
 * sends anything (the references of a large repository), its data is hashed without being held; should the
 * client then begin otherwise, the recording states how much is missing. If a client sends more before the
 * target sends anything, the stream is recorded whole.
 */
import { Buffer } from 'node:buffer'
import { type Exit, FRAME, type Unrecorded } from '../../../recordings/container/frames.ts'
import type { ContentHash } from '../../session/hash/content-hash.ts'
import type { Quota } from '../../session/quota.ts'
import type { Direction, GitCommand, RsyncCommand } from '../codec/classify.ts'
import { gitPreamble, type Preamble, rsyncPreamble } from '../codec/preamble.ts'
import type { ChannelFrames } from './frames.ts'
import { QuotaStream } from './quota-stream.ts'
import type { ChannelRecorder, RecorderEvents } from './recorder.ts'
import { WholeRecorder } from './whole.ts'

/** Bytes of both directions that are held until both sides have sent data. */
export const HELD_LIMIT = 64 * 1024

const NOTHING = Buffer.alloc(0)

interface Side {
  readonly direction: Direction
  readonly preamble: Preamble
  readonly hash: ContentHash
  bytes: number
  /** The first bytes, until the verdict. */
  begin: Buffer
  verified: boolean
}

export class StreamRecorder implements ChannelRecorder {
  readonly #frames: ChannelFrames
  readonly #events: RecorderEvents
  readonly #quota: Quota
  readonly #command: RsyncCommand | GitCommand
  readonly #errors: QuotaStream
  readonly #client: Side
  readonly #target: Side
  /** All data since the beginning, in order. Undefined if nothing needs to be held. */
  #held: { side: Side; data: Buffer }[] | undefined = []
  #heldBytes = 0
  /** Set once the target's bytes are no longer held. */
  #released = false
  #whole: WholeRecorder | undefined
  #exit: Exit | undefined

  constructor(
    frames: ChannelFrames,
    events: RecorderEvents,
    quota: Quota,
    command: RsyncCommand | GitCommand,
  ) {
    this.#frames = frames
    this.#events = events
    this.#quota = quota
    this.#command = command
    this.#errors = new QuotaStream(frames, events, quota, 'out')
    const preamble = (side: 'client' | 'target') =>
      command.kind === 'rsync' ? rsyncPreamble : gitPreamble(command.operation, side)
    this.#client = newSide('up', preamble('client'), frames.newHash())
    this.#target = newSide('down', preamble('target'), frames.newHash())
  }

  fromClient(data: Uint8Array): void {
    if (this.#whole !== undefined) this.#whole.fromClient(data)
    else this.#pass(this.#client, data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    if (this.#whole !== undefined) this.#whole.fromTarget(data, stderr)
    else if (stderr) this.#errors.write(FRAME.errorOutput, data)
    else this.#pass(this.#target, data)
  }

  resize(columns: number, rows: number): void {
    this.#frames.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#exit = exit
    this.#frames.exit(exit)
  }

  close(): void {
    const spoken = [this.#client, this.#target].every((side) => side.verified || side.bytes === 0)
    if (this.#whole === undefined && !spoken) this.#recordWhole()
    if (this.#whole === undefined) {
      this.#finish()
      this.#errors.close()
      this.#frames.close()
    } else {
      this.#errors.close()
      this.#whole.close()
    }
  }

  #pass(side: Side, data: Uint8Array): void {
    if (this.#held !== undefined && !(this.#released && side === this.#target)) {
      this.#heldBytes += data.length
      this.#held.push({ side, data: Buffer.from(data) })
    }
    side.hash.update(data)
    side.bytes += data.length
    if (!side.verified) {
      side.begin = Buffer.concat([side.begin, data])
      const verdict = side.preamble(side.begin)
      if (verdict === 'no') {
        this.#recordWhole()
        return
      }
      if (verdict === 'yes') {
        side.verified = true
        side.begin = NOTHING
      }
    }
    if (this.#client.verified && this.#target.verified) this.#held = undefined
    else if (HELD_LIMIT < this.#heldBytes) this.#release()
  }

  /** Handles too much data before both sides have sent some. */
  #release(): void {
    if (!this.#target.verified) {
      this.#recordWhole()
      return
    }
    this.#released = true
    this.#held = this.#held?.filter(({ side }) => side === this.#client)
    this.#heldBytes = this.#client.bytes
  }

  #recordWhole(): void {
    this.#whole = new WholeRecorder(this.#frames, this.#events, this.#quota)
    this.#client.hash.drop()
    if (this.#released) {
      const { bytes, hash } = this.#target
      this.#report({ direction: 'out', reason: 'quota' })
      this.#frames.hashed(hash, (sha256) =>
        this.#report({ direction: 'out', reason: 'quota', bytes, ...(sha256 !== undefined && { sha256 }) }),
      )
    } else this.#target.hash.drop()
    for (const { side, data } of this.#held ?? []) {
      if (side === this.#client) this.#whole.fromClient(data)
      else this.#whole.fromTarget(data, false)
    }
    this.#held = undefined
  }

  #report(gap: Unrecorded): void {
    this.#frames.unrecorded(gap)
    this.#events.onUnrecorded(gap)
  }

  #finish(): void {
    const command = this.#command
    const operation = command.kind === 'rsync' ? 'rsync' : command.operation
    const path = command.kind === 'rsync' ? command.paths.join(' ') : command.path
    const result = resultOf(this.#exit)
    for (const { direction, bytes, hash } of [this.#client, this.#target]) {
      this.#frames.hashed(hash, (sha256) => {
        const transfer = { path, direction, size: bytes, ...(sha256 !== undefined && { sha256 }), result }
        this.#frames.file({ operation, ...transfer })
        if (direction === command.direction) this.#events.onTransfer(transfer)
      })
    }
  }
}

function newSide(direction: Direction, preamble: Preamble, hash: ContentHash): Side {
  return { direction, preamble, hash, bytes: 0, begin: NOTHING, verified: false }
}

function resultOf(exit: Exit | undefined): string {
  if (exit?.signal !== undefined) return `signal ${exit.signal}`
  if (exit?.status === undefined) return 'ended without an exit status'
  return exit.status === 0 ? 'ok' : `exit status ${exit.status}`
}
