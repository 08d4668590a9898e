/**
 * Finds files with secrets, the configuration itself and those that it names, that other users of the machine
 * could read or change.
 */
import { statSync } from 'node:fs'
import type { Config } from './config.ts'

/** Group may write, others may read or write. A group that may read was set so on purpose. */
const EXPOSED = 0o026

/**
 * Returns a sentence for each exposed file, with the remedy. A missing file is reported by its reader. `uid`
 * is the user that the broker runs as.
 */
export function exposedFiles(
  { secretFiles }: Pick<Config, 'secretFiles'>,
  uid: number | undefined = process.geteuid?.(),
): string[] {
  return secretFiles.flatMap((file) => {
    const found = statSync(file, { throwIfNoEntry: false })
    if (!found?.isFile()) return []
    if ((found.mode & EXPOSED) !== 0) {
      const mode = (found.mode & 0o777).toString(8)
      return [`${file} holds a secret and is open to other users (mode ${mode}): chmod 600 ${file}`]
    }
    if (uid !== undefined && found.uid !== uid && found.uid !== 0) {
      return [`${file} holds a secret and belongs to user ${found.uid}: expected user ${uid} or root`]
    }
    return []
  })
}
