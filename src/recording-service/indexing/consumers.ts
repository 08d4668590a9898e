/** The consumers of a recording's frames after its session has ended. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { INDEX_FILE_NAME, SALT_LENGTH } from '../../../recordings/container/format/index.ts'
import type { PassConsumer } from '../../../recordings/container/pass.ts'
import { IndexBuilder } from '../../../recordings/show/index/builder.ts'
import { ContentsConsumer } from './contents.ts'
import type { IndexJob } from './messages.ts'

/** Makes the consumers for this recording; they run in the indexing thread. */
export async function consumersOf(job: IndexJob): Promise<PassConsumer[]> {
  const { directory, key, size, digest, session, keyframes, contents } = job
  const consumers: PassConsumer[] = []
  if (contents) consumers.push(new ContentsConsumer({ ...contents, session, digest }))
  if (keyframes) {
    const path = join(directory, INDEX_FILE_NAME)
    const salt = randomBytes(SALT_LENGTH)
    consumers.push(await IndexBuilder.create({ path, key, recording: { size, digest }, salt }))
  }
  return consumers
}
