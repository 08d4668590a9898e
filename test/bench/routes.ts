/**
 * The routes to one target: direct, through OpenSSH's own jump host, and through the broker, which records
 * nothing, or by the ways of a connection policy.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAX_QUOTA, PAST_QUOTA } from '../../src/model/ssh-options.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { generateKey } from '../peers/keys.ts'
import { provision } from '../peers/provision.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'
import { ProcessTree } from './processor.ts'

/** The fields of the connection policy of each way to record. */
const POLICIES = {
  hashed: { past_recording_quota: 'hash' },
  counted: { past_recording_quota: 'count' },
  whole: { recording_quota: MAX_QUOTA, terminal_quota: MAX_QUOTA },
} as const

const ALL_ROUTES = ['direct', 'jump', 'unrecorded', 'hashed', 'counted', 'whole'] as const
export type Route = (typeof ALL_ROUTES)[number]

/** Beyond the quota a recording is a hash and a count, a count only if the broker has that, or whole. */
export const ROUTES: readonly Route[] = ALL_ROUTES.filter(
  (route) => route !== 'counted' || (PAST_QUOTA as readonly string[]).includes('count'),
)

export const CIPHERS = {
  gcm: 'aes128-gcm@openssh.com',
  chacha20: 'chacha20-poly1305@openssh.com',
} as const
export type Cipher = keyof typeof CIPHERS

const RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN']

/** Returns the name of a route in the clients' configuration. */
export function hostOf(route: Route, cipher: Cipher = 'gcm'): string {
  return `${route}.${cipher}`
}

export function isBroker(route: Route): boolean {
  return route !== 'direct' && route !== 'jump'
}

export interface Lab {
  /** `-F FILE` for ssh, scp and sftp. */
  options: string[]
  /** For control sockets: a short path. */
  folder: string
  user: SystemUser
  broker: ProcessTree
  target: ProcessTree
  jump: ProcessTree
  stop(): Promise<void>
}

/** Starts target, jump host and broker, each with the same key of the same user. */
export async function startLab({ workers = 1 }: { workers?: number } = {}): Promise<Lab> {
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
    const broker = await startBroker({ asInstalled: true, config: { workers } })
    started.push(broker)
    const logins: Partial<Record<Route, string>> = {}
    for (const route of ROUTES.filter(isBroker)) {
      const { login } = await provision(broker, {
        sshPublicKeys: [key.publicKey],
        port: target.port,
        account: user.name,
        credentials: [{ type: 'ssh_key', private_key: key.privateKey }],
        subprotocols: RIGHTS,
        user: `ops-${route}`,
        device: `srv-${route}`,
        authorization: { is_recorded: route !== 'unrecorded' },
      })
      await choosePolicy(broker, route)
      logins[route] = login
    }
    const config = join(folder, 'config')
    const at = (port: number, login: string): string[] => [`Port ${port}`, `User ${login}`]
    const hosts = Object.entries(CIPHERS).flatMap(([cipher, algorithm]) => {
      const hop = `hop.${cipher}`
      const names: [string, string[]][] = [
        [hop, at(jump.port, user.name)],
        [`direct.${cipher}`, at(target.port, user.name)],
        [`jump.${cipher}`, [...at(target.port, user.name), `ProxyCommand ssh -F ${config} -W %h:%p ${hop}`]],
        ...Object.entries(logins).map(([route, login]): [string, string[]] => [
          `${route}.${cipher}`,
          at(broker.ports.ssh, login),
        ]),
      ]
      return names.map(([host, lines]) => [`Host ${host}`, ...lines, `Ciphers ${algorithm}`].join('\n  '))
    })
    writeFileSync(config, `${[...hosts, 'Host *', ...commonConfig(folder, key.path)].join('\n')}\n`)
    return {
      options: ['-F', config],
      folder,
      user,
      broker: new ProcessTree(broker.pid),
      target: new ProcessTree(target.pid),
      jump: new ProcessTree(jump.pid),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Gives the route's service a connection policy that records in its way. */
async function choosePolicy(broker: Broker, route: Route): Promise<void> {
  const fields = POLICIES[route as keyof typeof POLICIES] as object | undefined
  if (!fields) return
  await broker.must('POST', '/connectionpolicies', { policy_name: route, protocol: 'SSH', ...fields })
  await broker.must('PUT', `/devices/srv-${route}/services/ssh`, { connection_policy: route })
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
    'Compression no',
    'LogLevel ERROR',
  ]
}
