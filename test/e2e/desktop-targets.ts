/** Desktops that one user may open, at any broker: creates them over the API, and reads the results. */
import type { Broker } from '../peers/broker.ts'
import { until } from '../until.ts'
import { eventsIn, type SessionRow } from './bastion.ts'

export const PERSON = { user: 'ops1', password: 'ops1 password' } as const
const PEOPLE = 'people'

export interface DesktopTarget {
  /** Name of the device, and part of the names of its other objects. */
  name: string
  protocol: 'VNC' | 'RDP'
  /** Port on 127.0.0.1. */
  port: number
  account: string
  password: string
  /** The user's rights. */
  subprotocols: readonly string[]
  /** Fields of the connection policy. The notice before the desktop is off unless set here. */
  policy?: Record<string, unknown>
  authorization?: Record<string, unknown>
}

export interface ReachableDesktop {
  /** The login string. */
  login: string
  /** The target as named in the API. */
  target: string
  /** Changes fields of the connection policy. */
  policy(fields: Record<string, unknown>): Promise<void>
  /** Replaces the user's rights. */
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

/** A broker's history; both methods wait until there are as many entries. */
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
