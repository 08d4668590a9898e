/** The bounds of a session worker, as a broker states them. */

export interface Cage {
  /** Another user than the broker's, which only root can give. */
  uid?: number
  gid?: number
  /** The descriptors that stay open beside the standard ones. */
  keepOpen: readonly number[]
  /** Files and folders that the worker may read, beside those of the system (system-files.ts). */
  readable: readonly string[]
  /**
   * Whether the broker hands it sockets to listen on. Landlock withholds ports from `bind` only; without this, the
   * worker cannot listen on one of the kernel's choice either.
   */
  listens: boolean
  /** How many descriptors the worker may have. */
  openFiles: number
  /** Bytes of data that the worker may have: heaps, buffers and stacks, not mapped files. */
  memory: number
  /** The worker's main thread and those of node:worker_threads. The kernel counts what V8 reserves for each. */
  isolates: number
  /** Threads of the user, of all its workers together. It holds for a `uid` of the workers' own. */
  threads: number
}

export interface Program {
  /** Node's options, the program's file and its arguments. */
  arguments: readonly string[]
  env: Readonly<Record<string, string>>
}

/** Tells the launcher its work, in its variable of the environment. */
export interface Launch {
  arguments: readonly string[]
  cage: Cage
}

/** Tells the worker the launcher's result, in the same variable. */
export interface Launched {
  /** The version of Landlock, if the system has one. */
  landlock?: number
  /** Whether the filter of system calls holds. */
  filtered: boolean
  /** Lists the steps that failed, a sentence each. */
  missing: readonly string[]
}

/** The variable between the broker and the launcher, and then between the launcher and the worker. */
export const CAGE_VARIABLE = 'SALLYPORT_CAGE'
