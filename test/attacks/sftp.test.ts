/** SFTP in one direction, with a client that follows no rule. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildChannelRequest, buildData, buildPtyRequest } from '../../proxies/ssh/codec/build.ts'
import { dataOf, MSG } from '../../proxies/ssh/codec/messages.ts'
import { FXP } from '../../proxies/ssh/codec/sftp.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { ALL_RIGHTS, type Bastion } from '../e2e/bastion.ts'
import {
  CREATE,
  extended,
  idOf,
  init,
  named,
  open,
  type Packet,
  packet,
  packetsOf,
  READ,
  read,
  status,
  WRITE,
} from '../proxies/ssh/sftp/support/packets.ts'
import { until } from '../until.ts'
import type { RawClient } from './raw.ts'
import { describeAttacks, openSession } from './setting.ts'

const DENIED = 3
const copyData = () =>
  packet(FXP.extended, (w) =>
    w.uint32(1).string('copy-data').string('h').uint64(0n).uint64(0n).string('i').uint64(0n),
  )

describeAttacks('SFTP one way', (setting) => {
  let bastion: Bastion
  const there = (name: string) => join(bastion.account.home, name)
  const rights = async (...subprotocols: string[]) => {
    const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    await bastion.broker.must('PUT', `/authorizations/${row!.id}`, { subprotocols })
  }
  beforeAll(() => {
    bastion = setting.bastion
  })
  afterAll(() => rights(...ALL_RIGHTS))

  /** Opens an SFTP channel and agrees its version. */
  async function subsystem(client: RawClient, window?: number): Promise<number> {
    const id = await openSession(client, undefined, window)
    client.send(buildChannelRequest(id, 'subsystem', true, new Writer().string('sftp').finish()))
    await client.next(MSG.channelSuccess)
    client.send(buildData(id, init()))
    await client.next(MSG.channelData)
    return id
  }

  async function answersOf(client: RawClient, count: number): Promise<Packet[]> {
    return await until(`${count} answers`, () => {
      const data = client.received
        .filter(([type]) => type === MSG.channelData)
        .map((payload) => dataOf(payload))
      const packets = packetsOf(Buffer.concat(data))
      return packets.length >= count ? packets : undefined
    })
  }

  describe('who may only send', () => {
    test.each([
      ['reads', () => open(1, '/etc/passwd', READ)],
      ['reads and writes', () => open(1, there('f'), READ | WRITE)],
      ['reads without a flag', () => open(1, '/etc/passwd', 0)],
      ['reads what it makes', () => open(1, there('f'), CREATE)],
      ['reads a handle of nobody', () => read(1, '\0\0\0\0', 0, 100)],
      ['lists', () => named(FXP.opendir, 1, '/')],
      ['removes', () => named(FXP.remove, 1, there('keep'))],
      ['renames', () => extended(1, 'posix-rename@openssh.com', there('keep'), there('gone'))],
      ['links', () => extended(1, 'hardlink@openssh.com', '/etc/passwd', there('gone'))],
      ['copies', copyData],
      ['runs', () => extended(1, 'exec@example.com', 'touch /tmp/x')],
    ])('%s: it is refused, whatever the pieces, and what follows is served', async (_, request) => {
      await rights('SSH_SCP_UP')
      writeFileSync(there('keep'), 'keep')
      const client = await setting.arrive()
      const id = await subsystem(client)
      const stream = Buffer.concat([request(), named(FXP.stat, 2, '/')])
      for (let at = 0; at < stream.length; at += 3) client.send(buildData(id, stream.subarray(at, at + 3)))
      const answers = await answersOf(client, 2)
      const refusal = answers.find((answer) => idOf(answer) === 1)
      expect(refusal).toMatchObject({ type: FXP.status })
      expect(refusal?.body.readUInt32BE(4)).toBe(DENIED)
      expect(answers.map(idOf).sort()).toEqual([1, 2])
      expect([existsSync(there('keep')), existsSync(there('gone'))]).toEqual([true, false])
    })

    test('there is none on a terminal, whose modes could drop bytes that the filter has read', async () => {
      await rights('SSH_SCP_UP')
      const client = await setting.arrive()
      const id = await openSession(client)
      // IGNCR (RFC 4254 8): carriage returns, as in a file's data, do not reach the program.
      const modes = Buffer.from([35, 0, 0, 0, 1])
      const pty = { terminal: 'x', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes }
      client.send(buildPtyRequest(id, true, pty))
      await client.next(MSG.channelSuccess)
      client.send(buildChannelRequest(id, 'subsystem', true, new Writer().string('sftp').finish()))
      expect((await client.next(MSG.channelExtendedData)).toString()).toMatch(
        /SFTP on a terminal is not allow/,
      )
      await client.next(MSG.channelClose)
    })

    test('an answer in place of a request ends the channel', async () => {
      await rights('SSH_SCP_UP')
      const client = await setting.arrive()
      const id = await subsystem(client)
      client.send(buildData(id, status(1, 0)))
      await client.next(MSG.channelClose)
    })

    test('a packet of 4 GiB ends the channel', async () => {
      await rights('SSH_SCP_UP')
      const client = await setting.arrive()
      const id = await subsystem(client)
      client.send(buildData(id, Buffer.from([0xff, 0xff, 0xff, 0xff, FXP.write])))
      await client.next(MSG.channelClose)
    })
  })

  test('refused without end: the session ends, the audit log has a bounded number of it', async () => {
    await rights('SSH_SCP_UP')
    const before = (await bastion.events('file.denied')).length
    const client = await setting.arrive()
    const id = await subsystem(client)
    const many = Buffer.concat(Array.from({ length: 400 }, (_, n) => named(FXP.opendir, n, '/')))
    for (let turn = 0; turn < 20 && !client.closed; turn++) {
      client.send(buildData(id, many))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await client.untilClosed()
    expect((await bastion.events('file.denied')).length - before).toBeLessThanOrEqual(1_000)
  })

  test('refused, and the answers never read: memory is bounded, and the window says stop', async () => {
    await rights('SSH_SCP_UP')
    const client = await setting.arrive()
    const before = setting.resident()
    const id = await subsystem(client, 400)
    const piece = Buffer.concat(Array.from({ length: 900 }, (_, n) => named(FXP.opendir, n, '/')))
    client.send(buildData(id, piece))
    // The answers exceed the client's window; allowed requests wait behind them.
    for (let turn = 0; turn < 50; turn++) {
      client.send(
        buildData(id, Buffer.concat(Array.from({ length: 1000 }, (_, n) => named(FXP.stat, n, '/')))),
      )
      await new Promise((resolve) => setImmediate(resolve))
    }
    await new Promise((resolve) => setTimeout(resolve, 300))
    const data = client.received.filter(([type]) => type === MSG.channelData)
    const length = data.reduce((sum, payload) => sum + dataOf(payload).length, 0)
    expect(length).toBeLessThanOrEqual(400)
    expect(client.closed).toBe(false)
    expect(setting.resident() - before).toBeLessThan(16 * 1024)
  })
})
