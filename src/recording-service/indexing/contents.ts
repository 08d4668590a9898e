/** The consumer that adds a recording's text to the index over sessions. */

import type { Frame } from '../../../recordings/container/frames.ts'
import type { PassConsumer } from '../../../recordings/container/pass.ts'
import { SessionLines } from '../../../recordings/decode/text/lines.ts'
import { ContentDatabase } from '../../contents/database.ts'
import type { ContentsJob } from './messages.ts'

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
    const database = new ContentDatabase(path, mode)
    try {
      database.putRecording({ session, begin, digest, ...this.#lines.kept() })
    } finally {
      database.close()
    }
  }

  destroy(): void {}
}
