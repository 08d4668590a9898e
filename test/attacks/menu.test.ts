import { beforeAll, describe, expect, test } from 'vitest'
import {
  buildClose,
  buildData,
  buildExec,
  buildGlobalRequest,
  buildPtyRequest,
  buildShell,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import { MSG, recipientOf } from '../../proxies/ssh/codec/messages.ts'
import type { Bastion } from '../e2e/bastion.ts'
import { sshTerminal } from '../peers/openssh.ts'
import { channelOpen, type RawClient } from './raw.ts'

import { describeAttacks, forward, noSession, OWN, openSession, settle } from './setting.ts'

const NOTHING = Buffer.alloc(0)

describeAttacks('the menu', (setting) => {
  const { arrive, denials } = setting
  let bastion: Bastion
  beforeAll(() => {
    bastion = setting.bastion
  })

  describe('in the menu', () => {
    async function openMenu(client: RawClient, own = OWN): Promise<number> {
      const id = await openSession(client, own)
      const pty = {
        terminal: 'xterm',
        columns: 80,
        rows: 24,
        widthPixels: 0,
        heightPixels: 0,
        modes: NOTHING,
      }
      client.send(buildPtyRequest(id, true, pty), buildShell(id, true))
      await client.next(MSG.channelData)
      return id
    }

    test('a forwarding is refused and connects nothing', async () => {
      const client = await arrive('ops1')
      const before = (await bastion.events('session.open')).length
      const refused = (await denials()).length
      await openMenu(client)
      client.send(channelOpen('direct-tcpip', 9, 1000, forward('127.0.0.1', bastion.sshd.port)))
      expect(recipientOf(await client.next(MSG.channelOpenFailure))).toBe(9)
      client.send(buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: forward('', 0) }))
      await client.next(MSG.requestFailure)
      await bastion.events('channel.denied', refused + 2)
      expect((await denials()).slice(refused)).toEqual(['channel direct-tcpip', 'tcpip-forward'])
      expect((await bastion.events('session.open')).length).toBe(before)
    })

    test('a second channel with a command runs nothing', async () => {
      const client = await arrive('ops1')
      const before = (await bastion.events('session.open')).length
      await openMenu(client)
      const id = await openSession(client, 8)
      client.send(buildExec(id, true, 'id'))
      expect((await client.next(MSG.channelExtendedData)).toString()).toMatch(/no target in the login/)
      expect((await bastion.events('session.open')).length).toBe(before)
    })

    test('two menus, and a choice in each: one session, and it ends', async () => {
      const client = await arrive('ops1')
      const before = (await bastion.events('session.open')).length
      const [one, two] = [await openMenu(client, 1), await openMenu(client, 2)]
      client.send(buildData(one, '1\r'), buildData(two, '1\r'))
      await bastion.events('session.open', before + 1)
      await settle(client)
      client.destroy()
      await noSession(bastion)
      expect((await bastion.events('session.open')).length - before).toBe(1)
    })

    test('data beyond the window ends the connection, a window over 2^32 too', async () => {
      const flooding = await arrive('ops1')
      const id = await openMenu(flooding)
      flooding.send(buildData(id, Buffer.alloc(30_000, 0x7f)))
      await flooding.untilClosed()
      const widening = await arrive('ops1')
      const other = await openMenu(widening)
      for (let n = 0; n < 4; n++) widening.send(buildWindowAdjust(other, 0xffffffff))
      await widening.untilClosed()
    })

    test('messages for channels that do not exist, and for one that is closed, change nothing', async () => {
      const client = await arrive('ops1')
      const id = await openMenu(client)
      client.send(buildData(99, 'x'), buildClose(99), buildExec(99, true, 'id'))
      client.send(buildClose(id), buildData(id, '1\r'), buildShell(id, true), buildClose(id))
      await settle(client)
    })

    test('a person in the menu who never chooses has no session', async () => {
      const before = (await bastion.events('session.open')).length
      const terminal = sshTerminal(bastion.home, bastion.login({ user: 'ops1' }))
      await terminal.expect('srv1')
      await terminal.close()
      expect((await bastion.events('session.open')).length).toBe(before)
    })
  })
})
