/** Invalid login strings (contract: rejected before anything else). */
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { AUTH, authRequest, connectToSignIn, passwordRequest, type RawClient, textOf } from './raw.ts'
import { PEERS } from './setting.ts'

describeWithPeers('login strings', PEERS, () => {
  let bastion: Bastion
  let port: number
  const clients: RawClient[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    port = bastion.broker.ports.ssh
  })
  afterAll(() => bastion.stop())
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy()
  })

  /** A new address for each, so that no test locks out another. */
  let lastAddress = 1
  const newAddress = (): string => `127.0.1.${++lastAddress}`
  async function arrive(): Promise<RawClient> {
    const client = await connectToSignIn({ port, from: newAddress() })
    clients.push(client)
    return client
  }

  /** Returns how many events report a sign-in of this client. */
  async function signIns(client: RawClient): Promise<number> {
    return (await bastion.events('auth.success')).filter(client.isOf).length
  }

  const bad: [string, string | Buffer][] = [
    ['over 256 bytes', 'a'.repeat(257)],
    ['of 32 KiB', `${'a'.repeat(16_000)}+${'b'.repeat(16_000)}`],
    ['with NUL', 'ops1\0+root@srv1'],
    ['with a newline', 'ops1\n+root@srv1'],
    ['with an escape sequence', 'ops1\x1b[2J'],
    ['with invalid UTF-8', Buffer.from('ops1\xff\xfe+root@srv1', 'latin1')],
    ['with an overlong NUL', Buffer.from('ops1\xc0\x80', 'latin1')],
    ['with @@', 'ops1+root@@srv1'],
    ['with an empty device', 'ops1+root@'],
    ['with an empty user', '+root@srv1'],
    ['with an empty service', 'ops1+root@srv1+'],
    ['with too many parts', 'ops1+root@local@srv1+ssh+more'],
    ['with both separators', 'ops1+root@srv1:ssh'],
    ['with a broken escape', 'ops1%zz'],
    ['with an escaped NUL', 'ops1%00+root@srv1'],
    ['with an escaped newline', 'ops1+ro%0Aot@srv1'],
    ['that is empty', ''],
  ]

  test.each(bad)('%s: refused with the syntax, whatever the proof', async (_, login) => {
    for (const request of [authRequest(login, 'none'), passwordRequest(login, bastion.password)]) {
      const client = await arrive()
      client.send(request)
      expect(textOf(await client.next(AUTH.banner))).toMatch(/expected USER, USER:ACCOUNT@DEVICE/)
      await client.untilClosed()
      expect(await signIns(client)).toBe(0)
    }
  })

  test('of 64 KiB: the connection ends, the broker goes on', async () => {
    const client = await arrive()
    client.send(passwordRequest('a'.repeat(65_536), bastion.password))
    await client.untilClosed()
    expect(client.received.map((payload) => payload[0])).not.toContain(AUTH.success)
    expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
  })

  test('through a real client: 64 KiB, and one that is merely wrong shows the syntax', async () => {
    const huge = await ssh(bastion.home, bastion.login({ user: 'a'.repeat(65_536) }), ['true'])
    expect(huge.code).toBe(255)
    const wrong = await ssh(
      bastion.home,
      bastion.login({ user: 'ops1+root@@srv1', options: ['LogLevel=INFO'] }),
      ['true'],
    )
    expect(wrong.code).toBe(255)
    expect(wrong.stderr).toMatch(/sallyport: .*empty part.*expected USER, USER:ACCOUNT@DEVICE/)
  })

  test('none of them stands in the log as a line of its own', async () => {
    const lines = bastion.broker.log().split('\n')
    const client = await arrive()
    client.send(passwordRequest('x"}\n{"event":"auth.success","user":"admin"}', 'wrong'))
    await client.untilClosed()
    await bastion.events('auth.failure', 1)
    const added = bastion.broker
      .log()
      .split('\n')
      .slice(lines.length - 1)
    expect(added.filter((line) => line.startsWith('{"event":"auth.success"'))).toEqual([])
  })

  test('no password of these tests is in the log', () => {
    expect(bastion.broker.log()).not.toContain(bastion.password)
    expect(readFileSync(bastion.broker.configFile, 'utf8')).not.toContain(bastion.password)
  })
})
