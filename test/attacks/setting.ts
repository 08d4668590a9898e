/**
 * The shared part of the tests of signed-in clients: a bastion, raw clients that are closed after each test,
 * and access to the broker.
 */
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { buildExec, buildGlobalRequest } from '../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelOpenConfirmation } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers, type Peer } from '../peers/program.ts'
import { until } from '../until.ts'
import { type RawClient, sessionOpen, signInRaw } from './raw.ts'

/** The programs that a bastion under attack needs. */
export const PEERS: readonly Peer[] = ['sshd', 'ssh', 'ssh-keygen']
/** The client's number of its channel. */
export const OWN = 7

export interface Setting {
  /** Set in `beforeAll`. */
  readonly bastion: Bastion
  /** Returns a client that has signed in, to srv1 unless another login string is given. */
  arrive(user?: string): Promise<RawClient>
  /** Returns the broker's resident memory in KiB. */
  resident(): number
  /** Returns the `subprotocol` of all events channel.denied, once there are `count`. */
  denials(count?: number): Promise<unknown[]>
}

/**
 * `describe` with its own bastion. After each test its clients are closed and their sessions must end: the
 * broker has survived their messages.
 */
export function describeAttacks(title: string, body: (setting: Setting) => void): void {
  describeWithPeers(title, PEERS, () => {
    let bastion: Bastion
    const clients: RawClient[] = []
    beforeAll(async () => {
      bastion = await startBastion()
    })
    afterAll(async () => {
      const { code } = await ssh(bastion.home, bastion.login(), ['true'])
      await bastion.stop()
      expect(code).toBe(0)
    })
    afterEach(async () => {
      for (const client of clients.splice(0)) client.destroy()
      await noSession(bastion)
    })
    body({
      get bastion() {
        return bastion
      },
      arrive: async (user = bastion.login().user) => {
        const client = await signInRaw({ port: bastion.broker.ports.ssh, user, password: bastion.password })
        clients.push(client)
        return client
      },
      resident: () => residentOf(bastion),
      denials: async (count) =>
        (await bastion.events('channel.denied', count)).map(({ subprotocol }) => subprotocol),
    })
  })
}

/** Returns the resident memory of a bastion's broker in KiB. */
export function residentOf({ broker }: Pick<Bastion, 'broker'>): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${broker.pid}/status`, 'utf8'))?.[1])
}

/** Waits until no session is running. */
export async function noSession({ broker }: Bastion): Promise<void> {
  await until('the end of all sessions', async () => {
    const running = await broker.must<unknown[]>('GET', '/sessions?status=current')
    return running.length === 0 || undefined
  })
}

/** Opens a session's channel; returns the bastion's number of it. */
export async function openSession(client: RawClient, own = OWN, window?: number): Promise<number> {
  client.send(sessionOpen(own, window))
  const answer = await client.next(MSG.channelOpenConfirmation, MSG.channelOpenFailure)
  return parseChannelOpenConfirmation(answer).sender
}

/** Opens a channel with a running program. */
export async function begin(client: RawClient, command = 'cat', own = OWN, window?: number): Promise<number> {
  const id = await openSession(client, own, window)
  client.send(buildExec(id, true, command))
  await client.next(MSG.channelSuccess)
  return id
}

/** Sends a request that is always refused: its answer proves that all earlier data has been read. */
export async function settle(client: RawClient): Promise<void> {
  client.send(buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: Buffer.alloc(0) }))
  await client.next(MSG.requestFailure)
}

/** The data of a direct-tcpip channel (RFC 4254 7.2); it begins with that of a tcpip-forward. */
export const forward = (host: string, port: number): Buffer =>
  new Writer().string(host).uint32(port).string('127.0.0.1').uint32(1).finish()

/** Creates a device with the service `ssh` at this local port, which ops1 may use as `ops1+root@NAME`. */
export async function provisionTarget(
  { broker }: Bastion,
  name: string,
  port: number,
  subprotocols: readonly string[],
): Promise<void> {
  await broker.must('POST', '/devices', { device_name: name, host: '127.0.0.1' })
  await broker.must('POST', `/devices/${name}/services`, { service_name: 'ssh', protocol: 'SSH', port })
  await broker.must('POST', '/accounts', {
    account_name: 'root',
    device: name,
    domain: 'local',
    credentials: [{ type: 'password', password: 'for the target' }],
  })
  await broker.must('POST', '/targetgroups', {
    group_name: name,
    session: { accounts: [`root@local:${name}:ssh`] },
  })
  await broker.must('POST', '/authorizations', {
    user_group: 'ops1-srv1-users',
    target_group: name,
    authorize_sessions: true,
    subprotocols,
  })
}
