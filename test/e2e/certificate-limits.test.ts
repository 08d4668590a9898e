/** A certificate's options limit the sessions of the user that signed in with it (real ssh on both sides). */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openWorkshop, type Workshop } from '../identity/certificates.ts'
import { startEcho } from '../peers/forwarding.ts'
import type { Login } from '../peers/home.ts'
import { scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

const RIGHTS = [...ALL_RIGHTS, 'SSH_DIRECT_TCPIP']
const PAIR = 'ops1-srv1-users:ops1-srv1-targets'

let shop: Workshop
let bastion: Bastion
let revoked: string

beforeAll(async () => {
  shop = openWorkshop()
  for (const name of ['ca', 'laptop']) shop.key(name)
  revoked = join(shop.folder, 'revoked')
  writeFileSync(revoked, '')
  bastion = await startBastion({
    broker: { config: { ssh: { user_ca: [join(shop.folder, 'ca.pub')], revoked_keys: revoked } } },
    subprotocols: RIGHTS,
    sshd: { extraConfig: ['AcceptEnv SSH_ORIGINAL_COMMAND'] },
  })
})
afterAll(async () => {
  await bastion.stop()
  shop.remove()
})

/** Makes a login by a new certificate with these options. */
function certified(...args: string[]): Login {
  shop.certify('laptop', 'ca', ['-I', 'laptop of ops1', '-z', '7', '-n', 'ops1', ...args])
  const options = [
    `CertificateFile=${join(shop.folder, 'laptop-cert.pub')}`,
    'BatchMode=yes',
    'LogLevel=INFO',
  ]
  const { port, user } = bastion.login()
  return { port, user, identity: join(shop.folder, 'laptop'), options }
}
const forced = (command: string) => certified('-O', `force-command=${command}`)
const grant = (subprotocols: string[]) =>
  bastion.broker.must('PUT', `/authorizations/${PAIR}`, { subprotocols })

/** Runs `work` with these rights only. */
async function only(rights: string[], work: () => Promise<void>): Promise<void> {
  await grant(rights)
  try {
    await work()
  } finally {
    await grant(RIGHTS)
  }
}

describe('a forced command', () => {
  const SHOW = 'echo "forced: $SSH_ORIGINAL_COMMAND"; exit 5'

  test.each([
    ['a command', [], ['exit 7; id'], 'forced: exit 7; id\n'],
    ['a shell', ['-T'], [], 'forced: \n'],
    ['a subsystem', ['-s'], ['netconf'], 'forced: netconf\n'],
    ['SFTP', ['-s'], ['sftp'], 'forced: sftp\n'],
  ])('runs instead of %s', async (_, flags, command, stdout) => {
    const done = await ssh(bastion.home, forced(SHOW), command, { flags })
    expect(done).toMatchObject({ code: 5, stdout })
  })

  test('runs instead of a shell on a terminal', async () => {
    const terminal = sshTerminal(bastion.home, forced('tty; exit 5'))
    expect(await terminal.exit()).toBe(5)
    expect(terminal.output()).toContain('/dev/pts/')
  })

  test('is what the audit names, not what the client had asked for', async () => {
    const before = (await bastion.events('command')).length
    await ssh(bastion.home, forced('true'), ['cat /etc/shadow'])
    const [event] = (await bastion.events('command', before + 1)).slice(before)
    expect(event).toMatchObject({ object: 'true', subprotocol: 'SSH_REMOTE_COMMAND' })
  })

  test('needs the right to run commands', async () => {
    await only(['SSH_SHELL', 'SFTP_SESSION'], async () => {
      const done = await ssh(bastion.home, forced('true'), [], { flags: ['-T'] })
      expect(done.code).toBe(255)
      expect(done.stderr).toContain('the right SSH_REMOTE_COMMAND is missing')
    })
  })

  test('that is scp needs the right to copy, and goes one way', async () => {
    const file = join(bastion.home.folder, 'up.txt')
    writeFileSync(file, 'one way')
    const [up, back] = [`${bastion.account.home}/up.txt`, join(bastion.home.folder, 'back.txt')]
    await only(['SSH_SCP_UP'], async () => {
      const login = forced(`scp -t ${up}`)
      expect((await scp(bastion.home, login, file, { remote: '/elsewhere' }, ['-O'])).code).toBe(0)
      expect(readFileSync(up, 'utf8')).toBe('one way')
      expect((await scp(bastion.home, login, { remote: up }, back, ['-O'])).code).not.toBe(0)
      expect((await ssh(bastion.home, forced(`scp -f ${up}`), ['id'])).code).toBe(255)
    })
  })

  test('internal-sftp is the subsystem, whatever is asked for', async () => {
    await only(['SFTP_SESSION'], async () => {
      const login = forced('internal-sftp')
      expect((await sftp(bastion.home, login, ['pwd'])).stdout).toContain(bastion.account.home)
      const done = await ssh(bastion.home, login, ['id'], { input: '' })
      expect(done).toMatchObject({ code: 0, stdout: '' })
    })
  })
})

describe('without the extension', () => {
  test('permit-pty there is no terminal', async () => {
    // with -t ssh would give up
    const terminal = sshTerminal(bastion.home, certified('-O', 'no-pty'), [], { flags: [] })
    await terminal.expect('PTY allocation request failed')
    terminal.send('tty; exit 5\n')
    expect(await terminal.exit()).toBe(5)
    expect(terminal.output()).toContain('not a tty')
  })

  test('permit-port-forwarding there is no connection, and nothing at all for who may do nothing else', async () => {
    const echo = await startEcho()
    const flags = ['-W', `127.0.0.1:${echo.port}`]
    const through = (login: Login) => ssh(bastion.home, login, [], { flags, input: 'ping' })
    expect((await through(certified())).stdout).toBe('ping')
    const refused = await through(certified('-O', 'no-port-forwarding'))
    expect(refused.stderr).toContain('the right SSH_DIRECT_TCPIP is missing')
    await only(['SSH_DIRECT_TCPIP'], async () => {
      const nothing = await through(certified('-O', 'no-port-forwarding'))
      expect(nothing.stderr).toContain('your certificate withholds all that you have a right to')
    })
    expect(echo.accepted).toBe(1)
    echo.stop()
  })
})

describe('a running session ends', () => {
  async function shell(login: Login) {
    const terminal = sshTerminal(bastion.home, login)
    await terminal.expect('$ ')
    return terminal
  }

  test('when its certificate is over', async () => {
    const utc = (ms: number) => `${new Date(ms).toISOString().replaceAll(/[-:T]|\..*/g, '')}Z`
    const end = Date.now() + 8000
    const terminal = await shell(certified('-V', `${utc(end - 60_000)}:${utc(end)}`))
    expect(await terminal.exit()).not.toBe(0)
    expect(Date.now()).toBeGreaterThanOrEqual(end - 1000)
    expect(terminal.output()).toContain('the certificate of the sign-in has expired')
  })

  test('when its certificate is revoked, and no other, and not for a list that cannot be read', async () => {
    const [terminal, other] = await Promise.all([shell(certified()), shell(bastion.login())])
    renameSync(revoked, `${revoked}.gone`)
    // a change makes the broker look at every session
    await bastion.broker.must('PUT', '/devices/srv1', { description: 'unread' })
    terminal.send('echo still-$((40 + 2))\r')
    await terminal.expect('still-42')
    writeFileSync(revoked, shop.revoke(['serial: 7'], 'ca'))
    await bastion.broker.must('PUT', '/devices/srv1', { description: 'read' })
    expect(await terminal.exit()).not.toBe(0)
    expect(terminal.output()).toContain('the key or certificate of the sign-in has been revoked')
    other.send('exit 7\r')
    expect(await other.exit()).toBe(7)
    writeFileSync(revoked, '')
  })
})

test('the events of sign-ins name the key, and whose word a certificate is', async () => {
  const named = {
    digest: shop.fingerprint('laptop').split(' ')[1],
    object_type: 'certificate',
    object: `laptop of ops1 (serial 7, CA ${shop.fingerprint('ca').split(' ')[1]})`,
  }
  expect((await ssh(bastion.home, certified(), ['true'])).code).toBe(0)
  expect((await bastion.events('auth.success', 1)).at(-1)).toMatchObject(named)
  const { password: _, ...plain } = bastion.login({ identity: bastion.key.path })
  expect((await ssh(bastion.home, plain, ['true'])).code).toBe(0)
  const byKey = (await bastion.events('auth.success', 1)).at(-1)
  expect(byKey).toMatchObject({ method: 'publickey', digest: bastion.key.fingerprint })
  expect(byKey).not.toHaveProperty('object')
  expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
  expect((await bastion.events('auth.success', 1)).at(-1)).not.toHaveProperty('digest')
})
