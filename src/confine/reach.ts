/** Whether the user of session workers can read the product's files. */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { User } from './run-as.ts'

const READ = 4
const ENTER = 1

/** Returns the first file or folder on the way to one of the paths that is closed to the user. */
export function closedTo(user: User, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    const folders: string[] = []
    for (let at = path; dirname(at) !== at; at = dirname(at)) folders.unshift(dirname(at))
    const closed = folders.find((folder) => !may(user, folder, ENTER))
    if (closed !== undefined) return closed
    if (!may(user, path, READ)) return path
  }
  return undefined
}

/** By owner, group and others; lists of access rights beside them may allow more. */
function may({ uid, gid }: User, path: string, right: number): boolean {
  const { mode, uid: owner, gid: group } = statSync(path)
  const shift = owner === uid ? 6 : group === gid ? 3 : 0
  return ((mode >> shift) & right) === right
}
