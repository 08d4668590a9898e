/**
 * The routes to one target: direct, through OpenSSH's own jump host, and through the broker, with and without
 * a recording.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Broker, startBroker } from '../peers/broker.ts'
import { generateKey } from '../peers/keys.ts'
import { cpuSeconds, descendants, quiet } from '../peers/process.ts'
import { provision } from '../peers/provision.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'

export const ROUTES = ['direct', 'jump', 'sallyport', 'unrecorded'] as const
export type Route = (typeof ROUTES)[number]

const isOurs = (route: Route): boolean => route === 'sallyport' || route === 'unrecorded'

/** The cipher of every leg that a client chooses; the broker chooses its own towards the target. */
export const CIPHER = 'aes128-gcm@openssh.com'
const RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN']

export interface Lab {
  /** `-F FILE` for ssh, scp and sftp; the host is the route's name. */
  options: string[]
  user: SystemUser
  /** Returns the broker's processor seconds so far, or undefined for the other routes. */
  cpu(route: Route): number | undefined
  /** Returns the proxy's bytes: resident for the broker, proportional set size for a jump host. */
  memory(route: Route): number | undefined
  broker: Broker
  /** Waits until the broker has completed ended sessions: their recordings are indexed. */
  quiet(): Promise<void>
  stop(): Promise<void>
}

/**
 * Returns a value of /proc/PID/FILE in bytes, for example Pss of smaps_rollup, or 0 if the process has ended.
 */
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
    const way = {
      sshPublicKeys: [key.publicKey],
      port: target.port,
      account: user.name,
      credentials: [{ type: 'ssh_key' as const, private_key: key.privateKey }],
      subprotocols: RIGHTS,
    }
    const { login } = await provision(broker, way)
    const unrecorded = await provision(broker, {
      ...way,
      user: 'ops2',
      device: 'srv2',
      authorization: { is_recorded: false },
    })
    const config = join(folder, 'config')
    const common = commonConfig(folder, key.path)
    const names = {
      direct: [`Port ${target.port}`, `User ${user.name}`],
      hop: [`Port ${jump.port}`, `User ${user.name}`],
      jump: [`Port ${target.port}`, `User ${user.name}`, `ProxyCommand ssh -F ${config} -W %h:%p hop`],
      sallyport: [`Port ${broker.ports.ssh}`, `User ${login}`],
      unrecorded: [`Port ${broker.ports.ssh}`, `User ${unrecorded.login}`],
    }
    const hosts = Object.entries(names).map(([host, lines]) =>
      [`Host ${host}`, ...lines, ...common].join('\n  '),
    )
    writeFileSync(config, `${hosts.join('\n')}\n`)
    return {
      options: ['-F', config],
      user,
      broker,
      cpu: (route) => (isOurs(route) ? cpuSeconds(broker.pid) : undefined),
      memory: (route) => {
        if (isOurs(route)) return kibibytes(broker.pid, 'status', 'VmRSS')
        if (route !== 'jump') return undefined
        return descendants(jump.pid).reduce((sum, pid) => sum + kibibytes(pid, 'smaps_rollup', 'Pss'), 0)
      },
      quiet: () => quiet(broker.pid),
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
