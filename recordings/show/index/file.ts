/** The file of an index while it is made: under another name until it is whole and on the disk. */
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
   * Leaves `reserved` bytes for the header. What an interrupted attempt has left is overwritten; other threads may be
   * making an index of the same recording.
   */
  static async create(path: string, reserved: number): Promise<IndexFile> {
    const temporary = `${path}.${process.pid}-${threadId}.tmp`
    return new IndexFile(path, temporary, await open(temporary, 'w', 0o600), reserved)
  }

  /** Answers the offset of the first byte. */
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

  /** Never throws: what stays behind is overwritten by the next attempt. */
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
