/** Connects to a target's port, for every protocol, and explains each kind of failure to the user. */
import type { Socket } from 'node:net'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { TargetError } from '../wording/errors.ts'
import { connectShared } from './shared-read.ts'

/** A target that has not accepted the connection by then counts as down. */
const CONNECT_TIMEOUT_MS = 15_000

export interface DialOptions {
  /** The target's name as the user knows it. */
  name: string
  /** Cancels; its reason is a text for the user. */
  signal: AbortSignal
  /** Present for protocols with urgent data. */
  urgent?: UrgentData
  /** Connects from a port between 512 and 1023, which only privileged programs may use. */
  privilegedPort?: boolean
}

const [LOWEST_PRIVILEGED, HIGHEST_PRIVILEGED] = [512, 1023]
/** The port is in use, by a listener or by a connection to the same address that has just closed. */
const TAKEN: ReadonlySet<string | undefined> = new Set(['EADDRINUSE', 'EADDRNOTAVAIL'])

/** Connects. Throws TargetError. */
export async function dial(host: string, port: number, options: DialOptions): Promise<Socket> {
  if (!options.privilegedPort) return await connectFrom(undefined, host, port, options)
  for (let from = HIGHEST_PRIVILEGED; from >= LOWEST_PRIVILEGED; from--) {
    try {
      return await connectFrom(from, host, port, options)
    } catch (error) {
      if (!(error instanceof TakenError)) throw error
    }
  }
  throw new TargetError(
    `cannot connect to ${options.name}: no local port from ${LOWEST_PRIVILEGED} to ${HIGHEST_PRIVILEGED} is free`,
  )
}

class TakenError extends Error {}

function connectFrom(
  localPort: number | undefined,
  host: string,
  port: number,
  { name, signal, urgent }: DialOptions,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const from = localPort === undefined ? {} : { localPort }
    const socket = connectShared({ host, port, noDelay: true, signal, ...from })
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer in ${CONNECT_TIMEOUT_MS / 1000} s`)),
      CONNECT_TIMEOUT_MS,
    )
    socket.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      if (localPort !== undefined && !signal.aborted && TAKEN.has(error.code)) {
        reject(new TakenError())
        return
      }
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

/** Returns the error of a connection that the user or the bastion no longer wants. */
export function givenUp(signal: AbortSignal): TargetError {
  return new TargetError(String(signal.reason))
}

function reasonOf(error: NodeJS.ErrnoException): string {
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
