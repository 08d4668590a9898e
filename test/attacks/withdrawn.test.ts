/** A user who keeps a connection open after the right to it was revoked. */
import { beforeAll, describe, expect, test } from 'vitest'
import { buildPtyRequest, buildShell } from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import type { Bastion } from '../e2e/bastion.ts'
import { sallyportCommand } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { AUTH, connectToSignIn, keyRequest, type RawClient, signerOf } from './raw.ts'
import { begin, describeAttacks, openSession } from './setting.ts'

describeAttacks('whose way in was taken away', (setting) => {
  let bastion: Bastion
  beforeAll(() => {
    bastion = setting.bastion
  })

  const put = (change: object) => bastion.broker.must('PUT', '/users/ops1', change)
  const group = () => `/usergroups/ops1-srv1-users`
  /** Runs in another process, as by an administrator at the machine. */
  const command = async (...args: string[]) => {
    const [program, words] = sallyportCommand([...args, '--config', bastion.broker.configFile])
    const { code, stderr } = await run(program, words)
    expect(code, stderr).toBe(0)
  }
  const CHANGES: [string, () => Promise<unknown>][] = [
    ['the password is replaced', () => put({ password: 'another one, long enough 7' })],
    ['the password is replaced by another process', () => command('admin', 'reset-password', 'ops1')],
    ['passwords are no way in any more', () => put({ user_auths: ['local_sshkey'] })],
    ['the user is disabled', () => put({ is_disabled: true })],
    ['the user may come from elsewhere only', () => put({ ip_source: ['192.0.2.0/24'] })],
    ['the user expires', () => put({ expiration_date: new Date(Date.now() + 1500).toISOString() })],
    ['the user is in no group any more', () => bastion.broker.must('PUT', group(), { users: [] })],
  ]
  const restore = async () => {
    await put({
      password: bastion.password,
      user_auths: ['local_password', 'local_sshkey'],
      is_disabled: false,
      ip_source: [],
      expiration_date: null,
      ssh_public_keys: [bastion.key.publicKey],
    })
    await bastion.broker.must('PUT', group(), { users: ['ops1'] })
  }

  async function inMenu(client: RawClient): Promise<void> {
    const id = await openSession(client)
    const size = { columns: 80, rows: 24, widthPixels: 0, heightPixels: 0 }
    client.send(buildPtyRequest(id, true, { terminal: 'xterm', ...size, modes: Buffer.alloc(0) }))
    client.send(buildShell(id, true))
    await client.next(MSG.channelData)
  }

  describe.each<[string, () => Promise<RawClient>]>([
    [
      'in the menu',
      async () => {
        const client = await setting.arrive('ops1')
        await inMenu(client)
        return client
      },
    ],
    [
      'with a program that is running',
      async () => {
        const client = await setting.arrive()
        await begin(client)
        return client
      },
    ],
  ])('%s', (_, arrive) => {
    test.each(CHANGES)('is cut when %s', async (__, change) => {
      try {
        const client = await arrive()
        await change()
        await client.untilClosed()
      } finally {
        await restore()
      }
    })
  })

  test('who came by key is cut when it is taken away, and not when the password is', async () => {
    try {
      const { user } = bastion.login()
      const client = await connectToSignIn({ port: bastion.broker.ports.ssh })
      client.send(keyRequest(user, signerOf(bastion.key.privateKey), client.sessionId))
      await client.next(AUTH.success)
      await begin(client)
      const byPassword = await setting.arrive()
      await begin(byPassword)
      await put({ password: 'another one, long enough 8' })
      await byPassword.untilClosed()
      expect(client.closed).toBe(false)
      await put({ ssh_public_keys: [] })
      await client.untilClosed()
    } finally {
      await restore()
    }
  })

  test('and the audit says that they were signed out, and why', async () => {
    const [first] = await bastion.events('auth.withdraw', 1)
    expect(first).toMatchObject({ user: 'ops1', client_ip: '127.0.0.1', reason: expect.any(String) })
  })
})
