/**
 * Bounds a desktop target's handshake, from its socket to the session: it fails after a time, or if the user
 * leaves.
 */
import type { Socket } from 'node:net'
import { TargetError } from '../wording/errors.ts'
import { ByteStream } from './byte-stream.ts'
import { givenUp } from './dial.ts'

/** Long, because targets delay the answer to a wrong password. */
const HANDSHAKE_MS = 30_000

export interface HandshakeOptions {
  /** The target's name as the user knows it. */
  name: string
  /** Cancels; its reason is a text for the user. */
  signal: AbortSignal
}

/**
 * Returns the result of `shake` on a new connection. On failure closes the connection and rejects: with
 * TargetError on timeout or signal, else with the error that `shake` threw.
 */
export async function handshake<T>(
  socket: Socket,
  { name, signal }: HandshakeOptions,
  shake: (stream: ByteStream) => Promise<T>,
): Promise<T> {
  const stream = new ByteStream(socket)
  const late = new TargetError(`${name} did not let the bastion in within ${HANDSHAKE_MS / 1000} s`)
  const timer = setTimeout(() => stream.destroy(late), HANDSHAKE_MS)
  const give = (): void => stream.destroy(givenUp(signal))
  signal.addEventListener('abort', give)
  if (signal.aborted) give()
  try {
    return await shake(stream)
  } catch (error) {
    const { failure } = stream
    stream.destroy()
    throw failure instanceof TargetError ? failure : error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', give)
  }
}
