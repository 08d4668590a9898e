/** A whole bastion for the end-to-end tests: a broker, a real sshd with a user of its own, and a way in. */
import { type Broker, type BrokerOptions, startBroker } from '../peers/broker.ts'
import { createHome, type Home, type Login } from '../peers/home.ts'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { provision } from '../peers/provision.ts'
import { type Sshd, type SshdOptions, startSshd } from '../peers/sshd.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'
import { until } from '../until.ts'

export const ALL_RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SSH_SCP_UP', 'SSH_SCP_DOWN', 'SFTP_SESSION']

export interface BastionOptions {
  /** The user's rights; default: all. */
  subprotocols?: string[]
  /** The account's credential; default: a key. */
  credential?: 'password' | 'ssh_key'
  authorization?: Record<string, unknown>
  broker?: BrokerOptions
  sshd?: SshdOptions
}

export interface SessionRow {
  id: string
  user: string
  result?: string
  reason?: string
  subprotocols: string[]
  bytes_in: number
  bytes_out: number
  is_recorded: boolean
  suspended?: { reason: string; by: string | null; since: string } | null
  recording?: { state: string; size: number; frames: number; digest: string }
}

export interface Bastion {
  broker: Broker
  sshd: Sshd
  /** The account on the target, a user of this system. */
  account: SystemUser
  home: Home
  /** The key that ops1 signs in with. */
  key: SshKey
  password: string
  /** ops1 to the target, by password unless said otherwise. */
  login(options?: Partial<Login>): Login
  /** Returns the sessions that have ended, newest last; waits until there are `count`. */
  closedSessions(count?: number): Promise<SessionRow[]>
  /** Returns the broker's events of that code so far, newest last; waits until there are `count`. */
  events(code: string, count?: number): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

export async function startBastion(options: BastionOptions = {}): Promise<Bastion> {
  const home = createHome()
  const account = await createSystemUser()
  const targetKey = await generateKey(home.folder, { type: 'ed25519' })
  const key = await generateKey(home.folder, { type: 'ed25519' })
  const sshd = await startSshd({
    users: [{ name: account.name, authorizedKeys: [targetKey.publicKey] }],
    ...options.sshd,
  })
  const broker = await startBroker(options.broker)
  const { login, password } = await provision(broker, {
    port: sshd.port,
    account: account.name,
    credentials:
      options.credential === 'password'
        ? [{ type: 'password', password: account.password }]
        : [{ type: 'ssh_key', private_key: targetKey.privateKey }],
    subprotocols: options.subprotocols ?? ALL_RIGHTS,
    sshPublicKeys: [key.publicKey],
    ...(options.authorization && { authorization: options.authorization }),
  })

  const events = async (code: string, count = 0): Promise<Record<string, unknown>[]> =>
    await until(`${count} events ${code}`, () => {
      const found = eventsIn(broker.log()).filter((event) => event['event'] === code)
      return found.length >= count ? found : undefined
    })

  return {
    broker,
    sshd,
    account,
    home,
    key,
    password,
    login: (overrides = {}) => ({ port: broker.ports.ssh, user: login, password, ...overrides }),
    events,
    closedSessions: async (count = 0) =>
      await until(`${count} closed sessions`, async () => {
        const rows = await broker.must<SessionRow[]>('GET', '/sessions?status=closed&sort=begin&limit=-1')
        return rows.length >= count ? rows : undefined
      }),
    stop: async () => {
      await broker.stop()
      await sshd.stop()
      await account.remove()
      home.remove()
    },
  }
}

/** Returns the events among the lines of a broker's log. */
export function eventsIn(log: string): Record<string, unknown>[] {
  return log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Record<string, unknown>]
      } catch {
        // A line that is not complete yet.
        return []
      }
    })
    .filter((entry) => 'event' in entry)
}
