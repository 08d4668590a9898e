/** The consumer that adds a recording's text to the index over sessions. */

import type { Frame } from '../../../recordings/container/frames.ts'
import type { PassConsumer } from '../../../recordings/container/pass.ts'
import { SessionLines } from '../../../recordings/decode/text/lines.ts'
import { ContentDatabase } from '../../contents/database.ts'
import type { ContentsJob } from './messages.ts'

/**
 * The index, open for as long as the thread runs: opening it takes longer than adding the few lines of a short
 * session. The thread ends soon after its last job.
 */
let known: { database: ContentDatabase; path: string; mode: string } | undefined

function databaseAt(path: string, mode: string): ContentDatabase {
  if (known?.path === path && known.mode === mode) return known.database
  leave()
  known = { database: new ContentDatabase(path, mode), path, mode }
  return known.database
}

function leave(): void {
  known?.database.close()
  known = undefined
}

export class ContentsConsumer implements PassConsumer {
  readonly #job: ContentsJob & { session: string; digest: string }
  readonly #lines = new SessionLines()

  constructor(job: ContentsJob & { session: string; digest: string }) {
    this.#job = job
  }

  frame(frame: Frame): void {
    this.#lines.add(frame)
  }

  async close(): Promise<void> {
    const { path, mode, begin, session, digest } = this.#job
    this.#lines.finish()
    try {
      databaseAt(path, mode).putRecording({ session, begin, digest, ...this.#lines.kept() })
    } catch (error) {
      // A fault may be the connection's own: the next recording gets a new one.
      leave()
      throw error
    }
  }

  destroy(): void {}
}
