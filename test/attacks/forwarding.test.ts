/** Forwarding over the wire: a client and a target that follow no rule, on both sides of a real bastion. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MAX_FORWARDED_CHANNELS } from '../../proxies/ssh/channel/limits.ts'
import {
  buildChannelOpenConfirmation,
  buildChannelOpenFailure,
  buildGlobalRequest,
  buildRequestSuccess,
} from '../../proxies/ssh/codec/build.ts'
import { buildAddress, buildConnection } from '../../proxies/ssh/codec/forwarding.ts'
import {
  MSG,
  parseChannelOpen,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
} from '../../proxies/ssh/codec/messages.ts'
import { RIGHTS, type Right } from '../../src/model/rights.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { CASES, type Case, isGranted, POLICY } from '../proxies/ssh/policy/decision-cases.ts'
import type { Leg, Peers } from '../proxies/ssh/relay-world.ts'
import { until } from '../until.ts'
import { AUTH, channelOpen, type RawClient, sessionOpen, signInRaw } from './raw.ts'
import { noSession, PEERS, residentOf } from './setting.ts'
import { type HostileTarget, startHostileTarget } from './target.ts'

const LOGIN = 'ops1+root@evil1+ssh'
const NOTHING = Buffer.alloc(0)
/** Milliseconds to wait for a message to arrive: longer only if one should have, on a busy machine. */
const PASSAGE_MS = [60, 400, 2_000]
const TO = buildConnection({ to: { host: 'db1', port: 5432 }, from: { host: '127.0.0.1', port: 1 } })
const BOUND = { host: 'localhost', port: 8080 }
const bind = buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: buildAddress(BOUND) })
const accepted = buildConnection({ to: BOUND, from: { host: '127.0.0.1', port: 1 } })

/** The metadata service, in the notations of clients. */
const METADATA = [
  '169.254.169.254',
  '::ffff:a9fe:a9fe',
  '0xa9fea9fe',
  '0251.254.43518',
  'metadata.google.internal',
  'INSTANCE-DATA.',
  'fd00:ec2::254',
  'fd20:ce::254',
  '100.100.100.200',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::169.254.169.254',
  '2002:a9fe:a9fe::1',
  'fe80::a9fe:a9fe%eth0',
  '169-254-169-254.nip.io',
]

