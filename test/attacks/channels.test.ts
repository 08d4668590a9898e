import { beforeAll, describe, expect, test } from 'vitest'
import {
  buildChannelOpen,
  buildChannelOpenConfirmation,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEnv,
  buildEof,
  buildExec,
  buildExtendedData,
  buildPtyRequest,
  buildRequestSuccess,
  buildShell,
  buildSubsystem,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import type { Bastion } from '../e2e/bastion.ts'
import { until } from '../until.ts'

import { begin, describeAttacks, OWN, openSession, settle } from './setting.ts'

const NOTHING = Buffer.alloc(0)

describeAttacks('channels', (setting) => {
  const { arrive, resident } = setting
  let bastion: Bastion
  beforeAll(() => {
    bastion = setting.bastion
  })

  describe('windows', () => {
    test('more data than the window allows ends the session, and is no memory', async () => {
      const client = await arrive()
      const id = await begin(client, 'sleep 100')
      const before = resident()
      const data = buildData(id, Buffer.alloc(32_000))
      for (let n = 0; n < 2_000 && !client.closed; n++) {
        client.send(data)
        if (n % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      await client.untilClosed()
      expect(resident() - before).toBeLessThan(100_000)
      const rows = await bastion.closedSessions()
      expect(rows.at(-1)).toMatchObject({ result: 'failure', reason: expect.stringMatching(/window/) })
    })

    test('a packet that was changed on its way ends the session, and the audit log says so', async () => {
      const before = await bastion.closedSessions()
      const client = await arrive()
      await begin(client, 'sleep 100')
      client.socket.write(Buffer.alloc(256, 0x10))
      await client.untilClosed()
      const rows = await bastion.closedSessions(before.length + 1)
      expect(rows.at(-1)).toMatchObject({
        result: 'failure',
        reason: expect.stringMatching(/^the client broke the SSH protocol: a packet/),
      })
    })

    test('a window that is widened over 2^32 ends the session', async () => {
      const client = await arrive()
      const id = await begin(client, 'cat', OWN, 0xffff0000)
      client.send(buildWindowAdjust(id, 0xffffffff))
      await client.untilClosed()
      const rows = await bastion.closedSessions()
      expect(rows.at(-1)).toMatchObject({ result: 'failure', reason: expect.stringMatching(/window/) })
    })

    test('extended data from a client ends the session', async () => {
      const client = await arrive()
      const id = await begin(client)
      client.send(buildExtendedData(id, 'x'))
      await client.untilClosed()
    })

    test.each([0, 1, 255])(
      'messages of at most %d bytes end the session, and not the broker',
      async (maxPacket) => {
        const client = await arrive()
        const typeData = NOTHING
        client.send(buildChannelOpen({ type: 'session', sender: OWN, window: 1_000, maxPacket, typeData }))
        await client.untilClosed()
      },
    )

    test('a client that takes nothing gets nothing', async () => {
      const client = await arrive()
      await begin(client, 'yes', OWN, 0)
      await settle(client)
      expect(client.received.filter(([type]) => type === MSG.channelData)).toEqual([])
    })
  })

  describe('channels of nobody', () => {
    const messages: [string, (id: number) => Buffer][] = [
      ['data', (id) => buildData(id, 'x')],
      ['EOF', (id) => buildEof(id)],
      ['close', (id) => buildClose(id)],
      ['a command', (id) => buildExec(id, true, 'touch /tmp/owned')],
      ['window', (id) => buildWindowAdjust(id, 1)],
      ['an answer', (id) => buildChannelSuccess(id)],
    ]

    test.each(messages)('%s for a channel that does not exist reaches none', async (_, message) => {
      const client = await arrive()
      const id = await begin(client)
      for (const other of [id + 1, 0xffffffff, 0x80000000]) client.send(message(other))
      if (!client.closed) {
        await settle(client)
        client.send(buildData(id, 'still'), buildEof(id))
        expect((await client.next(MSG.channelData)).subarray(9).toString()).toBe('still')
      }
    })

    test.each([
      [
        'confirmation',
        buildChannelOpenConfirmation({ recipient: 0, sender: 0, window: 1, maxPacket: 1_000 }),
      ],
      [
        'failure',
        new Writer().byte(MSG.channelOpenFailure).uint32(0).uint32(1).string('').string('').finish(),
      ],
    ])('the %s of a channel that nobody opened ends the session', async (_, message) => {
      const client = await arrive()
      await begin(client)
      client.send(message)
      await client.untilClosed()
    })

    test('answers to global requests that nobody made change nothing', async () => {
      const client = await arrive()
      const id = await begin(client)
      client.send(buildRequestSuccess(), buildRequestSuccess(Buffer.alloc(1000)))
      client.send(buildData(id, 'on'), buildEof(id))
      expect((await client.next(MSG.channelData)).subarray(9).toString()).toBe('on')
    })
  })

  describe('one channel', () => {
    test('has one main request: a second command, shell or subsystem is refused and does not run', async () => {
      const client = await arrive()
      const id = await begin(client)
      const mark = `${bastion.home.folder}/second`
      for (const second of [
        buildExec(id, true, `touch ${mark}`),
        buildShell(id, true),
        buildSubsystem(id, true, 'sftp'),
        buildPtyRequest(id, true, {
          terminal: 'x',
          columns: 1,
          rows: 1,
          widthPixels: 0,
          heightPixels: 0,
          modes: NOTHING,
        }),
      ]) {
        client.send(second)
        expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelFailure)
      }
      client.send(buildData(id, 'x'), buildEof(id))
      await client.next(MSG.channelData)
    })

    test('two main requests in one breath: the first counts', async () => {
      const client = await arrive()
      const before = (await bastion.events('command')).length
      const id = await openSession(client)
      client.send(buildExec(id, true, 'echo first'), buildExec(id, true, 'echo second'), buildShell(id, true))
      await client.next(MSG.channelClose)
      const commands = (await bastion.events('command')).slice(before).map(({ object }) => object)
      expect(commands).toEqual(['echo first'])
    })

    test('takes nothing after it was closed, in whatever order', async () => {
      const client = await arrive()
      const id = await begin(client)
      client.send(buildClose(id), buildExec(id, true, 'id'), buildData(id, 'x'), buildClose(id), buildEof(id))
      client.send(buildWindowAdjust(id, 1), buildEnv(id, true, 'LANG', 'C'))
      await client.next(MSG.channelClose)
      await settle(client)
      // The number may be reused for a new channel.
      const again = await begin(client, 'echo again')
      expect((await client.next(MSG.channelData)).subarray(9).toString()).toBe('again\n')
      expect(again).toBeGreaterThanOrEqual(0)
    })

    test('takes data before its main request only as far as its window, and does not lose it', async () => {
      const client = await arrive()
      const id = await openSession(client)
      client.send(buildData(id, 'early '), buildExec(id, true, 'cat'), buildData(id, 'late'), buildEof(id))
      const seen: Buffer[] = []
      for (
        let message = await client.next(MSG.channelData, MSG.channelClose);
        message[0] === MSG.channelData;
      ) {
        seen.push(message.subarray(9))
        message = await client.next(MSG.channelData, MSG.channelClose)
      }
      expect(['early late', '']).toContain(Buffer.concat(seen).toString())
    })

    test('with thousands of requests before its main one ends, or the session does, without memory', async () => {
      const client = await arrive()
      const id = await openSession(client)
      const before = resident()
      for (let n = 0; n < 20_000; n++) {
        client.send(buildEnv(id, true, 'LC_X', 'x'.repeat(1000)))
        if (n % 200 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      await until('an end of it', () => client.closed || client.received.length >= 19_999 || undefined)
      expect(resident() - before).toBeLessThan(100_000)
    })

    test('an exec with the longest command that a packet holds is answered', async () => {
      const client = await arrive()
      const id = await openSession(client)
      client.send(buildExec(id, true, `: ${'x'.repeat(30_000)}`))
      expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelSuccess)
    })
  })
})
