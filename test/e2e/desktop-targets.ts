/** Desktops that one person may open, at any broker: what the API is asked for to have them, and what became of it. */
import type { Broker } from '../peers/broker.ts'
import { until } from '../until.ts'
import { eventsIn, type SessionRow } from './bastion.ts'

export const PERSON = { user: 'ops1', password: 'ops1 password' } as const
const PEOPLE = 'people'

export interface DesktopTarget {
  /** Of the device, and of all that goes with it. */
  name: string
  protocol: 'VNC' | 'RDP'
  /** Of 127.0.0.1. */
  port: number
  account: string
  password: string
  /** What the person may do. */
  subprotocols: readonly string[]
  /** Fields of the connection policy. The notice before the desktop is off unless they say otherwise. */
  policy?: Record<string, unknown>
  authorization?: Record<string, unknown>
}

export interface ReachableDesktop {
  /** The login string. */
  login: string
  /** As the API names the target. */
  target: string
  /** Fields of the connection policy are others from now on. */
  policy(fields: Record<string, unknown>): Promise<void>
  /** The person may do these from now on. */
  grant(subprotocols: readonly string[]): Promise<void>
}

type Api = Pick<Broker, 'must'>

export async function addPerson(broker: Api): Promise<void> {
  await broker.must('POST', '/users', {
    user_name: PERSON.user,
    display_name: PERSON.user,
    email: 'ops1@example.com',
    profile: 'user',
    user_auths: ['local_password'],
    password: PERSON.password,
  })
  await broker.must('POST', '/usergroups', { group_name: PEOPLE, users: [PERSON.user] })
}

export async function addDesktop(broker: Api, options: DesktopTarget): Promise<ReachableDesktop> {
  const { name, protocol, port, account, password, subprotocols, policy, authorization } = options
  const must = broker.must.bind(broker)
  const service = protocol.toLowerCase()
  await must('POST', '/connectionpolicies', {
    policy_name: name,
    protocol,
    session_notice: false,
    ...policy,
  })
  await must('POST', '/devices', { device_name: name, host: '127.0.0.1' })
  await must('POST', `/devices/${name}/services`, {
    service_name: service,
    protocol,
    port,
    connection_policy: name,
  })
  await must('POST', '/accounts', {
    account_name: account,
    device: name,
    domain: 'local',
    credentials: [{ type: 'password', password }],
  })
  const target = `${account}@local:${name}:${service}`
  await must('POST', '/targetgroups', { group_name: name, session: { accounts: [target] } })
  const { id } = await must<{ id: string }>('POST', '/authorizations', {
    user_group: PEOPLE,
    target_group: name,
    authorize_sessions: true,
    subprotocols,
    ...authorization,
  })
  return {
    login: `${PERSON.user}+${account}@${name}`,
    target,
    policy: (fields) => must('PUT', `/connectionpolicies/${name}`, fields),
    grant: (rights) => must('PUT', `/authorizations/${id}`, { subprotocols: rights }),
  }
}

/** What happened at a broker; both wait until there are as many. */
export interface History {
  closedSessions(count?: number): Promise<SessionRow[]>
  events(code: string, count?: number): Promise<Record<string, unknown>[]>
}

export function historyOf(broker: Pick<Broker, 'must' | 'log'>): History {
  return {
    events: async (code, count = 0) =>
      await until(`${count} events ${code}`, () => {
        const found = eventsIn(broker.log()).filter((event) => event['event'] === code)
        return found.length >= count ? found : undefined
      }),
    closedSessions: async (count = 0) =>
      await until(`${count} closed sessions`, async () => {
        const rows = await broker.must<SessionRow[]>('GET', '/sessions?status=closed&sort=begin&limit=-1')
        return rows.length >= count ? rows : undefined
      }),
  }
}
