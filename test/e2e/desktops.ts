/** A whole bastion for desktops: a broker that listens for VNC, a real Xvnc as the target, and a way in. */
import { type Broker, type BrokerOptions, startBroker } from '../peers/broker.ts'
import { startXvnc, type Xvnc, type XvncOptions } from '../peers/vnc/servers.ts'
import { until } from '../until.ts'
import { eventsIn, type SessionRow } from './bastion.ts'

export interface DesktopOptions {
  /** Default: VncAuth, 640 × 480. */
  target?: Partial<XvncOptions>
  /** Somebody else's VNC server on this port of 127.0.0.1 instead. */
  port?: number
  /** What the person may do; default: VNC alone. */
  subprotocols?: string[]
  /** Fields of the connection policy. The notice before the desktop is off unless they say otherwise. */
  policy?: Record<string, unknown>
  authorization?: Record<string, unknown>
  broker?: BrokerOptions
}

export interface Desktop {
  broker: Broker
  /** Undefined where the target is somebody else's. */
  xvnc: Xvnc | undefined
  /** Of the viewer: the login string, and ops1's password. */
  login: string
  password: string
  /** The account's, which no user learns. */
  targetPassword: string
  /** Where the bastion listens. */
  port: number
  /** Fields of the connection policy are others from now on. */
  policy(fields: Record<string, unknown>): Promise<void>
  /** The person may do these from now on. */
  grant(subprotocols: string[]): Promise<void>
  closedSessions(count?: number): Promise<SessionRow[]>
  events(code: string, count?: number): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

const TARGET_PASSWORD = 'Xvnc-pw1'

export async function startDesktop(options: DesktopOptions = {}): Promise<Desktop> {
  const { target, subprotocols = ['VNC'], policy = {}, authorization } = options
  const xvnc =
    options.port === undefined
      ? await startXvnc({ types: ['VncAuth'], password: TARGET_PASSWORD, ...target })
      : undefined
  const targetPassword = target?.password ?? TARGET_PASSWORD
  const broker = await startBroker({ vnc: {}, ...options.broker })
  const must = broker.must.bind(broker)
  const password = 'ops1 password'
  await must('POST', '/users', {
    user_name: 'ops1',
    display_name: 'ops1',
    email: 'ops1@example.com',
    profile: 'user',
    user_auths: ['local_password'],
    password,
  })
  await must('POST', '/usergroups', { group_name: 'people', users: ['ops1'] })
  await must('POST', '/connectionpolicies', {
    policy_name: 'desktops',
    protocol: 'VNC',
    session_notice: false,
    ...policy,
  })
  await must('POST', '/devices', { device_name: 'desk1', host: '127.0.0.1' })
  await must('POST', '/devices/desk1/services', {
    service_name: 'vnc',
    protocol: 'VNC',
    port: xvnc?.port ?? options.port,
    connection_policy: 'desktops',
  })
  await must('POST', '/accounts', {
    account_name: 'screen',
    device: 'desk1',
    domain: 'local',
    credentials: [{ type: 'password', password: targetPassword }],
  })
  await must('POST', '/targetgroups', {
    group_name: 'desktops',
    session: { accounts: ['screen@local:desk1:vnc'] },
  })
  const { id } = await must<{ id: string }>('POST', '/authorizations', {
    user_group: 'people',
    target_group: 'desktops',
    authorize_sessions: true,
    subprotocols,
    ...authorization,
  })
  return {
    broker,
    xvnc,
    login: 'ops1+screen@desk1',
    password,
    targetPassword,
    port: broker.ports.vnc!,
    policy: (fields) => must('PUT', '/connectionpolicies/desktops', fields),
    grant: (rights) => must('PUT', `/authorizations/${id}`, { subprotocols: rights }),
    events: async (code, count = 0) =>
      await until(`${count} events ${code}`, () => {
        const found = eventsIn(broker.log()).filter((event) => event['event'] === code)
        return found.length >= count ? found : undefined
      }),
    closedSessions: async (count = 0) =>
      await until(`${count} closed sessions`, async () => {
        const rows = await must<SessionRow[]>('GET', '/sessions?status=closed&sort=begin&limit=-1')
        return rows.length >= count ? rows : undefined
      }),
    stop: async () => {
      await broker.stop()
      await xvnc?.stop()
    },
  }
}
