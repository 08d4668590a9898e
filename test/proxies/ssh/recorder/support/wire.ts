/** An SFTP channel with a free client and target, before a recorder. */
import type { Buffer } from 'node:buffer'
import { FXP } from '../../../../../proxies/ssh/codec/sftp.ts'
import { Writer } from '../../../../../proxies/ssh/codec/writer.ts'
import { recorderFor } from '../../../../../proxies/ssh/recorder/factory.ts'
import type { ChannelRecorder } from '../../../../../proxies/ssh/recorder/recorder.ts'
import { Notes } from './notes.ts'

export const READ = 1
export const WRITE = 2 | 8 | 16

/** A client and a target that may break the protocol. */
export class Wire {
  readonly notes: Notes
  readonly recorder: ChannelRecorder

  /** `session`: a channel of the same session. */
  constructor(session?: Wire) {
    this.notes = session?.notes ?? new Notes()
    this.recorder = recorderFor({ kind: 'sftp' }, this.notes.options())
  }

  begin(): this {
    this.recorder.fromClient(packet(FXP.init, (w) => w.uint32(3)))
    this.recorder.fromTarget(
      packet(FXP.version, (w) => w.uint32(3)),
      false,
    )
    return this
  }

  ask(type: number, id: number, body: (writer: Writer) => Writer): this {
    this.recorder.fromClient(packet(type, (w) => body(w.uint32(id))))
    return this
  }

  answer(type: number, id: number, body: (writer: Writer) => Writer): this {
    this.recorder.fromTarget(
      packet(type, (w) => body(w.uint32(id))),
      false,
    )
    return this
  }

  open(id: number, path: string, flags: number, handle: string): this {
    return this.ask(FXP.open, id, (w) => w.string(path).uint32(flags).uint32(0)).answer(FXP.handle, id, (w) =>
      w.string(handle),
    )
  }

  read(id: number, handle: string, offset: number, length: number): this {
    return this.ask(FXP.read, id, (w) => w.string(handle).uint64(BigInt(offset)).uint32(length))
  }

  write(id: number, handle: string, offset: number, data: string): this {
    return this.ask(FXP.write, id, (w) => w.string(handle).uint64(BigInt(offset)).string(data))
  }

  /** Sends a WRITE and its reply. */
  put(id: number, handle: string, offset: number, data: string): this {
    return this.write(id, handle, offset, data).status(id, 0)
  }

  resize(id: number, handle: string, size: number): this {
    return this.ask(FXP.fsetstat, id, (w) => w.string(handle).uint32(1).uint64(BigInt(size)))
  }

  data(id: number, data: string): this {
    return this.answer(FXP.data, id, (w) => w.string(data))
  }

  status(id: number, code: number): this {
    return this.answer(FXP.status, id, (w) => w.uint32(code).string('').string(''))
  }

  close(id: number, handle: string, code = 0): this {
    return this.ask(FXP.close, id, (w) => w.string(handle)).status(id, code)
  }
}

export function packet(type: number, body: (writer: Writer) => Writer): Buffer {
  const bytes = body(new Writer().byte(type)).finish()
  return new Writer().string(bytes).finish()
}
