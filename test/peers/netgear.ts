/**
 * Logins of network gear by real programs: FRR's vty (a password, and one for `enable`) and a program on
 * libcli (user name, password, `enable`).
 */
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Inetd, isOpen, startInetdOf } from './inetd.ts'
import { freePort, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

/** The programs that they need, for describeWithPeers. */
export const NETGEAR_PEERS = ['staticd', 'gcc', 'libcli', 'inetutils-inetd'] as const

export const FRR = { password: 'Vty-Pass1', enable: 'En-Pass1' }
/** As in netgear.c. */
export const LIBCLI = { account: 'admin', password: 'Sw-Pass1', enable: 'Sw-Enable1' }

export interface Netgear {
  port: number
  stop(): Promise<void>
}

/**
 * Starts FRR's daemon for static routes, whose vty is FRR's common one. It drops its privileges, so it needs
 * root.
 */
export async function startFrr(): Promise<Netgear> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-frr-'))
  const port = await freePort()
  const config = join(folder, 'staticd.conf')
  writeFileSync(
    config,
    `hostname core-sw1
password ${FRR.password}
enable password ${FRR.enable}
banner motd line *** Authorised access only ***
line vty
 exec-timeout 5 0
`,
  )
  const [user, group] = await Promise.all(
    ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, 'frr'])).stdout)),
  )
  chmodSync(folder, 0o755)
  for (const path of [folder, config]) chownSync(path, user!, group!)
  const daemon = await startDaemon(
    findProgram('staticd'),
    [
      ...['-A', '127.0.0.1', '-P', String(port), '-f', config, '-i', join(folder, 'pid')],
      ...['-z', join(folder, 'zserv.api'), '--vty_socket', folder, '--log', 'stdout'],
    ],
    () => isOpen(port),
  )
  return {
    port,
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts a program of ten lines on libcli, compiled here. */
export async function startLibcli(): Promise<Netgear> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-libcli-'))
  const program = join(folder, 'netgear')
  const source = join(import.meta.dirname, 'netgear.c')
  const made = await run(findProgram('gcc'), ['-o', program, source, '-lcli', '-lcrypt'])
  if (made.code !== 0) throw new Error(made.stderr)
  const inetd: Inetd<'libcli'> = await startInetdOf({ libcli: [program, 'netgear'] })
  return {
    port: inetd.libcli,
    stop: async () => {
      await inetd.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Switch extends Netgear {
  /** The command of an SSH session on it, for the user of the session. It needs root. */
  command: string
  /** Returns the secrets of its configuration, or of the one that it starts with. */
  configuration(which: 'running' | 'startup'): Record<string, string>
}

/** Starts a switch whose users change, on Telnet; `secrets` by user, and the one of `enable`. */
export async function startSwitch(secrets: Readonly<Record<string, string>>): Promise<Switch> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-switch-'))
  const program = join(folder, 'switch')
  const source = join(import.meta.dirname, 'switch.c')
  const made = await run(findProgram('gcc'), ['-o', program, source, '-lcli', '-lcrypt'])
  if (made.code !== 0) throw new Error(made.stderr)
  // For SSH it runs as the user, sets a password as root, and only that user's.
  chmodSync(folder, 0o755)
  chmodSync(program, 0o4755)
  const lines = Object.entries(secrets).map(([name, secret]) => `${name} ${secret}\n`)
  for (const name of ['running', 'startup']) writeFileSync(join(folder, name), lines.join(''))
  const inetd: Inetd<'switch'> = await startInetdOf({ switch: [program, 'switch', folder] })
  return {
    port: inetd.switch,
    command: `${program} ${folder} system`,
    configuration: (which) =>
      Object.fromEntries(
        readFileSync(join(folder, which), 'utf8')
          .trimEnd()
          .split('\n')
          .map((line) => line.split(' ') as [string, string]),
      ),
    stop: async () => {
      await inetd.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
