/** Interactive login and account mapping with clients other than OpenSSH, and over shared connections. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Home } from '../peers/home.ts'
import { ssh } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { plinkTerminal } from '../peers/putty.ts'
import { paramikoAnswers, pythonClient } from '../peers/python.ts'
import { openTerminal } from '../peers/terminal.ts'
import { ASKED_PASSWORD, answering, type LogonBastion, startLogonBastion } from './logons.ts'

let bastion: LogonBastion
let home: Home

beforeAll(async () => {
  bastion = await startLogonBastion()
  const { name, password } = bastion.account
  home = answering(bastion.home, { login: name, password })
})
afterAll(() => bastion.stop())

describeWithPeers('paramiko', ['sshd', 'ssh-keygen', 'python3-paramiko'], () => {
  test('answers the round after the password, or both rounds in one', async () => {
    const { name, password } = bastion.account
    const after = await paramikoAnswers(bastion.home, bastion.asked(), [[name, password]])
    expect(after.error).toBeUndefined()
    expect(after).toMatchObject({
      partial: ['keyboard-interactive'],
      prompts: [['', 'Login at srv1:ssh: ', 'Password at srv1:ssh: ']],
      code: 0,
      stdout: `${name}\n`,
    })
    const { password: _password, ...asked } = bastion.asked()
    const both = await paramikoAnswers(bastion.home, asked, [[ASKED_PASSWORD], [name, password]])
    expect(both).toMatchObject({ partial: [], code: 0, stdout: `${name}\n` })
    expect(both.prompts).toHaveLength(2)
  })

  test('is mapped', async () => {
    const steps = [{ exec: 'id -un' }]
    expect(await pythonClient('paramiko', bastion.home, bastion.mapped(), steps)).toMatchObject([
      { code: 0, stdout: `${bastion.account.name}\n` },
    ])
  })

  test.each([
    ['control bytes in the login', 'ro\u0000ot\u001b[2J', 'control or invisible characters'],
    ['a login without end', 'x'.repeat(30_000), 'longer than 128 bytes'],
  ])('%s: asked again, and out after six tries', async (_, login, flaw) => {
    const rounds = Array.from({ length: 10 }, () => [login, 'canary-overlong'])
    const answered = await paramikoAnswers(bastion.home, bastion.asked(), rounds)
    expect(answered.error).toMatch(/Authentication|EOF|closed|reset/i)
    expect(answered.prompts.length).toBeLessThanOrEqual(6)
    expect(answered.prompts[1]?.[0]).toContain(flaw)
    expect(bastion.broker.log()).not.toContain('canary-overlong')
  })
})

describeWithPeers('asyncssh', ['sshd', 'ssh-keygen', 'python3-asyncssh'], () => {
  test('is mapped', async () => {
    const steps = [{ exec: 'id -un' }]
    expect(await pythonClient('asyncssh', bastion.home, bastion.mapped(), steps)).toMatchObject([
      { code: 0, stdout: `${bastion.account.name}\n` },
    ])
  })
})

describeWithPeers('PuTTY', ['sshd', 'ssh-keygen', 'plink'], () => {
  test('plink asks on the terminal for what the target wants', async () => {
    const { name, password, prompt } = bastion.account
    const fingerprint = await hostFingerprint()
    const { port, user } = bastion.asked()
    const args = ['-ssh', '-t', '-P', String(port), '-l', user, '-hostkey', fingerprint, '127.0.0.1']
    const terminal = openTerminal(findProgram('plink'), args, { env: bastion.home.env() })
    await terminal.expect('assword: ')
    terminal.send(`${ASKED_PASSWORD}\r`)
    await terminal.expect('Login at srv1:ssh: ')
    terminal.send(`${name}\r`)
    await terminal.expect('Password at srv1:ssh: ')
    terminal.send(`${password}\r`)
    // plink's own prompt: no server's prompt can be mistaken for it.
    await terminal.expect('Press Return to begin session')
    terminal.send('\r')
    await terminal.expect(prompt)
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
    const mapped = await plinkTerminal(bastion.home, bastion.mapped({ hostFingerprint: fingerprint }))
    await mapped.expect(prompt)
    mapped.send('exit\r')
    expect(await mapped.exit()).toBe(0)
  })
})

describeWithPeers('two shared connections', ['sshd', 'ssh', 'ssh-keygen'], () => {
  test('each has what its own person gave, and a new one has nothing', async () => {
    const shared = (socket: string) => [
      `ControlPath=${join(bastion.home.folder, socket)}`,
      'ControlMaster=auto',
      'ControlPersist=20',
    ]
    const logins = [
      bastion.asked({ options: shared('asked') }),
      bastion.mapped({ options: shared('mapped') }),
    ]
    for (const login of logins) expect(await ssh(home, login, ['true'])).toMatchObject({ code: 0 })
    for (const { password: _password, ...bare } of logins) {
      // A shared connection shows no prompt: nothing here would answer one.
      const done = await ssh(bastion.home, bare, ['id', '-un'])
      expect(done).toMatchObject({ code: 0, stdout: `${bastion.account.name}\n` })
    }
    const options = ['PreferredAuthentications=publickey,keyboard-interactive']
    for (const login of [bastion.asked, bastion.mapped]) {
      const own = login({ identity: bastion.key.path, options, password: 'not the one' })
      expect((await ssh(bastion.home, own, ['id'])).code).toBe(255)
    }
    for (const login of logins) await ssh(bastion.home, login, [], { flags: ['-O', 'exit'] })
  })
})

async function hostFingerprint(): Promise<string> {
  const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
  return (await run('ssh-keygen', ['-l', '-f', key])).stdout.split(' ')[1] ?? ''
}
