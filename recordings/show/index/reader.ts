/** Reads the index beside a recording. */
import { Buffer } from 'node:buffer'
import { type FileHandle, open } from 'node:fs/promises'
import {
  BlockCipher,
  INDEX_HEADER_LENGTH,
  type IndexHeader,
  MAX_BLOCK,
  parseIndexHeader,
} from '../../container/format/index.ts'
import type { Block, Directory, Keyframe } from './directory.ts'

/** The recording that an index must belong to. */
export interface IndexedRecording {
  size: number
  digest: string
}

export class RecordingIndex {
  readonly directory: Directory
  readonly #handle: FileHandle
  readonly #cipher: BlockCipher

  private constructor(handle: FileHandle, cipher: BlockCipher, directory: Directory) {
    this.#handle = handle
    this.#cipher = cipher
    this.directory = directory
  }

  /**
   * Returns undefined if there is no index, or if it is of another recording, damaged, or of another version.
   */
  static async open(
    path: string,
    key: Uint8Array,
    recording: IndexedRecording,
  ): Promise<RecordingIndex | undefined> {
    const handle = await openIfThere(path)
    if (!handle) return undefined
    const header = await headerOf(handle)
    if (header && isOf(header, recording)) {
      const cipher = new BlockCipher(key, header)
      const block = await readAt(handle, header.directory.offset, header.directory.length)
      const plain = block && cipher.open(header.directory.number, block)
      if (plain) {
        // An index from before graphic channels has none of their keyframes.
        const { pictures = [], ...others }: Directory = JSON.parse(plain.toString())
        return new RecordingIndex(handle, cipher, { ...others, pictures })
      }
    }
    await handle.close()
    return undefined
  }

  /** Returns a keyframe's snapshot, or undefined if it is damaged. */
  async snapshot({ block }: Keyframe): Promise<string | undefined> {
    return (await this.block(block))?.toString()
  }

  /** Returns a block's plain text, or undefined if it is damaged. */
  async block([number, offset, length]: Block): Promise<Buffer | undefined> {
    const sealed = await readAt(this.#handle, offset, length)
    return sealed && this.#cipher.open(number, sealed)
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** Returns whether there is an index of this recording at `path`, as far as can be checked without a key. */
export async function isIndexed(path: string, recording: IndexedRecording): Promise<boolean> {
  const handle = await openIfThere(path)
  if (!handle) return false
  try {
    const header = await headerOf(handle)
    return header !== undefined && isOf(header, recording)
  } finally {
    await handle.close()
  }
}

function isOf(header: IndexHeader, { size, digest }: IndexedRecording): boolean {
  return header.size === size && header.digest === digest
}

async function headerOf(handle: FileHandle): Promise<IndexHeader | undefined> {
  const bytes = await readAt(handle, 0, INDEX_HEADER_LENGTH)
  return bytes && parseIndexHeader(bytes)
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

async function readAt(handle: FileHandle, offset: number, length: number): Promise<Buffer | undefined> {
  if (!Number.isSafeInteger(offset) || length > MAX_BLOCK) return undefined
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await handle.read(bytes, 0, length, offset)
  return bytesRead === length ? bytes : undefined
}
