import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelOpenFailure,
  buildChannelRequest,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildExitStatus,
  buildExtendedData,
  buildGlobalRequest,
  buildRequestSuccess,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelOpenConfirmation, parseChannelRequest } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { Keepalive } from '../../proxies/ssh/transport/keepalive.ts'
import type { Transport } from '../../proxies/ssh/transport/transport.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { AUTH, channelOpen, type RawClient, sessionOpen, signInRaw } from './raw.ts'
import { noSession, PEERS, provisionTarget, residentOf } from './setting.ts'
import { type HostileTarget, type Script, startHostileTarget } from './target.ts'

const NOTHING = Buffer.alloc(0)
const LOGIN = 'ops1+root@evil1'
/** The size of the client's window. */
const WINDOW = 5_000

describeWithPeers('targets', PEERS, () => {
  let bastion: Bastion
  let target: HostileTarget
  let script: Script
  let ended = 0
  const clients: RawClient[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    target = await startHostileTarget(bastion.home.folder, { script: () => script })
    await provisionTarget(bastion, 'evil1', target.port, ['SSH_SHELL', 'SSH_REMOTE_COMMAND'])
  })
  afterAll(async () => {
    // An honest target is served as before.
    const { code } = await ssh(bastion.home, bastion.login(), ['true'])
    target.stop()
    await bastion.stop()
    expect(code).toBe(0)
  })
  beforeEach(async () => {
    ended = (await bastion.closedSessions()).length
    target.received.length = 0
  })
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    await noSession(bastion)
  })

  /**
   * Runs the script against a client with one channel; returns all that the client saw once that is closed.
   */
  async function run(attack: Script): Promise<RawClient> {
    script = attack
    const { client, channel } = await arrive()
    client.send(buildExec(channel, true, 'attack'))
    await until('the end of the channel', () => client.closed || client.received.some(isClose) || undefined)
    return client
  }

  async function arrive(): Promise<{ client: RawClient; channel: number }> {
    const client = await signInRaw({
      port: bastion.broker.ports.ssh,
      user: LOGIN,
      password: bastion.password,
    })
    clients.push(client)
    client.send(sessionOpen(5, WINDOW))
    const confirmation = await client.next(MSG.channelOpenConfirmation, MSG.channelOpenFailure)
    return { client, channel: parseChannelOpenConfirmation(confirmation).sender }
  }

  const isClose = ([type]: Buffer): boolean => type === MSG.channelClose
  const text = (client: RawClient): string =>
    client.received
      .filter(([type]) => type === MSG.channelData || type === MSG.channelExtendedData)
      .map((payload) => payload.toString('latin1'))
      .join('')

  /** Ends a program correctly. */
  function finish(leg: Transport, channel: number): void {
    leg.send(buildData(channel, 'the end'))
    leg.send(buildExitStatus(channel, 0))
    leg.send(buildEof(channel))
    leg.send(buildClose(channel))
  }

  /** The numbers and requests that the client of an honest program receives. */
  const HONEST = [
    `${MSG.channelSuccess}`,
    `${MSG.channelData}`,
    '98 exit-status',
    `${MSG.channelEof}`,
    `${MSG.channelClose}`,
  ]
  const shown = (client: RawClient): string[] =>
    client.received
      .filter(([type]) => type !== MSG.channelWindowAdjust && type !== AUTH.disconnect)
      .map((payload) =>
        payload[0] === MSG.channelRequest ? `98 ${parseChannelRequest(payload).type}` : String(payload[0]),
      )

  test('an honest program, to compare with', async () => {
    expect(shown(await run(finish))).toEqual(HONEST)
  })

  describe('dropped, and the session goes on', () => {
    const asked: [string, Buffer, number][] = [
      [
        'a channel forwarded-tcpip',
        channelOpen('forwarded-tcpip', 1, 1000, Buffer.from('x')),
        MSG.channelOpenFailure,
      ],
      ['a channel x11', channelOpen('x11', 1, 1000), MSG.channelOpenFailure],
      [
        'a channel auth-agent@openssh.com',
        channelOpen('auth-agent@openssh.com', 1, 1000),
        MSG.channelOpenFailure,
      ],
      ['a channel session', channelOpen('session', 1, 1000), MSG.channelOpenFailure],
      ['a channel direct-tcpip', channelOpen('direct-tcpip', 1, 1000), MSG.channelOpenFailure],
      [
        'a global request',
        buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: NOTHING }),
        MSG.requestFailure,
      ],
      [
        'a sign of life',
        buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: NOTHING }),
        MSG.requestFailure,
      ],
    ]

    test.each(asked)('%s: the target is refused it', async (_, message, answer) => {
      const client = await run((leg, channel) => {
        leg.send(message)
        setTimeout(() => finish(leg, channel), 100)
      })
      expect(shown(client)).toEqual(HONEST)
      expect(target.received.map(([type]) => type)).toContain(answer)
    })

    test('channels that it opens are told to the audit', async () => {
      const before = (await bastion.events('channel.denied')).length
      await run((leg, channel) => {
        for (const type of ['x11', 'auth-agent@openssh.com']) leg.send(channelOpen(type, 1, 1000))
        finish(leg, channel)
      })
      const found = (await bastion.events('channel.denied', before + 2)).slice(before)
      expect(found.map(({ subprotocol }) => subprotocol)).toEqual([
        'channel x11 from the target',
        'channel auth-agent@openssh.com from the target',
      ])
    })

    const silent: [string, (channel: number) => Buffer][] = [
      [
        'hostkeys-00',
        () =>
          buildGlobalRequest({ name: 'hostkeys-00@openssh.com', wantReply: false, data: Buffer.alloc(500) }),
      ],
      ['an unknown message', () => Buffer.from([192, 1, 2, 3])],
      ['a message of the sign-in', () => Buffer.from([AUTH.success])],
      ['a banner', () => new Writer().byte(AUTH.banner).string('\x1b]0;title\x07').string('').finish()],
      [
        'DEBUG to be displayed',
        () => new Writer().byte(AUTH.debug).boolean(true).string('read me').string('').finish(),
      ],
      ['an answer to a global request', () => buildRequestSuccess(Buffer.alloc(100))],
      [
        'an unknown channel request',
        (channel) => buildChannelRequest(channel, 'x11-req', false, Buffer.alloc(100)),
      ],
      ['a request to run something', (channel) => buildExec(channel, false, 'id')],
      ['a terminal for the client', (channel) => buildChannelRequest(channel, 'pty-req', false)],
      [
        'a variable',
        (channel) =>
          buildChannelRequest(channel, 'env', false, new Writer().string('A').string('b').finish()),
      ],
    ]

    test.each(silent)('%s', async (_, message) => {
      const client = await run((leg, channel) => {
        leg.send(message(channel))
        finish(leg, channel)
      })
      expect(shown(client)).toEqual(HONEST)
    })

    test('a channel request that wants an answer gets a refusal', async () => {
      const client = await run((leg, channel) => {
        leg.send(buildChannelRequest(channel, 'auth-agent-req@openssh.com', true))
        setTimeout(() => finish(leg, channel), 100)
      })
      expect(shown(client)).toEqual(HONEST)
      expect(target.received.map(([type]) => type)).toContain(MSG.channelFailure)
    })

    test('whatever comes after the end of the channel', async () => {
      const client = await run((leg, channel) => {
        finish(leg, channel)
        leg.send(buildData(channel, 'and more'))
      })
      expect(text(client)).not.toMatch(/and more/)
    })
  })

  describe('ends the session, and the user reads it', () => {
    const breaches: [string, (channel: number) => Buffer][] = [
      ['data for another channel', (channel) => buildData(channel + 1, 'x')],
      ['an end of another channel', (channel) => buildEof(channel + 1)],
      ['window for another channel', (channel) => buildWindowAdjust(channel + 1, 1)],
      ['a request for another channel', (channel) => buildExitStatus(channel + 1, 0)],
      ['a message for the channel 2^32 - 1', () => buildClose(0xffffffff)],
      ['data beyond the window', (channel) => buildData(channel, Buffer.alloc(WINDOW + 1))],
      ['error output beyond the window', (channel) => buildExtendedData(channel, Buffer.alloc(WINDOW + 1))],
      ['a window over 2^32', (channel) => buildWindowAdjust(channel, 0xffffffff)],
      ['an answer to no request', (channel) => buildChannelSuccess(channel)],
      ['a refusal of no request', (channel) => buildChannelFailure(channel)],
      [
        'a second confirmation',
        (recipient) => buildChannelOpenConfirmation({ recipient, sender: 1, window: 1, maxPacket: 1_000 }),
      ],
      [
        'a confirmation of no channel',
        (channel) =>
          buildChannelOpenConfirmation({ recipient: channel + 1, sender: 1, window: 1, maxPacket: 1_000 }),
      ],
      ['a refusal of the open channel', (channel) => buildChannelOpenFailure(channel, 1, 'no')],
      [
        'data whose length is a lie',
        (channel) =>
          new Writer().byte(MSG.channelData).uint32(channel).uint32(1_000).raw(Buffer.from('x')).finish(),
      ],
      [
        'data of 4 GB',
        (channel) => new Writer().byte(MSG.channelData).uint32(channel).uint32(0xffffffff).finish(),
      ],
      ['a message without a channel', () => Buffer.from([MSG.channelData])],
      [
        'an exit status that is cut short',
        (channel) => buildChannelRequest(channel, 'exit-status', false, Buffer.from([1])),
      ],
      [
        'a channel request with a name of 30 KB',
        (channel) => buildChannelRequest(channel, 'x'.repeat(30_000), true),
      ],
      ['a channel with a name of 30 KB', () => channelOpen('x'.repeat(30_000), 1)],
      [
        'a global request with a name of 30 KB',
        () => buildGlobalRequest({ name: 'x'.repeat(30_000), wantReply: true, data: NOTHING }),
      ],
      [
        'an unknown message of the connection layer',
        (channel) => new Writer().byte(120).uint32(channel).finish(),
      ],
    ]

    test.each(breaches)('%s', async (_, message) => {
      const client = await run((leg, channel) => {
        leg.send(message(channel))
        leg.send(buildData(channel, 'unseen'))
      })
      expect(text(client)).toMatch(/sallyport: the target broke the SSH protocol/)
      expect(text(client)).not.toMatch(/unseen/)
      const row = (await bastion.closedSessions(ended + 1)).at(-1)
      expect(row).toMatchObject({ result: 'failure', recording: { state: 'sealed' } })
      expect(row?.reason).toMatch(/^the target broke the SSH protocol/)
    })

    test('nothing more than a key exchange that is not one', async () => {
      const client = await run((leg) => leg.send(Buffer.from([20, 1, 2, 3])))
      expect(client.received.map(([type]) => type)).toContain(MSG.channelClose)
      const row = (await bastion.closedSessions(ended + 1)).at(-1)
      expect(row?.result).toBe('failure')
    })

    test('channels without end', async () => {
      const client = await run((leg) => {
        for (let n = 0; n < 5_000; n++) leg.send(channelOpen('x11', n, 1))
      })
      expect(text(client)).toMatch(/sallyport: too many requests that are not allowed/)
      const row = (await bastion.closedSessions(ended + 1)).at(-1)
      expect(row?.result).toBe('failure')
    })
  })

  test('a peer that is not read is still asked for a sign of life, and not given up', async () => {
    let asked = 0
    let givenUp = false
    const paused = { paused: true, takeHeard: () => false, refreshKeys: () => undefined, send: () => asked++ }
    const onSilent = (): void => {
      givenUp = true
    }
    const keepalive = new Keepalive([{ transport: paused as unknown as Transport, onSilent }], 5)
    await until('ten questions', () => asked > 10 || undefined)
    keepalive.stop()
    expect(givenUp).toBe(false)
  })

  describe('memory', () => {
    /**
     * Sessions whose legs block each other do not notice that a client has disconnected: an administrator
     * ends them.
     */
    afterEach(async () => {
      const { broker } = bastion
      for (const { id } of await broker.must<{ id: string }[]>('GET', '/sessions?status=current')) {
        await broker.must('POST', `/sessions/${id}/kill`, { reason: 'stuck' })
      }
      await bastion.closedSessions(ended + 1)
    })

    const resident = (): number => residentOf(bastion)

    test('a target that asks without reading the answers', async () => {
      let asked = 0
      let isOver = false
      script = (leg) => {
        leg.paused = true
        const request = buildGlobalRequest({ name: 'x', wantReply: true, data: NOTHING })
        const ask = (): void => {
          for (let n = 0; n < 2_000; n++) leg.send(request)
          asked += 2_000
          if (asked < 300_000 && !leg.closed && !isOver) setImmediate(ask)
        }
        ask()
      }
      const { client, channel } = await arrive()
      const before = resident()
      client.send(buildExec(channel, true, 'attack'))
      let peak = 0
      await until('all questions', async () => {
        peak = Math.max(peak, resident())
        return asked >= 300_000 || undefined
      })
      await sleep(500)
      peak = Math.max(peak, resident())
      isOver = true
      expect(peak - before).toBeLessThan(100_000)
    })

    test.each([
      ['IGNORE', Buffer.of(AUTH.ignore)],
      ['DEBUG', Buffer.of(AUTH.debug, 1)],
      ['PING', Buffer.of(192)],
    ])('a target that says 200 MB of %s', async (_, head) => {
      const message = Buffer.concat([head, new Writer().string(Buffer.alloc(30_000)).string('').finish()])
      let said = 0
      script = (leg, channel) => {
        const say = (): void => {
          for (; said < 9_000 && !leg.congested && !leg.closed; said++) leg.send(message)
          if (said < 9_000) setImmediate(say)
          else finish(leg, channel)
        }
        say()
      }
      const { client, channel } = await arrive()
      client.send(buildExec(channel, true, 'attack'))
      // The first flood makes the heap grow, however little of it is stored.
      await until('the first 60 MB', () => said > 2_000 || undefined)
      const before = resident()
      let peak = 0
      await until('its end', () => {
        peak = Math.max(peak, resident())
        return client.received.some(isClose) || undefined
      })
      expect(said).toBe(9_000)
      expect(peak - before).toBeLessThan(100_000)
      expect(shown(client)).toEqual(HONEST)
    })

    test('a target that does not answer, and a client that goes on asking', async () => {
      script = () => undefined
      const { client, channel } = await arrive()
      client.send(buildExec(channel, true, 'attack'))
      await client.next(MSG.channelSuccess)
      const before = resident()
      let peak = 0
      const request = buildChannelRequest(channel, 'unknown@example.com', true, Buffer.alloc(20))
      const passed = buildChannelRequest(channel, 'signal', true, new Writer().string('USR1').finish())
      client.send(passed)
      for (let n = 0; n < 300_000 && !client.closed; n++) {
        client.send(n % 2 === 0 ? request : passed)
        if (n % 1_000 !== 0) continue
        await new Promise((resolve) => setImmediate(resolve))
        peak = Math.max(peak, resident())
      }
      expect(client.closed).toBe(true)
      expect(peak - before).toBeLessThan(100_000)
    })
  })
})
