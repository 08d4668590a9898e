/** A recording's file on the broker's side of the gate: a proxy has no right to any file. */
import type { Part } from '../../recordings/container/held.ts'
import type { Appended, RecordingFile } from '../../recordings/container/recording-file.ts'
import type { Gate } from '../../src/contract/gate.ts'

export class GateFile implements RecordingFile {
  readonly #gate: Gate
  readonly #session: string

  private constructor(gate: Gate, session: string) {
    this.#gate = gate
    this.#session = session
  }

  static async create(gate: Gate, session: string, first: readonly Uint8Array[]): Promise<GateFile> {
    await gate.beginRecording({ session, parts: first })
    return new GateFile(gate, session)
  }

  append(offset: number, parts: readonly Part[]): Promise<Appended> {
    // Held parts come only in a worker, whose gate has the sealing thread send them.
    const sent = parts as readonly Uint8Array[]
    return this.#gate.appendRecording({ session: this.#session, offset, parts: sent })
  }

  close(): Promise<void> {
    return this.#gate.endRecording({ session: this.#session })
  }
}
