/** The time of a target that has a desktop, from its socket to the session: bounded, and given up when nobody waits. */
import type { Socket } from 'node:net'
import { TargetError } from '../wording/errors.ts'
import { ByteStream } from './byte-stream.ts'
import { givenUp } from './dial.ts'

/** A target may take its time with a password that is wrong. */
const HANDSHAKE_MS = 30_000

export interface HandshakeOptions {
  /** What the user calls the target. */
  name: string
  /** Gives up; its reason is a text for the user. */
  signal: AbortSignal
}

/**
 * What `shake` makes of a connection that has just been made. Closes it and rejects where it comes to nothing: with
 * TargetError when that is for the time or for the signal, else with what `shake` has thrown.
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
