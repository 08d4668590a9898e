/** xrdp with xorgxrdp on loopback: desktops of system users, whom it signs in by PAM. Only root can start it. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { until } from '../../until.ts'
import { type Daemon, freePort, startDaemon } from '../process.ts'
import { findProgram } from '../program.ts'

/** What it needs, for describeWithPeers. */
export const XRDP_PEERS = ['xrdp', 'xrdp-sesman', 'xorgxrdp', 'xterm'] as const

/**
 * xrdp asks sesman at the port of /etc/xrdp/sesman.ini, whatever it is told: one at a time can run on a machine. Keep
 * tests with it in one file, or let them wait for each other.
 */
const SESMAN_PORT = 3350
const SOCKETS = '/run/xrdp'
const PATIENCE_MS = 40_000
const STOP_GRACE_MS = 1_000

export interface Xrdp {
  port: number
  log(): string
  stop(): Promise<void>
}

/** `program` is what each desktop shows, as a line for sh; it ends the session when it ends. */
export async function startXrdp(program: string): Promise<Xrdp> {
  await until(
    `port ${SESMAN_PORT}, which another sesman has`,
    async () => !(await isListening(SESMAN_PORT)) || undefined,
    PATIENCE_MS,
  )
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-xrdp-'))
  chmodSync(folder, 0o755)
  const at = (name: string) => join(folder, name)
  const port = await freePort()
  const made = await generate([{ name: 'commonName', value: 'xrdp' }], { keySize: 2048 })
  writeFileSync(at('key.pem'), made.private, { mode: 0o600 })
  writeFileSync(at('cert.pem'), made.cert)
  writeFileSync(at('startwm.sh'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
  copyIni('xrdp.ini', at('xrdp.ini'), {
    port: `tcp://127.0.0.1:${port}`,
    certificate: at('cert.pem'),
    key_file: at('key.pem'),
    LogFile: at('xrdp.log'),
    EnableSyslog: 'false',
  })
  copyIni('sesman.ini', at('sesman.ini'), {
    DefaultWindowManager: at('startwm.sh'),
    EnableUserWindowManager: 'false',
    KillDisconnected: 'true',
    // A mount in the user's home would outlive the user.
    EnableFuseMount: 'false',
    LogFile: at('sesman.log'),
    EnableSyslog: 'false',
  })
  // xrdp makes it anew, with the rights that its sessions need.
  rmSync(SOCKETS, { recursive: true, force: true })
  const running: Daemon[] = []
  const stop = async (): Promise<void> => {
    for (const daemon of running.reverse()) await daemon.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const start = async (program: 'xrdp' | 'xrdp-sesman', ini: string, listening: number): Promise<void> => {
    running.push(
      await startDaemon(findProgram(program), ['-n', '-c', at(ini)], () => isListening(listening), {
        grace: STOP_GRACE_MS,
      }),
    )
  }
  try {
    await start('xrdp-sesman', 'sesman.ini', SESMAN_PORT)
    await start('xrdp', 'xrdp.ini', port)
  } catch (error) {
    await stop()
    throw error
  }
  const logs = () => ['xrdp.log', 'sesman.log'].map((name) => readFileSync(at(name), 'utf8')).join('')
  return { port, log: logs, stop }
}

/**
 * Debian's file with other values for these keys where they stand first, in a comment too: later sections have `port` as
 * well.
 */
function copyIni(name: string, path: string, values: Record<string, string>): void {
  const left = new Map(Object.entries(values))
  const lines = readFileSync(join('/etc/xrdp', name), 'utf8').split('\n')
  const changed = lines.map((line) => {
    const key = /^#?(\w+)=/.exec(line)?.[1] ?? ''
    const value = left.get(key)
    left.delete(key)
    return value === undefined ? line : `${key}=${value}`
  })
  writeFileSync(path, changed.join('\n'))
}

/** sesman listens on ::1 although it is told 127.0.0.1. */
async function isListening(port: number): Promise<boolean> {
  return (await answers('127.0.0.1', port)) || (await answers('::1', port))
}

function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
