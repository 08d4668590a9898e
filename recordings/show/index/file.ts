/** The file of an index being built: it has another name until it is complete and on the disk. */
import type { Buffer } from 'node:buffer'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { threadId } from 'node:worker_threads'

export class IndexFile {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #temporary: string
  #size: number

  private constructor(path: string, temporary: string, handle: FileHandle, size: number) {
    this.#path = path
    this.#temporary = temporary
    this.#handle = handle
    this.#size = size
  }

  /**
   * Creates the file with `reserved` bytes for the header. Overwrites the file of an interrupted attempt;
   * other threads may be building an index of the same recording.
   */
  static async create(path: string, reserved: number): Promise<IndexFile> {
    const temporary = `${path}.${process.pid}-${threadId}.tmp`
    return new IndexFile(path, temporary, await open(temporary, 'w', 0o600), reserved)
  }

  /** Appends bytes and returns the offset of the first one. */
  async append(bytes: Buffer): Promise<number> {
    const offset = this.#size
    await this.#writeAt(bytes, offset)
    this.#size += bytes.length
    return offset
  }

  async close(header: Buffer): Promise<void> {
    await this.#writeAt(header, 0)
    await this.#handle.datasync()
    await this.#handle.close()
    await rename(this.#temporary, this.#path)
  }

  /** Removes the file. Never throws: the next attempt overwrites a file that is left. */
  async destroy(): Promise<void> {
    await this.#handle.close().catch(() => undefined)
    await rm(this.#temporary, { force: true }).catch(() => undefined)
  }

  async #writeAt(bytes: Buffer, position: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, position + done)
      if (bytesWritten === 0) throw new Error('the disk took no bytes of the index')
      done += bytesWritten
    }
  }
}
