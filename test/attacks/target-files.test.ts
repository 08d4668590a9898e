/**
 * A target that sends other files than requested, or hides its text in their names (CVE-2019-6109, 6110,
 * 6111).
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { buildClose, buildData, buildExec, buildExitStatus } from '../../proxies/ssh/codec/build.ts'
import { dataOf, MSG } from '../../proxies/ssh/codec/messages.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { type RawClient, signInRaw } from './raw.ts'
import { noSession, openSession, PEERS, provisionTarget } from './setting.ts'
import { type HostileTarget, type Script, startHostileTarget } from './target.ts'

describeWithPeers('a target as the source of a copy', PEERS, () => {
  let bastion: Bastion
  let target: HostileTarget
  let script: Script
  const clients: RawClient[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    target = await startHostileTarget(bastion.home.folder, { script: () => script })
    await provisionTarget(bastion, 'evil1', target.port, ['SSH_SCP_DOWN'])
  })
  afterAll(async () => {
    target.stop()
    await bastion.stop()
  })
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    await noSession(bastion)
  })

  /** Returns the files of a client that requests one and accepts all. */
  async function fetch(command: string, records: string): Promise<{ client: RawClient; text: string }> {
    script = (leg, channel) => {
      leg.send(buildData(channel, Buffer.from(records, 'latin1')))
      setTimeout(() => {
        leg.send(buildExitStatus(channel, 0))
        leg.send(buildClose(channel))
      }, 100)
    }
    const client = await signInRaw({
      port: bastion.broker.ports.ssh,
      user: 'ops1+root@evil1',
      password: bastion.password,
    })
    clients.push(client)
    const id = await openSession(client)
    client.send(buildExec(id, true, command), buildData(id, '\0'))
    const isClose = ([type]: Buffer): boolean => type === MSG.channelClose
    await until('the end of it', () => client.closed || client.received.some(isClose) || undefined)
    const data = client.received.filter(([type]) => type === MSG.channelData)
    return { client, text: Buffer.concat(data.map((payload) => dataOf(payload))).toString('latin1') }
  }

  test('an honest one, to compare with', async () => {
    const { text } = await fetch('scp -f wanted', 'C0644 3 wanted\nabc\0')
    expect(text).toBe('C0644 3 wanted\nabc\0')
  })

  describe('the transfer is cut, and the client gets nothing of it', () => {
    test.each([
      ['a name with a path', 'scp -f wanted', 'C0644 3 ../.ssh/authorized_keys\nabc\0'],
      ['an absolute name', 'scp -f wanted', 'C0644 3 /etc/cron.d/x\nabc\0'],
      ['the folder above', 'scp -r -f wanted', 'D0755 0 ..\nC0644 3 x\nabc\0E\n'],
      ['a folder that nobody asked for', 'scp -f wanted', 'D0755 0 .ssh\nC0644 3 authorized_keys\nabc\0E\n'],
      ['another name', 'scp -f wanted', 'C0644 3 .bashrc\nabc\0'],
      ['a second file', 'scp -f wanted', 'C0644 3 wanted\nabc\0C0644 3 .bashrc\nabc\0'],
      ['an escape sequence in the name', 'scp -f wanted', 'C0644 3 wanted\x1b[2K\nabc\0'],
      ['a carriage return in the name', 'scp -f *', 'C0644 3 wanted\rother\nabc\0'],
      ['an 8-bit control character in the name', 'scp -f *', 'C0644 3 a\xc2\x9b2K\nabc\0'],
    ])('%s', async (_, command, records) => {
      const { client, text } = await fetch(command, records)
      expect(text).not.toMatch(/C0644 3 (?!wanted\n)|D0755/)
      const told = client.received.filter(([type]) => type === MSG.channelExtendedData)
      expect(Buffer.concat(told).toString('latin1')).toMatch(/sallyport: the transfer was cut: scp: /)
    })
  })
})
