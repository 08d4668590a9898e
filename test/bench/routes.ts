/** The three ways to one target: direct, through OpenSSH's own jump host, and through the broker. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Broker, startBroker } from '../peers/broker.ts'
import { generateKey } from '../peers/keys.ts'
import { descendants } from '../peers/process.ts'
import { provision } from '../peers/provision.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'

export const ROUTES = ['direct', 'jump', 'sallyport'] as const
export type Route = (typeof ROUTES)[number]

/** The same for every leg that a client chooses; the broker chooses its own toward the target. */
export const CIPHER = 'aes128-gcm@openssh.com'
const TICKS_PER_SECOND = 100
const RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN']

export interface Lab {
  /** `-F FILE` for ssh, scp and sftp; the host is the route's name. */
  options: string[]
  user: SystemUser
  /** Processor seconds that the broker has used until now; undefined for the other ways. */
  cpu(route: Route): number | undefined
  /** Bytes that the proxy in between holds: resident for the broker, proportional set size for a jump host. */
  memory(route: Route): number | undefined
  broker: Broker
  stop(): Promise<void>
}

/** User and system time of a process. */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // proc(5): utime and stime are fields 14 and 15; the state, first here, is field 3.
  return fields.slice(11, 13).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND
}

/** A value of /proc/PID/FILE in bytes, for example Pss of smaps_rollup; 0 when the process has ended. */
function kibibytes(pid: number, file: string, key: string): number {
  try {
    const text = readFileSync(`/proc/${pid}/${file}`, 'utf8')
    return Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/** Starts target, jump host and broker, each with the same key of the same user. */
export async function startLab(): Promise<Lab> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  const user = await createSystemUser()
  const started: { stop(): Promise<void> }[] = []
  const stop = async (): Promise<void> => {
    for (const part of started.reverse()) await part.stop()
    await user.remove()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const key = await generateKey(folder)
    const server = async (): Promise<Sshd> => {
      const sshd = await startSshd({ users: [{ name: user.name, authorizedKeys: [key.publicKey] }] })
      started.push(sshd)
      return sshd
    }
    const target = await server()
    const jump = await server()
    const broker = await startBroker()
    started.push(broker)
    const { login } = await provision(broker, {
      sshPublicKeys: [key.publicKey],
      port: target.port,
      account: user.name,
      credentials: [{ type: 'ssh_key', private_key: key.privateKey }],
      subprotocols: RIGHTS,
    })
    const config = join(folder, 'config')
    const common = commonConfig(folder, key.path)
    const names = {
      direct: [`Port ${target.port}`, `User ${user.name}`],
      hop: [`Port ${jump.port}`, `User ${user.name}`],
      jump: [`Port ${target.port}`, `User ${user.name}`, `ProxyCommand ssh -F ${config} -W %h:%p hop`],
      sallyport: [`Port ${broker.ports.ssh}`, `User ${login}`],
    }
    const hosts = Object.entries(names).map(([host, lines]) =>
      [`Host ${host}`, ...lines, ...common].join('\n  '),
    )
    writeFileSync(config, `${hosts.join('\n')}\n`)
    return {
      options: ['-F', config],
      user,
      broker,
      cpu: (route) => (route === 'sallyport' ? cpuSeconds(broker.pid) : undefined),
      memory: (route) => {
        if (route === 'sallyport') return kibibytes(broker.pid, 'status', 'VmRSS')
        if (route !== 'jump') return undefined
        return descendants(jump.pid).reduce((sum, pid) => sum + kibibytes(pid, 'smaps_rollup', 'Pss'), 0)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function commonConfig(folder: string, identity: string): string[] {
  mkdirSync(join(folder, '.ssh'))
  return [
    'HostName 127.0.0.1',
    `IdentityFile ${identity}`,
    'IdentitiesOnly yes',
    'PreferredAuthentications publickey',
    `UserKnownHostsFile ${join(folder, '.ssh', 'known_hosts')}`,
    'GlobalKnownHostsFile /dev/null',
    'StrictHostKeyChecking accept-new',
    `Ciphers ${CIPHER}`,
    'Compression no',
    'LogLevel ERROR',
  ]
}
