/** A bastion whose targets have terminals only, and a user who may open them. */
import { type Broker, type BrokerOptions, startBroker } from '../peers/broker.ts'
import { createHome, type Home, type Login } from '../peers/home.ts'
import { until } from '../until.ts'
import { eventsIn, type SessionRow } from './bastion.ts'

const USER = 'ops1'
const PASSWORD = 'ops1 password'

export interface TerminalService {
  device: string
  protocol: 'TELNET' | 'RLOGIN'
  /** Port on 127.0.0.1. */
  port: number
  account?: string
  credentials?: { type: 'password' | 'enable'; password: string }[]
  /** Fields of its own connection policy. */
  policy?: Record<string, unknown>
  /** Used instead of an account. */
  by?: 'interactive_logins' | 'account_mappings'
}

export interface TerminalBastion {
  broker: Broker
  home: Home
  /** Adds a new device with the service, which ops1 may open. Returns its login. */
  add(service: TerminalService): Promise<Login>
  /** Returns the session that began last, once none runs any more. */
  closed(): Promise<SessionRow>
  events(code: string): Record<string, unknown>[]
  stop(): Promise<void>
}

export async function startTerminalBastion(options: BrokerOptions = {}): Promise<TerminalBastion> {
  const home = createHome()
  const broker = await startBroker(options)
  await broker.must('POST', '/users', {
    user_name: USER,
    display_name: USER,
    email: `${USER}@example.com`,
    profile: 'user',
    user_auths: ['local_password'],
    password: PASSWORD,
  })
  await broker.must('POST', '/usergroups', { group_name: 'operators', users: [USER] })
  return {
    broker,
    home,
    async add({ device, protocol, port, account = 'admin', credentials = [], policy, by }) {
      const service = protocol.toLowerCase()
      await broker.must('POST', '/devices', { device_name: device, host: '127.0.0.1' })
      if (policy) {
        await broker.must('POST', '/connectionpolicies', { policy_name: device, protocol, ...policy })
      }
      await broker.must('POST', `/devices/${device}/services`, {
        service_name: service,
        protocol,
        port,
        ...(policy && { connection_policy: device }),
      })
      if (!by) await broker.must('POST', '/accounts', { account_name: account, device, credentials })
      const session = by
        ? { [by]: [`${device}:${service}`] }
        : { accounts: [`${account}@local:${device}:${service}`] }
      await broker.must('POST', '/targetgroups', { group_name: device, session })
      await broker.must('POST', '/authorizations', {
        user_group: 'operators',
        target_group: device,
        authorize_sessions: true,
      })
      const target = by ? device : `${account}@${device}+${service}`
      return { port: broker.ports.ssh, user: `${USER}+${target}`, password: PASSWORD }
    },
    closed: async () =>
      await until('the end of the session', async () => {
        const [last] = await broker.must<(SessionRow & { end: string | null })[]>(
          'GET',
          '/sessions?sort=-begin&limit=1',
        )
        return last?.end == null ? undefined : last
      }),
    events: (code) => eventsIn(broker.log()).filter((event) => event['event'] === code),
    async stop() {
      await broker.stop()
      home.remove()
    },
  }
}
