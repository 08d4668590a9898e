/**
 * Where the control sockets of a data folder are: `control.sock` is the serving broker's, `control-….sock` one
 * of a broker that was replaced and whose sessions run on.
 */
import { Buffer } from 'node:buffer'
import { closeSync, constants, openSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

export const CONTROL_SOCKET = 'control.sock'
const REPLACED = /^control-[0-9a-f]{16}\.sock$/
/** Bytes of a socket's path in sockaddr_un (unix(7)), without the final zero. */
const MAX_PATH = 107

/** Returns the sockets of brokers that were replaced, whether these still run or not. */
export function replacedSockets(dataDir: string): string[] {
  return readdirSync(dataDir)
    .filter((name) => REPLACED.test(name))
    .map((name) => join(dataDir, name))
}

/**
 * Runs `use` with a path of the socket that is short enough for the system: a long one goes by the folder's
 * descriptor. `use` has bound or connected when it resolves.
 */
export async function withShortPath<T>(path: string, use: (short: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= MAX_PATH) return await use(path)
  if (process.platform !== 'linux') {
    throw new Error(
      `the path of the socket ${path} is longer than ${MAX_PATH} bytes: choose a shorter data_dir`,
    )
  }
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return await use(`/proc/self/fd/${folder}/${basename(path)}`)
  } finally {
    closeSync(folder)
  }
}
