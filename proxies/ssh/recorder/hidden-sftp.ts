/**
 * Detects SFTP in a command without a terminal: a user with the right to run commands but not to use SFTP
 * could start the server's program by its name. Such a channel is cut, since its files would not be logged
 * one by one. This keeps ordinary clients honest; a command can move files in ways that cannot be detected.
 */

import { Buffer } from 'node:buffer'
import type { Exit } from '../../../recordings/container/frames.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { FXP, REQUEST_LIMIT } from '../codec/sftp.ts'
import type { ChannelRecorder } from './recorder.ts'

/** uint32 length, byte INIT or VERSION, uint32 version (draft-ietf-secsh-filexfer-02 section 4). */
const HEAD = 9
/** Bound for the version; the latest draft has 6. */
const VERSIONS = 16

/** The first bytes of one side. */
class Beginning {
  readonly #type: number
  readonly #bytes = Buffer.alloc(HEAD)
  #have = 0

  constructor(type: number) {
    this.#type = type
  }

  /** Returns true if the side begins like SFTP. */
  add(data: Uint8Array): boolean {
    if (this.#have === HEAD) return false
    const piece = data.subarray(0, HEAD - this.#have)
    this.#bytes.set(piece, this.#have)
    this.#have += piece.length
    if (this.#have < HEAD) return false
    const length = uint32At(this.#bytes, 0)
    return (
      length >= HEAD - 4 &&
      length <= REQUEST_LIMIT &&
      this.#bytes[4] === this.#type &&
      uint32At(this.#bytes, 5) < VERSIONS
    )
  }
}

export class HiddenSftp implements ChannelRecorder {
  readonly #inner: ChannelRecorder
  readonly #client = new Beginning(FXP.init)
  readonly #target = new Beginning(FXP.version)

  constructor(inner: ChannelRecorder) {
    this.#inner = inner
  }

  fromClient(data: Uint8Array): void {
    if (this.#client.add(data)) throw hidden()
    this.#inner.fromClient(data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    if (!stderr && this.#target.add(data)) throw hidden()
    this.#inner.fromTarget(data, stderr)
  }

  resize(columns: number, rows: number): void {
    this.#inner.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#inner.exit(exit)
  }

  close(): void {
    this.#inner.close()
  }
}

function hidden(): MalformedError {
  return new MalformedError('SFTP within a command: the right SFTP_SESSION is missing')
}