describeWithPeers('forwarding', PEERS, () => {
  let bastion: Bastion
  let target: HostileTarget
  const clients: RawClient[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    target = await startHostileTarget(bastion.home.folder)
    const { must } = bastion.broker
    await must('POST', '/devices', { device_name: 'evil1', host: '127.0.0.1' })
    await must('POST', '/devices/evil1/services', { service_name: 'ssh', protocol: 'SSH', port: target.port })
    await must('POST', '/devices/evil1/services', {
      service_name: 'gone',
      protocol: 'SSH',
      port: await freePort(),
    })
    await must('POST', '/accounts', {
      account_name: 'root',
      device: 'evil1',
      domain: 'local',
      credentials: [{ type: 'password', password: 'for the target' }],
    })
    await must('POST', '/targetgroups', {
      group_name: 'evil1',
      session: { accounts: ['root@local:evil1:ssh', 'root@local:evil1:gone'] },
    })
    await must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: 'evil1',
      authorize_sessions: true,
      subprotocols: RIGHTS,
    })
  })
  afterAll(async () => {
    const { code } = await ssh(bastion.home, bastion.login(), ['true'])
    target.stop()
    await bastion.stop()
    expect(code).toBe(0)
  })
  beforeEach(() => {
    target.received.length = 0
  })
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    await noSession(bastion)
  })

  /** Limits the session's rights: the service lists these. */
  const allow = (rights: readonly Right[]) =>
    bastion.broker.must('PUT', '/devices/evil1/services/ssh', {
      subprotocols: rights.length === 0 ? ['SFTP_SESSION'] : rights,
    })

  async function arrive(user = LOGIN): Promise<RawClient> {
    const client = await signInRaw({ port: bastion.broker.ports.ssh, user, password: bastion.password })
    clients.push(client)
    return client
  }

  /** Connects a client whose session with the target is open. */
  async function connected(): Promise<RawClient> {
    const client = await arrive()
    client.send(sessionOpen(3))
    const { sender } = await opened(target.received)
    target.leg!.send(
      buildChannelOpenConfirmation({ recipient: sender, sender: 40, window: 100_000, maxPacket: 32_768 }),
    )
    await client.next(MSG.channelOpenConfirmation)
    return client
  }

  /** Removes the next CHANNEL_OPEN from a list of messages and returns it. */
  const opened = (messages: Buffer[]) =>
    until('a channel', () => {
      const [found] = take(messages, MSG.channelOpen)
      return found && parseChannelOpen(found)
    })

  async function bound(): Promise<RawClient> {
    const client = await connected()
    client.send(bind)
    await until('the bind', () => target.received.some(([type]) => type === MSG.globalRequest) || undefined)
    target.leg!.send(buildRequestSuccess())
    await client.next(MSG.requestSuccess)
    return client
  }

  describe('what is granted passes, and nothing else', () => {
    const sets: [string, readonly Right[]][] = [
      ['all rights', RIGHTS],
      ['connections from the client', ['SSH_DIRECT_TCPIP', 'SSH_DIRECT_UNIXSOCK', 'SSH_SHELL']],
      ['connections to the client', ['SSH_REVERSE_TCPIP', 'SSH_X11', 'SSH_REMOTE_COMMAND']],
    ]
    const named = CASES.filter(({ title }) => !title.includes('a message'))

    beforeAll(() => bastion.broker.must('PUT', '/connectionpolicies/SSH', POLICY))
    afterAll(() => allow(RIGHTS))

    test.each(sets)('with %s', { timeout: 300_000 }, async (_, rights) => {
      await allow(rights)
      // One at a time: sessions of one target cannot be distinguished.
      for (const one of named) {
        const expected = isGranted(one.needs, rights)
        let passed = false
        for (const wait of expected ? PASSAGE_MS : PASSAGE_MS.slice(0, 1)) passed ||= await attempt(one, wait)
        expect({ title: one.title, passed }).toEqual({ title: one.title, passed: expected })
      }
    })

    async function attempt({ passes }: Case, wait: number): Promise<boolean> {
      target.received.length = 0
      const client = await connected()
      const passed = await passes(wired(client, wait))
      client.destroy()
      clients.length = 0
      return passed
    }

    function wired(client: RawClient, wait: number): Peers {
      const legOf = (sent: Buffer[], send: (message: Uint8Array) => void): Leg => ({
        sent,
        isSilent: false,
        say: (...messages) => messages.forEach((message) => void send(message)),
        take: (type) => take(sent, type),
      })
      return {
        client: legOf(client.received, (message) => client.send(message)),
        target: legOf(target.received, (message) => target.leg!.send(message)),
        settle: () => sleep(wait),
        openSession: async () => {
          client.send(sessionOpen(4))
          const { sender } = await opened(target.received)
          const confirmed = { recipient: sender, sender: 41, window: 100_000, maxPacket: 32_768 }
          target.leg!.send(buildChannelOpenConfirmation(confirmed))
          return parseChannelOpenConfirmation(await client.next(MSG.channelOpenConfirmation)).sender
        },
      }
    }
  })

  describe('while there is no target yet', () => {
    test.each([
      ['a channel', channelOpen('direct-tcpip', 9, 1000, TO), MSG.channelOpenFailure],
      ['a listener', bind, MSG.requestFailure],
    ])('%s waits for it, and is refused when it cannot be reached', async (_, message, answer) => {
      const client = await arrive('ops1+root@evil1+gone')
      client.send(message)
      const refused = await client.next(answer)
      if (answer !== MSG.channelOpenFailure) return
      const { recipient, description } = parseChannelOpenFailure(refused)
      expect(recipient).toBe(9)
      expect(Buffer.from(description).toString()).toMatch(/sallyport: .*evil1/)
    })

    test('what was asked for reaches it in its order, and the answers too', async () => {
      const client = await arrive()
      const keepalive = buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: NOTHING })
      client.send(bind, keepalive, channelOpen('direct-tcpip', 9, 1000, TO))
      await until('both', () => target.received.length >= 2 || undefined)
      expect(target.received.map(([type]) => type).sort()).toEqual([MSG.globalRequest, MSG.channelOpen])
      // besides the bastion's announcement of its own host keys
      const answers = () => client.received.map(([type]) => type).filter((type) => type !== MSG.globalRequest)
      expect(answers()).toEqual([])
      target.leg!.send(buildRequestSuccess())
      await until('two answers', () => answers().length >= 2 || undefined)
      expect(answers()).toEqual([MSG.requestSuccess, MSG.requestFailure])
    })

    test('messages without end are no memory', async () => {
      const client = await arrive()
      const before = residentOf(bastion)
      for (let n = 0; n < 50_000 && !client.closed; n++) {
        client.send(bind)
        if (n % 500 === 0) await sleep(0)
      }
      await client.untilClosed()
      expect(residentOf(bastion) - before).toBeLessThan(100_000)
    })
  })

  describe('a hostile client', () => {
    test('with a host name of 64 KiB ends its own connection only', async () => {
      const other = await connected()
      const client = await arrive()
      const host = 'x'.repeat(64 * 1024)
      const data = buildConnection({ to: { host, port: 80 }, from: { host: '127.0.0.1', port: 1 } })
      client.send(channelOpen('direct-tcpip', 9, 1000, data))
      await client.untilClosed()
      other.send(bind)
      await until('the bind', () => target.received.some(([type]) => type === MSG.globalRequest) || undefined)
    })

    test.each([
      ['a port over 65535', 'db1', 65_536],
      ['the port 2^32 - 1', 'db1', 0xffffffff],
      ['a NUL in the host', 'db1\0.example.com', 80],
      ['a host of 30,000 bytes', 'x'.repeat(30_000), 80],
    ])('with %s is refused, and goes on', async (_, host, port) => {
      const client = await connected()
      target.received.length = 0
      const data = buildConnection({ to: { host, port }, from: { host: '127.0.0.1', port: 1 } })
      client.send(channelOpen('direct-tcpip', 9, 1000, data), channelOpen('direct-tcpip', 10, 1000, TO))
      expect(parseChannelOpenFailure(await client.next(MSG.channelOpenFailure)).recipient).toBe(9)
      expect((await opened(target.received)).typeData).toEqual(TO)
    })
  })

  describe('the metadata service of a cloud', () => {
    test.each(METADATA)(
      '%s is not dialled by the target, and that it was asked for is an event',
      async (host) => {
        const client = await connected()
        const before = (await bastion.events('channel.denied')).length
        target.received.length = 0
        const data = buildConnection({ to: { host, port: 80 }, from: { host: '127.0.0.1', port: 1 } })
        client.send(channelOpen('direct-tcpip', 9, 1000, data), channelOpen('direct-tcpip', 10, 1000, TO))
        expect(parseChannelOpenFailure(await client.next(MSG.channelOpenFailure)).recipient).toBe(9)
        expect((await opened(target.received)).typeData).toEqual(TO)
        const [event] = (await bastion.events('channel.denied', before + 1)).slice(before)
        expect(JSON.stringify(event)).toContain(host)
      },
    )
  })

  describe('a hostile target', () => {
    test('that takes messages of nothing: the session ends, and the broker is there', async () => {
      const client = await connected()
      const closed = (await bastion.closedSessions()).length
      client.send(channelOpen('direct-tcpip', 9, 1000, TO))
      const { sender } = await opened(target.received)
      const answer = { recipient: sender, sender: 41, window: 100_000, maxPacket: 0 }
      target.leg!.send(buildChannelOpenConfirmation(answer))
      const row = (await bastion.closedSessions(closed + 1)).at(-1)
      expect(row?.reason).toMatch(/^the target broke the SSH protocol: a maximum packet size of at least 256/)
    })

    test('that puts escape sequences into its refusal: they are shown, and not obeyed', async () => {
      const client = await connected()
      client.send(channelOpen('direct-tcpip', 9, 1000, TO))
      const { sender } = await opened(target.received)
      target.leg!.send(buildChannelOpenFailure(sender, 2, `\x1b]0;title\x07no${'!'.repeat(5_000)}`))
      const { description } = parseChannelOpenFailure(await client.next(MSG.channelOpenFailure))
      const text = Buffer.from(description).toString()
      expect(text).toMatch(/^\\u001b\]0;title\\u0007no!+…$/)
      expect(text.length).toBeLessThan(1_000)
    })

    test.each([
      'forwarded-tcpip',
      'x11',
      'auth-agent@openssh.com',
      'forwarded-streamlocal@openssh.com',
      'session',
    ])(
      'that opens 10,000 channels %s that nobody asked for is cut, and the client sees none',
      async (type) => {
        const before = residentOf(bastion)
        const data =
          type === 'x11' ? buildAddress(BOUND) : type === 'auth-agent@openssh.com' ? NOTHING : accepted
        const client = await connected()
        const closed = (await bastion.closedSessions()).length
        for (let n = 0; n < 10_000; n++) {
          target.leg!.send(channelOpen(type, n, 1, type.includes('streamlocal') ? socketData : data))
          if (n % 500 === 0) await sleep(0)
        }
        const row = (await bastion.closedSessions(closed + 1)).at(-1)
        expect(row).toMatchObject({ result: 'failure', reason: 'too many requests that are not allowed' })
        expect(client.received.map(([first]) => first)).not.toContain(MSG.channelOpen)
        expect(residentOf(bastion) - before).toBeLessThan(100_000)
      },
    )

    test('that opens 10,000 that were asked for: as many as there may be are offered, the rest is refused', async () => {
      const before = residentOf(bastion)
      const client = await bound()
      for (let n = 0; n < 10_000; n++) {
        target.leg!.send(channelOpen('forwarded-tcpip', n, 1000, accepted))
        if (n % 500 === 0) await sleep(0)
      }
      const refused = () => target.received.filter(([type]) => type === MSG.channelOpenFailure).length
      await until('all answers', () => refused() >= 10_000 - MAX_FORWARDED_CHANNELS || undefined)
      const offered = () => client.received.filter(([type]) => type === MSG.channelOpen).length
      await until('all that are offered', () => offered() >= MAX_FORWARDED_CHANNELS || undefined)
      expect([offered(), refused()]).toEqual([MAX_FORWARDED_CHANNELS, 10_000 - MAX_FORWARDED_CHANNELS])
      expect(client.received.map(([type]) => type)).not.toContain(AUTH.disconnect)
      expect(residentOf(bastion) - before).toBeLessThan(100_000)
    })
  })

  /** string path, string reserved: forwarded-streamlocal@openssh.com. */
  const socketData = Buffer.from('\0\0\0\x02/x\0\0\0\0', 'latin1')

  function take(messages: Buffer[], type: number): Buffer[] {
    const taken = messages.filter(([first]) => first === type)
    const rest = messages.filter(([first]) => first !== type)
    messages.splice(0, messages.length, ...rest)
    return taken
  }
})
