/**
 * inetutils-inetd with clear-text servers on loopback: telnetd and rlogind, which log in users of the system.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

/** The programs that it needs, for describeWithPeers. */
export const INETD_PEERS = ['inetutils-inetd', 'telnetd', 'in.rlogind'] as const

/** The port of each service. rlogind accepts only client ports below 1024. */
export type Inetd<Name extends string = 'telnet' | 'rlogin'> = Record<Name, number> & {
  stop(): Promise<void>
}

/** Sessions per minute, for each service. */
const RATE = '10000'

/** Starts telnetd and rlogind. */
export function startInetd(): Promise<Inetd> {
  return startInetdOf({
    telnet: [findProgram('telnetd'), 'telnetd', '-h'],
    rlogin: [findProgram('in.rlogind'), 'in.rlogind'],
  })
}

/** Starts each service by the path of its program, and its arguments from the name on. */
export async function startInetdOf<Name extends string>(
  services: Readonly<Record<Name, readonly string[]>>,
): Promise<Inetd<Name>> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-inetd-'))
  const names = Object.keys(services) as Name[]
  const ports = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await freePort()])),
  ) as Record<Name, number>
  const lines = names.map(
    (name) => `127.0.0.1:${ports[name]} stream tcp nowait root ${services[name].join(' ')}\n`,
  )
  const config = join(folder, 'inetd.conf')
  writeFileSync(config, lines.join(''))
  const daemon = await startDaemon(
    findProgram('inetutils-inetd'),
    ['-d', '-R', RATE, `--pidfile=${join(folder, 'pid')}`, config],
    async () => (await Promise.all(names.map((name) => isOpen(ports[name])))).every(Boolean),
  )
  return {
    ...ports,
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Whether a program listens there, on 127.0.0.1. */
export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
