/** The shortest way through the API to a target that a user may open. */
import type { Broker } from './broker.ts'

export interface Provision {
  /** The user; default `ops1` with the password `ops1 password`. */
  user?: string
  password?: string
  /** Lines of authorized_keys. */
  sshPublicKeys?: string[]
  /** Default `srv1`; its service is named `ssh`. */
  device?: string
  /** The target's port on 127.0.0.1. */
  port: number
  /** The account on the target. */
  account: string
  credentials: ({ type: 'password'; password: string } | { type: 'ssh_key'; private_key: string })[]
  /** Values of the authorization's `subprotocols`. */
  subprotocols: string[]
  /** More fields of the authorization. */
  authorization?: Record<string, unknown>
}

/** A client's credentials: the login string in the form with `+`, and the password. */
export interface Provisioned {
  login: string
  password: string
}

/** Creates user, group, device, service, account, target group and authorization. */
export async function provision(broker: Pick<Broker, 'must'>, wanted: Provision): Promise<Provisioned> {
  const user = wanted.user ?? 'ops1'
  const password = wanted.password ?? `${user} password`
  const device = wanted.device ?? 'srv1'
  const keys = wanted.sshPublicKeys ?? []
  await broker.must('POST', '/users', {
    user_name: user,
    display_name: user,
    email: `${user}@example.com`,
    profile: 'user',
    user_auths: keys.length > 0 ? ['local_password', 'local_sshkey'] : ['local_password'],
    password,
    ssh_public_keys: keys,
  })
  await broker.must('POST', '/usergroups', { group_name: `${user}-${device}-users`, users: [user] })
  await broker.must('POST', '/devices', { device_name: device, host: '127.0.0.1' })
  await broker.must('POST', `/devices/${device}/services`, {
    service_name: 'ssh',
    protocol: 'SSH',
    port: wanted.port,
  })
  await broker.must('POST', '/accounts', {
    account_name: wanted.account,
    device,
    domain: 'local',
    credentials: wanted.credentials,
  })
  await broker.must('POST', '/targetgroups', {
    group_name: `${user}-${device}-targets`,
    session: { accounts: [`${wanted.account}@local:${device}:ssh`] },
  })
  await broker.must('POST', '/authorizations', {
    user_group: `${user}-${device}-users`,
    target_group: `${user}-${device}-targets`,
    authorize_sessions: true,
    subprotocols: wanted.subprotocols,
    ...wanted.authorization,
  })
  return { login: `${user}+${wanted.account}@${device}`, password }
}
