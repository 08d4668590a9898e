/**
 * Messages to a supervisor about this process: sd_notify(3), for a unit of systemd with `Type=notify`. Node has no
 * datagrams of Unix sockets, so these go by system calls.
 */
import { Buffer } from 'node:buffer'
import { closeSync } from 'node:fs'
import { type Kernel, openKernel } from '../confine/kernel.ts'
import { CALLS } from '../confine/system-calls.ts'

const SENDTO = { x64: 44, arm64: 206 } as const
const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
/** unix(7): bytes of a path in an address. */
const MAX_PATH = 108
/** Milliseconds between two requests for more time, in a start or an end, and how much is asked for. */
const EXTENSION_MS = 5_000
const EXTENDED_MS = 30_000
/** Characters of a status: it is one line of `systemctl status`. */
const MAX_STATUS = 300

type Environment = Readonly<Record<string, string | undefined>>

/** `missing`: why a supervisor that waits for messages gets none. */
export type OpenedSupervisor = { supervisor: Supervisor } | { missing: string }

/** Opens the way to the supervisor that the environment names. Without one, nothing is ever sent. */
export function openSupervisor(env: Environment, pid: number = process.pid): OpenedSupervisor {
  const { NOTIFY_SOCKET: place } = env
  if (!place) return { supervisor: new Supervisor(() => undefined, undefined) }
  const address = addressOf(place)
  if (!address) return { missing: `NOTIFY_SOCKET: expected the path of a socket, got ${place}` }
  const opened = openKernel()
  if ('missing' in opened) return opened
  const { kernel } = opened
  const socket = kernel.call(CALLS.socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (socket < 0) return { missing: `no socket (error ${-socket})` }
  return { supervisor: new Supervisor(senderOf(kernel, socket, address), watchdogMs(env, pid)) }
}

/** Returns the sockaddr_un; `@` begins a name outside the file system. Returns undefined if it is no such address. */
function addressOf(place: string): Buffer | undefined {
  const path = Buffer.from(place)
  if (!/^[/@]./.test(place) || path.length >= MAX_PATH) return undefined
  if (place.startsWith('@')) path[0] = 0
  const family = Buffer.alloc(2)
  family.writeUInt16LE(AF_UNIX)
  return Buffer.concat([family, path])
}

/** Sends a datagram, without waiting; a supervisor that does not read loses it. Without text the socket is closed. */
type Send = (text: string | undefined) => void

function senderOf(kernel: Kernel, socket: number, address: Buffer): Send {
  return (text) => {
    if (text === undefined) {
      closeSync(socket)
      return
    }
    const bytes = Buffer.from(text)
    kernel.call(SENDTO, socket, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL, address, address.length)
  }
}

/** Returns the time within which the supervisor has to hear of this process, or undefined if it does not watch it. */
function watchdogMs({ WATCHDOG_USEC: usec, WATCHDOG_PID: of }: Environment, pid: number): number | undefined {
  if (of !== undefined && of !== String(pid)) return undefined
  const ms = Number(usec) / 1000
  return Number.isFinite(ms) && ms >= 1 ? ms : undefined
}

export class Supervisor {
  #send: Send
  readonly #beats: NodeJS.Timeout | undefined
  #extensions: NodeJS.Timeout | undefined

  constructor(send: Send, watchdogMs: number | undefined) {
    this.#send = send
    // Half of the time, as sd_watchdog_enabled(3) recommends. A loop that hangs sends none.
    this.#beats =
      watchdogMs === undefined ? undefined : setInterval(() => send('WATCHDOG=1'), watchdogMs / 2).unref()
    this.#askForTime()
  }

  /** Everything listens. */
  ready(status: string): void {
    clearInterval(this.#extensions)
    this.#send(`READY=1\n${statusLine(status)}`)
  }

  /** The configuration is read again, until `ready`. */
  reloading(): void {
    const now = process.hrtime.bigint() / 1_000n
    this.#send(`RELOADING=1\nMONOTONIC_USEC=${now}\n${statusLine('reading the configuration again')}`)
  }

  /** The end has begun; sessions may have a long grace. */
  stopping(status: string): void {
    this.#send(`STOPPING=1\n${statusLine(status)}`)
    this.#askForTime()
  }

  /** Sends nothing more. */
  close(): void {
    clearInterval(this.#beats)
    clearInterval(this.#extensions)
    this.#send(undefined)
    this.#send = () => undefined
  }

  #askForTime(): void {
    clearInterval(this.#extensions)
    const ask = () => this.#send(`EXTEND_TIMEOUT_USEC=${EXTENDED_MS * 1000}`)
    ask()
    this.#extensions = setInterval(ask, EXTENSION_MS).unref()
  }
}

/** A line end would begin another field. */
const statusLine = (status: string) => `STATUS=${status.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_STATUS)}`
