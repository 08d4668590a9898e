/** Interactive login and account mapping with common clients. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Home } from '../peers/home.ts'
import { scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { answering, type LogonBastion, startLogonBastion } from './logons.ts'

let bastion: LogonBastion
/** Answers the target's prompts correctly. */
let home: Home

const PROMPT = 'q to leave: '

describeWithPeers('people without a stored account', ['sshd', 'ssh', 'ssh-keygen'], () => {
  beforeAll(async () => {
    bastion = await startLogonBastion()
    const { name, password } = bastion.account
    home = answering(bastion.home, { login: name, password })
  })
  afterAll(() => bastion.stop())

  test('are asked at the sign-in: a command, by password and by key', async () => {
    for (const method of ['password', 'keyboard-interactive'] as const) {
      const options = [`PreferredAuthentications=${method},keyboard-interactive`]
      const done = await ssh(home, bastion.asked({ options }), ['id', '-un'])
      expect(done).toMatchObject({ code: 0, stdout: `${bastion.account.name}\n` })
    }
    const options = ['PreferredAuthentications=publickey,keyboard-interactive']
    const byKey = await ssh(home, bastion.asked({ identity: bastion.key.path, options }), ['id', '-un'])
    expect(byKey).toMatchObject({ code: 0, stdout: `${bastion.account.name}\n` })
  })

  test('are asked for the password only when the login string names the account', async () => {
    const terminal = sshTerminal(bastion.home, bastion.asked({ account: bastion.account.name }), [], {
      typed: true,
    })
    await terminal.expect('assword')
    terminal.send('asked password\r')
    const asked = await terminal.expect(`Password of ${bastion.account.name} at srv1:ssh: `)
    expect(asked).not.toContain('Login at')
    terminal.send(`${bastion.account.password}\r`)
    await terminal.expect(bastion.account.prompt)
    terminal.send('exit 4\r')
    expect(await terminal.exit()).toBe(4)
  })

  test('are asked at the sign-in: scp and sftp', async () => {
    const file = join(bastion.home.folder, 'up')
    writeFileSync(file, 'carried')
    const remote = join(bastion.account.home, 'up')
    expect(await scp(home, bastion.asked(), file, { remote })).toMatchObject({ code: 0 })
    expect(readFileSync(remote, 'utf8')).toBe('carried')
    expect(await sftp(home, bastion.asked(), [`ls ${remote}`])).toMatchObject({ code: 0 })
  })

  test('read why when the password is wrong, and may try again on a terminal', async () => {
    const wrong = answering(bastion.home, { login: bastion.account.name, password: 'canary-wrong' })
    const done = await ssh(wrong, bastion.asked(), ['id'])
    expect(done).toMatchObject({ code: 255, stdout: '' })
    expect(done.stderr).toContain(`refused the password of ${bastion.account.name}`)
    const terminal = sshTerminal(wrong, bastion.asked())
    await terminal.expect('refused the password')
    await terminal.expect('Login at srv1:ssh: ')
    terminal.send(`wrongx\x7f\r`)
    await terminal.expect('Password of wrong at srv1:ssh: ')
    terminal.send('canary-typed\r')
    await terminal.expect('refused the password of wrong')
    await terminal.expect('Login at srv1:ssh: ')
    terminal.send(`${bastion.account.name}\r`)
    await terminal.expect('at srv1:ssh: ')
    terminal.send(`${bastion.account.password}\r`)
    await terminal.expect(bastion.account.prompt)
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.output()).not.toContain('canary-typed')
    expect(terminal.output()).not.toContain(bastion.account.password)
  })

  test('are out after three refused logins', async () => {
    const wrong = answering(bastion.home, { login: bastion.account.name, password: 'canary-wrong' })
    const terminal = sshTerminal(wrong, bastion.asked({ account: bastion.account.name }))
    for (let n = 0; n < 2; n++) {
      await terminal.expect(`Password of ${bastion.account.name} at srv1:ssh: `)
      terminal.send('wrong again\r')
    }
    expect(await terminal.exit()).toBe(255)
  })

  test('choose in the menu, and are asked there', async () => {
    const terminal = sshTerminal(bastion.home, bastion.asked({ user: 'asked' }))
    expect(await terminal.expect(PROMPT)).toContain('@srv1:ssh')
    terminal.send('1\r')
    await terminal.expect('Login at srv1:ssh: ')
    terminal.send('\x03')
    await terminal.expect(PROMPT)
    terminal.send('1\r')
    await terminal.expect('Login at srv1:ssh: ')
    terminal.send(`${bastion.account.name}\r`)
    await terminal.expect('at srv1:ssh: ')
    terminal.send(`${bastion.account.password}\r`)
    await terminal.expect(bastion.account.prompt)
    terminal.send('exit 5\r')
    expect(await terminal.exit()).toBe(5)
  })

  test('are logged in by their own name and password, named or chosen in the menu', async () => {
    const { name, prompt, password } = bastion.account
    const done = await ssh(bastion.home, bastion.mapped(), ['id', '-un'])
    expect(done).toMatchObject({ code: 0, stdout: `${name}\n` })
    const terminal = sshTerminal(bastion.home, bastion.mapped({ user: name }))
    expect(await terminal.expect(PROMPT)).toContain(`${name}@srv1:ssh`)
    terminal.send('1\r')
    await terminal.expect(prompt)
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.output()).not.toContain(password)
  })

  test('who is mapped and came by key is asked for the password', async () => {
    const options = ['PreferredAuthentications=publickey,keyboard-interactive']
    const login = bastion.mapped({ identity: bastion.key.path, options })
    expect(await ssh(home, login, ['id', '-un'])).toMatchObject({
      code: 0,
      stdout: `${bastion.account.name}\n`,
    })
  })

  test('stand in the events and in the list of sessions by the login that was used', async () => {
    const { name } = bastion.account
    await bastion.closedSessions(1)
    const opened = (await bastion.events('session.open')).filter(({ user }) => user === 'asked')
    expect(opened[0]).toMatchObject({ account: name, device: 'srv1', service: 'ssh', method: 'interactive' })
    expect(opened[0]).not.toHaveProperty('domain')
    const mapped = (await bastion.events('session.open')).find(({ user }) => user === name)
    expect(mapped).toMatchObject({ account: name, method: 'mapping' })
    const rows = await bastion.broker.must<object[]>('GET', '/sessions?q=user%3Dasked')
    expect(rows[0]).toMatchObject({ domain: '', device: 'srv1' })
  })

  test('no password of theirs is in the log', () => {
    const log = bastion.broker.log()
    for (const secret of [bastion.account.password, 'canary-wrong', 'canary-typed', 'asked password']) {
      expect(log).not.toContain(secret)
    }
  })
})
