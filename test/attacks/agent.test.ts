/** A client whose agent sends malformed or false messages, while the bastion signs in with it. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AGENT, MAX_AGENT_MESSAGE } from '../../proxies/ssh/codec/agent.ts'
import {
  buildChannelOpenConfirmation,
  buildChannelOpenFailure,
  buildChannelRequest,
  buildClose,
  buildData,
  buildExec,
} from '../../proxies/ssh/codec/build.ts'
import { extendedDataOf, MSG, parseChannelOpen, recipientOf } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import type { Bastion } from '../e2e/bastion.ts'
import { channelOpen, type RawClient } from './raw.ts'
import { describeAttacks, forward, OWN, openSession, settle } from './setting.ts'

const AGENT_CHANNEL = 30

/** Makes an agent's message, with its length before it. */
const said = (type: number, body: Uint8Array = Buffer.alloc(0)) =>
  new Writer().string(new Writer().byte(type).raw(body).finish()).finish()

/** Makes a list of random Ed25519 public keys. */
function listOf(count: number): Buffer {
  const list = new Writer().uint32(count)
  for (let index = 0; index < count; index++) {
    list.string(new Writer().string('ssh-ed25519').string(randomBytes(32)).finish()).string('comment')
  }
  return said(AGENT.identitiesAnswer, list.finish())
}

describeAttacks('an agent', (setting) => {
  let bastion: Bastion
  beforeAll(async () => {
    bastion = setting.bastion
    await bastion.broker.must('POST', '/connectionpolicies', {
      policy_name: 'own-keys',
      protocol: 'SSH',
      authentication_methods: ['PUBKEY_AGENT_FORWARDING'],
    })
    await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'own-keys' })
  })
  afterAll(() => bastion.broker.must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'SSH' }))

  /** Connects a client that forwards its agent and has been requested to open a channel to it. */
  async function asked(): Promise<{ client: RawClient; held: number; agent: number }> {
    const client = await setting.arrive()
    const held = await openSession(client)
    client.send(buildChannelRequest(held, 'auth-agent-req@openssh.com', true))
    const open = parseChannelOpen(await client.next(MSG.channelOpen))
    expect(open.type).toBe('auth-agent@openssh.com')
    return { client, held, agent: open.sender }
  }

  /** Connects the same, with the channel confirmed and the keys requested. */
  async function answering(): Promise<{ client: RawClient; held: number; agent: number }> {
    const all = await asked()
    all.client.send(
      buildChannelOpenConfirmation({
        recipient: all.agent,
        sender: AGENT_CHANNEL,
        window: 1_000_000,
        maxPacket: 32_768,
      }),
    )
    await all.client.next(MSG.channelData)
    return all
  }

  /** Returns the error that the user reads if the command could not be run. */
  async function told(client: RawClient, held: number): Promise<string> {
    client.send(buildExec(held, true, 'true'))
    for (;;) {
      const payload = await client.next(MSG.channelExtendedData)
      if (recipientOf(payload) === OWN) return Buffer.from(extendedDataOf(payload)).toString()
    }
  }

  test('that cannot be reached', async () => {
    const { client, held, agent } = await asked()
    client.send(buildChannelOpenFailure(agent, 2, 'no'))
    expect(await told(client, held)).toContain('the client refused to open a channel to its agent')
  })

  test.each<[string, Buffer, string]>([
    ['names a message of 4 GiB', Buffer.from('ffffffff0c', 'hex'), `1 to ${MAX_AGENT_MESSAGE} bytes`],
    ['names an empty message', Buffer.alloc(4), `1 to ${MAX_AGENT_MESSAGE} bytes`],
    [
      'names a list of 2^32 - 1 keys',
      said(AGENT.identitiesAnswer, Buffer.alloc(4, 0xff)),
      'at most 2048 keys',
    ],
    ['lists fewer keys than it says', said(AGENT.identitiesAnswer, Buffer.from('00000002', 'hex')), 'breaks'],
    ['answers another question', said(AGENT.signResponse, Buffer.alloc(4)), 'a list of keys was expected'],
    ['answers twice at once', Buffer.concat([listOf(0), listOf(0)]), 'more than it was asked for'],
    ['has no keys', listOf(0), 'holds no key'],
    ['is locked', said(AGENT.failure), 'holds no key'],
  ])('that %s', async (_, answer, expected) => {
    const { client, held, agent } = await answering()
    client.send(buildData(agent, answer))
    expect(await told(client, held)).toContain(expected)
  })

  test('that breaks off', async () => {
    const { client, held, agent } = await answering()
    client.send(buildClose(agent))
    expect(await told(client, held)).toContain('the agent broke off')
  })

  test('that has more keys than the target takes tries: the user reads it', async () => {
    const { client, held, agent } = await answering()
    client.send(buildData(agent, listOf(100)))
    expect(await told(client, held)).toContain('keys of your agent: it may take no more tries')
    const offered = bastion.sshd.log().match(/Failed publickey/g)
    expect(offered?.length).toBeLessThan(20)
  })

  describe('on a connection that breaks SSH, ends it', () => {
    test('by data before a program', async () => {
      const { client, held } = await answering()
      client.send(buildData(held, 'x'))
      await client.untilClosed()
    })

    test('by a second confirmation', async () => {
      const { client, agent } = await answering()
      const confirmation = { recipient: agent, sender: 31, window: 1, maxPacket: 1 }
      client.send(buildChannelOpenConfirmation(confirmation))
      await client.untilClosed()
    })

    test('by data before the confirmation', async () => {
      const { client, agent } = await asked()
      client.send(buildData(agent, listOf(1)))
      await client.untilClosed()
    })

    test('by preparations without end', async () => {
      const { client, held } = await answering()
      const request = buildChannelRequest(held, 'window-change', false, Buffer.alloc(30_000))
      for (let index = 0; index < 20; index++) client.send(request)
      await client.untilClosed()
    })
  })

  test('that is forwarded on a channel behind another kind', async () => {
    const client = await setting.arrive()
    client.send(channelOpen('direct-tcpip', 9, 1000, forward('127.0.0.1', bastion.sshd.port)))
    await bastion.events('session.open', 1)
    const held = await openSession(client)
    client.send(buildChannelRequest(held, 'auth-agent-req@openssh.com', false))
    const { sender } = parseChannelOpen(await client.next(MSG.channelOpen))
    client.send(buildChannelOpenFailure(sender, 2, 'no'))
    expect(recipientOf(await client.next(MSG.channelOpenFailure))).toBe(9)
    expect(await told(client, held)).toContain('agent')
  })

  test('whose channel is closed by a client that does not wait', async () => {
    const { client, held, agent } = await answering()
    client.send(buildClose(held))
    client.send(buildData(agent, listOf(0)))
    await client.next(MSG.channelClose)
    await settle(client)
  })

  test('asked for, but never by a client that has not said that it forwards one', async () => {
    const client = await setting.arrive()
    const held = await openSession(client)
    expect(await told(client, held)).toContain('ssh -A')
    expect(client.received.some((payload) => payload[0] === MSG.channelOpen)).toBe(false)
  })
})
