/** A recording's file that is opened once, and read from any place as often as is needed. */
import { Buffer } from 'node:buffer'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Header } from './format/header.ts'
import { FILE_NAME } from './format/limits.ts'
import { type GroupPlace, RecordingReader } from './reader.ts'
import { PIECE_LENGTH } from './session-file.ts'

export class OpenedRecording {
  readonly header: Header
  readonly #handle: FileHandle
  readonly #key: Uint8Array
  /** The place of the first group. */
  readonly #beginning: GroupPlace

  private constructor(handle: FileHandle, key: Uint8Array, { header, place }: RecordingReader) {
    this.header = header
    this.#handle = handle
    this.#key = key
    this.#beginning = place
  }

  /** Reads the header; `directory` is the session's folder. Throws RecordingError. */
  static async open(directory: string, key: Uint8Array): Promise<OpenedRecording> {
    const handle = await open(join(directory, FILE_NAME), 'r')
    try {
      return new OpenedRecording(handle, key, await RecordingReader.open(piecesOf(handle, 0), key))
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** A reader of the groups from a place on; absent: from the first one. */
  reader(place: GroupPlace = this.#beginning): RecordingReader {
    return RecordingReader.resume(piecesOf(this.#handle, place.offset), this.#key, this.header, place)
  }

  /** Comes after the last reader has ended. */
  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** Reads by offset, so that readers of the same handle do not move each other. */
async function* piecesOf(handle: FileHandle, start: number): AsyncGenerator<Uint8Array> {
  for (let offset = start; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(PIECE_LENGTH), 0, PIECE_LENGTH, offset)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    offset += bytesRead
  }
}
