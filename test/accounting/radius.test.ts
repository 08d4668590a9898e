/** Records of accounting at FreeRADIUS, and at servers that lie. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RadiusSender } from '../../src/accounting/radius.ts'
import type { AccountingRecord } from '../../src/accounting/record.ts'
import { Secret } from '../../src/model/secret.ts'
import { type FreeRadius, RADIUS_SECRET, startFreeRadius } from '../peers/freeradius.ts'
import { describeWithPeers } from '../peers/program.ts'

const NOW = 1_800_000_000_000
const open: { close(): unknown }[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
})

function senderTo(port: number, timeoutMs = 5000): RadiusSender {
  const sender = new RadiusSender({
    auth: {
      id: '1',
      authenticationName: 'codes',
      description: '',
      secretNames: ['shared_secret'],
      secretRevision: 1,
      type: 'RADIUS',
      servers: [{ host: '127.0.0.1', port: 9 }],
      timeoutMs,
      options: {
        requireMessageAuthenticator: true,
        tries: 1,
        accountingPort: port,
        nasIdentifier: 'bastion1',
      },
    },
    secrets: { sharedSecret: Secret.of(RADIUS_SECRET) },
    now: () => NOW,
  })
  open.push(sender)
  return sender
}

const SESSION = {
  session: '01SESSION',
  user: 'älice@corp',
  source: '2001:db8::7',
  protocol: 'SSH',
  target: 'root@local@srv1:ssh',
  time: NOW - 65_000,
}
const { signal } = new AbortController()

describeWithPeers('FreeRADIUS', ['freeradius'], () => {
  let server: FreeRadius
  beforeAll(async () => {
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true })
  })
  afterAll(() => server?.stop())

  test('has each record with all that is known', async () => {
    const sender = senderTo(server.accountingPort)
    const records: AccountingRecord[] = [
      { ...SESSION, session: '', user: '', source: '', protocol: '', target: '', kind: 'on' },
      { ...SESSION, kind: 'start' },
      { ...SESSION, kind: 'interim', elapsed: 600_999 },
      {
        ...SESSION,
        kind: 'interim',
        elapsed: 1_200_999,
        octets: { bytesIn: 3, bytesOut: 2 ** 33 + 1 },
        classes: [Buffer.from('one'), Buffer.from([0, 255])],
      },
      {
        ...SESSION,
        user: 'ü'.repeat(200),
        kind: 'stop',
        elapsed: 3_600_000,
        bytesIn: 5 * 2 ** 32 + 7,
        bytesOut: 9,
        result: 'success',
        reason: '',
      },
      { ...SESSION, kind: 'stop', bytesIn: 0, bytesOut: 0, result: 'failure', reason: 'lost' },
    ]
    for (const record of records) {
      await sender.send(record, signal)
      // As after a connection that failed.
      await sender.close()
      await sender.reach(signal)
    }
    const about = {
      'NAS-Identifier': 'bastion1',
      'NAS-IP-Address': '127.0.0.1',
      'Acct-Delay-Time': '65',
      'Acct-Session-Id': '01SESSION',
      'Calling-Station-Id': '2001:db8::7',
      'Called-Station-Id': 'root@local@srv1:ssh',
      'Connect-Info': 'SSH',
      'Service-Type': 'Login-User',
      'NAS-Port-Type': 'Virtual',
    }
    const [on, ...sessions] = server.accounted()
    expect(on).toMatchObject({ 'Acct-Status-Type': 'Accounting-On', 'Acct-Session-Id': `on-${NOW - 65_000}` })
    expect(on).not.toHaveProperty('User-Name')
    expect(sessions[1]).not.toHaveProperty('Acct-Input-Octets')
    expect(sessions).toMatchObject([
      { ...about, 'Acct-Status-Type': 'Start', 'User-Name': 'älice@corp' },
      { ...about, 'Acct-Status-Type': 'Interim-Update', 'Acct-Session-Time': '600' },
      {
        ...about,
        'Acct-Status-Type': 'Interim-Update',
        'Acct-Input-Octets': '3',
        'Acct-Output-Octets': '1',
        'Acct-Output-Gigawords': '2',
        Class: '0x6f6e65 0x00ff',
      },
      {
        ...about,
        'User-Name': 'ü'.repeat(126),
        'Acct-Status-Type': 'Stop',
        'Acct-Session-Time': '3600',
        'Acct-Input-Octets': '7',
        'Acct-Input-Gigawords': '5',
        'Acct-Output-Octets': '9',
        'Acct-Terminate-Cause': 'User-Request',
      },
      { ...about, 'Acct-Status-Type': 'Stop', 'Acct-Terminate-Cause': 'NAS-Reboot' },
    ])
  })
})

describe('a lying server', () => {
  test.each([
    ['a reply with another secret', 5, 'forged', 'its authenticator is wrong'],
    ['an accept', 2, RADIUS_SECRET, 'expected Accounting-Response, got code 2'],
  ])('confirms nothing with %s', async (_, code, secret, reason) => {
    const socket = createSocket('udp4')
    socket.on('message', (request: Buffer, { port, address }) => {
      const reply = Buffer.concat([request.subarray(0, 20)])
      reply[0] = code
      reply.writeUInt16BE(20, 2)
      createHash('md5').update(reply).update(secret).digest().copy(reply, 4)
      socket.send(reply, port, address)
    })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    open.push(socket)
    await expect(
      senderTo(socket.address().port, 300).send({ ...SESSION, kind: 'start' }, signal),
    ).rejects.toThrow(reason)
  })
})
