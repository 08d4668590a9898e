/** The cage that this product gives its session workers. */
import type { Cage } from './cage.ts'
import { programFiles } from './program-files.ts'
import { maySetUser, workerUser } from './run-as.ts'

/** Open files: a session has a connection on each side and a few beside. */
const OPEN_FILES = 65_536
/** JavaScript threads of a worker: the main one, hashes, and one for each desktop that guests watch. */
const ISOLATES = 64
/** Threads of all workers' user, with those of V8 and libuv. */
const THREADS = 8_192

/**
 * `runAs`: the user's name in the configuration. A broker that is not root, nor has the capabilities to set a
 * process's user, cannot use it, and its workers run as its own user. Throws an error with the remedy if there is no such user.
 */
export function workerCage({
  runAs,
  keepOpen,
  memory,
}: {
  runAs: string | undefined
  keepOpen: readonly number[]
  memory: number
}): Cage {
  const user = maySetUser() ? workerUser(runAs) : {}
  return {
    ...user,
    keepOpen,
    memory,
    readable: programFiles(),
    listens: false,
    openFiles: OPEN_FILES,
    isolates: ISOLATES,
    threads: THREADS,
  }
}
