/**
 * A second factor that one authorization requires, by real clients: asked for where there is a place for it, and skipped by no
 * command, file transfer, shared connection or forwarding. Attack case 8.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { plink } from '../peers/putty.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { type Enrolled, enrol } from './enrolment.ts'

const PROMPT = 'One-time code (or a recovery code): '
const MENU = 'q to leave: '
const NEEDS = /needs a second factor/

describeWithPeers(
  'a second factor of one authorization',
  ['ssh', 'sshd', 'plink', 'oathtool', 'curl'],
  () => {
    let bastion: Bastion
    let factor: Enrolled
    let hostFingerprint: string

    beforeAll(async () => {
      const authorization = { second_factor: 'required', authorize_password_retrieval: true }
      bastion = await startBastion({ authorization, broker: { terminals: {} } })
      const { must } = bastion.broker
      factor = await enrol(bastion.broker, 'ops1', bastion.password)
      // At sign-ins a code counts for a while; the authorization wants one for each connection.
      await must('PUT', '/usergroups/ops1-srv1-users', {
        second_factor: 'required',
        second_factor_remember: 3600,
      })
      const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
      const { stdout } = await run(findProgram('ssh-keygen'), ['-l', '-f', key])
      hostFingerprint = stdout.split(' ')[1] ?? ''
      for (const login of [byKey(), bastion.login({ user: 'ops1' })]) {
        const terminal = sshTerminal(bastion.home, login, [], { typed: true })
        if (!('identity' in login)) {
          await terminal.expect('assword: ')
          terminal.send(`${bastion.password}\r`)
        }
        await terminal.expect(PROMPT)
        terminal.send(`${await factor.newCode()}\r`)
        await terminal.expect(MENU)
        terminal.send('q\r')
        await terminal.exit()
      }
    })
    afterAll(async () => {
      hangUp()
      await bastion.stop()
    })

    const byKey = (options: string[] = [], user = 'ops1') => {
      const { password: _, ...login } = bastion.login({ user, identity: bastion.key.path })
      return { ...login, options: ['PreferredAuthentications=publickey,keyboard-interactive', ...options] }
    }
    const named = (options: string[] = []) => byKey(options, bastion.login().user)
    /** Codes of the authenticator are of one step each. */
    const recovery = () => factor.recovery.pop()!
    const opened = async () => (await bastion.events('session.open')).length

    test('is asked on the terminal of a menu, where a wrong code opens nothing', async () => {
      const before = await opened()
      const terminal = sshTerminal(bastion.home, byKey())
      await terminal.expect(MENU)
      terminal.send('1\r')
      await terminal.expect(NEEDS)
      await terminal.expect(PROMPT)
      terminal.send('000000\r')
      expect(await terminal.expect(MENU)).toContain('the second factor was not accepted')
      expect(await opened()).toBe(before)
      terminal.send('1\r')
      await terminal.expect(PROMPT)
      terminal.send(`${recovery()}\r`)
      await terminal.expect(bastion.account.prompt)
      await terminal.close()
      expect((await bastion.events('factor.proved')).at(-1)).toMatchObject({ user: 'ops1', protocol: 'SSH' })
    })

    test('is asked in the sign-in for a target that is named, by OpenSSH and on the terminal of Telnet', async () => {
      const terminal = sshTerminal(bastion.home, named(), ['id', '-un'], { typed: true })
      await terminal.expect(PROMPT)
      terminal.send(`${recovery()}\r`)
      await terminal.expect(bastion.account.name)
      expect(await terminal.exit()).toBe(0)
      const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
      await telnet.sees('login: ')
      telnet.type('ops1\r')
      await telnet.sees('Password: ')
      telnet.type(`${bastion.password}\r`)
      await telnet.sees(MENU)
      telnet.type('1\r')
      await telnet.sees(PROMPT)
      telnet.type(`${recovery()}\r`)
      await telnet.sees(bastion.account.prompt)
    })

    test('is skipped by no client that cannot be asked: commands, file transfers and forwarding say why', async () => {
      const before = await opened()
      const batch = named(['BatchMode=yes', 'LogLevel=INFO'])
      const { home, account } = bastion
      const command = await ssh(home, batch, ['id', '-un'])
      expect(command).toMatchObject({ code: 255, stdout: '' })
      expect(command.stderr).toMatch(/this target needs a one-time code: sign in with keyboard-interactive/)
      const copy = await scp(home, batch, { remote: '/etc/hostname' }, join(home.folder, 'copied'))
      const files = await sftp(home, named(['BatchMode=yes']), ['ls /'])
      const forward = await ssh(home, batch, [], { flags: ['-N', '-L', '0:127.0.0.1:1'] })
      expect([copy.code, files.code, forward.code]).toEqual([255, 255, 255])
      const putty = await plink(home, bastion.login({ hostFingerprint }), 'id -un')
      expect([putty.code, putty.stdout.includes(account.name)]).toEqual([1, false])
      expect(await opened()).toBe(before)
    })

    test('counts for all that shares its connection, and for no other', async () => {
      const control = [`ControlPath=${join(bastion.home.folder, 'cm')}`]
      const master = sshTerminal(bastion.home, named([...control, 'ControlMaster=yes']), [], { typed: true })
      await master.expect(PROMPT)
      terminalOnly(await ssh(bastion.home, named([...control, 'BatchMode=yes']), ['id', '-un']))
      master.send(`${recovery()}\r`)
      await master.expect(bastion.account.prompt)
      const shared = await ssh(bastion.home, named([...control, 'BatchMode=yes']), ['id', '-un'])
      expect(shared.stdout).toBe(`${bastion.account.name}\n`)
      await master.close()
      terminalOnly(await ssh(bastion.home, named(['BatchMode=yes']), ['id', '-un']))
    })

    test('is a challenge of the checkout for curl, which a sign-in answers; an API key is refused in words', async () => {
      const { broker, home } = bastion
      const jar = join(home.folder, 'jar')
      const curl = async (path: string, body: object, ...more: string[]) => {
        const url = `https://127.0.0.1:${broker.ports.https}/api/v3.12${path}`
        const sent = [
          '--json',
          JSON.stringify(body),
          '-ks',
          '-b',
          jar,
          '-c',
          jar,
          '-w',
          '%{http_code}',
          ...more,
        ]
        const { stdout } = await run(findProgram('curl'), [...sent, url])
        return { status: Number(stdout.slice(-3)), body: JSON.parse(stdout.slice(0, -3) || 'null') }
      }
      // The code at the sign-in by SSH is remembered beside the password.
      expect((await curl('/session', { user: 'ops1', password: bastion.password })).status).toBe(200)
      const place = `/accounts/${bastion.account.name}@local@srv1/checkout`
      const asked = await curl(place, {})
      expect(asked).toMatchObject({ status: 401, body: { error: 'second_factor_required' } })
      expect(JSON.stringify(asked.body)).not.toMatch(/PRIVATE KEY/)
      const answers = [recovery()]
      expect((await curl('/session', { challenge: asked.body.challenge.id, answers })).status).toBe(200)
      const out = await curl(place, {})
      expect(out).toMatchObject({ status: 200, body: { private_key: expect.stringMatching(/PRIVATE KEY/) } })
      const key = await broker.must<{ api_key: string }>('POST', '/apikeys', {
        key_name: 'k',
        profile: 'user',
      })
      const headers = ['-H', `X-Auth-Key: ${key.api_key}`, '-H', 'X-Auth-User: ops1']
      expect(await curl(place, {}, ...headers)).toMatchObject({
        status: 403,
        body: {
          details: [{ message: expect.stringMatching(/requires a second factor, and an API key has none/) }],
        },
      })
    })
  },
)

function terminalOnly({ code, stdout }: { code: number | null; stdout: string }): void {
  expect([code, stdout]).toEqual([255, ''])
}
