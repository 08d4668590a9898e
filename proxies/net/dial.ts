/** Connects to a target's port, for every protocol, and explains each kind of failure to the user. */
import type { Socket } from 'node:net'
import type { DialAnswer } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { takeDialled } from '../../src/sockets/dialled.ts'
import { TargetError } from '../wording/errors.ts'
import { acceptShared, connectShared } from './shared-read.ts'

/** A target that has not accepted the connection by then counts as down. */
const CONNECT_TIMEOUT_MS = 15_000

export interface DialOptions {
  /** The target's name as the user knows it. */
  name: string
  /** Cancels; its reason is a text for the user. */
  signal: AbortSignal
  /** Present for protocols with urgent data. */
  urgent?: UrgentData
}

/** Connects. Throws TargetError. */
export function dial(host: string, port: number, { name, signal, urgent }: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectShared({ host, port, noDelay: true, signal })
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer in ${CONNECT_TIMEOUT_MS / 1000} s`)),
      CONNECT_TIMEOUT_MS,
    )
    socket.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      reject(
        signal.aborted ? givenUp(signal) : new TargetError(`cannot connect to ${name}: ${reasonOf(error)}`),
      )
    })
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.removeAllListeners('error')
      try {
        // Before the first read, so that urgent data that has arrived already is kept too.
        urgent?.keepInPlace(socket)
        resolve(socket)
      } catch (error) {
        socket.destroy()
        reject(new TargetError(`cannot connect to ${name}: ${(error as Error).message}`))
      }
    })
  })
}

/** Uses a connection that the broker makes, from a port below 1024. Throws TargetError. */
export async function dialByBroker(
  ask: () => Promise<DialAnswer>,
  { name, signal, urgent }: DialOptions,
): Promise<Socket> {
  const answer = await ask()
  if (answer.result === 'failed') {
    throw signal.aborted ? givenUp(signal) : new TargetError(`cannot connect to ${name}: ${reasonOf(answer)}`)
  }
  const socket = acceptShared(await takeDialled(answer.connection))
  try {
    if (signal.aborted) throw givenUp(signal)
    urgent?.keepInPlace(socket)
    return socket
  } catch (error) {
    socket.destroy()
    if (error instanceof TargetError) throw error
    throw new TargetError(`cannot connect to ${name}: ${(error as Error).message}`)
  }
}

/** Returns the error of a connection that the user or the bastion no longer wants. */
export function givenUp(signal: AbortSignal): TargetError {
  return new TargetError(String(signal.reason))
}

function reasonOf(error: { code?: string | undefined; message: string }): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return 'connection refused, nothing listens there'
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'no route to it'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'its name does not resolve'
    case 'ETIMEDOUT':
      return 'no answer'
    case 'EACCES':
      return 'the bastion may not use a local port below 1024: give it CAP_NET_BIND_SERVICE, or switch privileged_port off'
    case 'ECONNRESET':
      return 'the connection was reset'
    default:
      return error.message
  }
}
