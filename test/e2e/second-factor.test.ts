/** One-time codes at a whole bastion: made by oathtool, asked for by OpenSSH, Telnet and the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendAsIs } from '../attacks/requests.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { pictureOfBlocks, qrText } from '../peers/zbar.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { codesOf, type Enrolled, enrol } from './enrolment.ts'
import { sallyport } from './recorded.ts'

const PROMPT = 'One-time code (or a recovery code): '

describeWithPeers('who is enrolled', ['ssh', 'sshd', 'ssh-keygen', 'oathtool', 'zbarimg'], () => {
  let bastion: Bastion
  let factor: Enrolled

  /** Signs in at the API, apart from the administrator's own session there. */
  async function session(
    body: object,
  ): Promise<{ status: number; body: { error?: string; challenge?: { id: string } } }> {
    const { status, body: text } = await sendAsIs(
      bastion.broker,
      'POST',
      '/api/session',
      {},
      JSON.stringify(body),
    )
    return { status, body: JSON.parse(text) }
  }

  beforeAll(async () => {
    bastion = await startBastion({ broker: { terminals: {} } })
    factor = await enrol(bastion.broker, 'ops1', bastion.password)
    expect(factor.recovery).toHaveLength(10)
  })
  afterAll(async () => {
    hangUp()
    await bastion.stop()
  })

  test('is asked after the password, in a round of keyboard-interactive', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect(PROMPT)
    terminal.send(`${await factor.newCode()}\r`)
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
  })

  test('is asked after a key, whose success is a partial one', async () => {
    const { password: _, ...login } = bastion.login({ identity: bastion.key.path })
    const options = ['PreferredAuthentications=publickey,keyboard-interactive']
    const terminal = sshTerminal(bastion.home, { ...login, options }, [], { typed: true })
    await terminal.expect(PROMPT)
    terminal.send(`${factor.recovery[0]}\r`)
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
    expect(await bastion.events('factor.recovery', 1)).toMatchObject([
      { user: 'ops1', protocol: 'SSH', count: 9 },
    ])
    const alone = await ssh(bastion.home, { ...login, options: ['BatchMode=yes'] }, ['true'])
    expect([alone.code, alone.stdout]).toEqual([255, ''])
  })

  test('is asked at the terminal of Telnet, and at the API', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await telnet.sees('login: ')
    telnet.type(`${bastion.login().user}\r`)
    await telnet.sees('Password: ')
    telnet.type(`${bastion.password}\r`)
    await telnet.sees(PROMPT)
    telnet.type(`${await factor.newCode()}\r`)
    await telnet.sees(bastion.account.prompt)
    const asked = await session({ user: 'ops1', password: bastion.password })
    expect(asked.body).toMatchObject({
      error: 'second_factor_required',
      challenge: { prompts: [{ text: PROMPT }] },
    })
    const body = { challenge: asked.body.challenge!.id, answers: [factor.recovery[1]] }
    expect((await session(body)).status).toBe(200)
  })

  test('does not get in by a used recovery code, and without one after a reset on the machine', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect(PROMPT)
    terminal.send(`${factor.recovery[0]}\r`)
    await terminal.expect('Permission denied')
    await terminal.close()
    const [failure] = (await bastion.events('auth.failure')).slice(-1)
    expect(failure).toMatchObject({ user: 'ops1', reason: 'wrong_code' })
    const reset = () => sallyport(bastion.broker, ['admin', 'reset-factor', 'ops1'])
    expect(await reset()).toMatchObject({ code: 0, stdout: 'the second factor of ops1 is removed\n' })
    expect(await reset()).toMatchObject({
      code: 1,
      stderr: 'sallyport: the user ops1 has no second factor\n',
    })
    const run = await ssh(bastion.home, bastion.login(), ['id', '-un'])
    expect(run.stdout).toBe(`${bastion.account.name}\n`)
    const log = bastion.broker.log()
    expect([log.includes(factor.secret), factor.recovery.some((code) => log.includes(code))]).toEqual([
      false,
      false,
    ])
  })

  test('enrols in the dialogue of SSH, where a group requires it', async () => {
    await bastion.broker.must('PUT', '/usergroups/ops1-srv1-users', { second_factor: 'required' })
    const login = bastion.login()
    const terminal = sshTerminal(bastion.home, login, [], { typed: true, env: { LC_ALL: 'C.UTF-8' } })
    await terminal.expect('assword: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect('First code: ')
    const blocks = terminal
      .output()
      .split(/\r?\n/)
      .filter((line) => /^[ ▀▄█]{30,}$/.test(line))
    const uri = await qrText(pictureOfBlocks(blocks))
    expect(terminal.output()).toContain(uri)
    const newCode = codesOf(new URL(uri!).searchParams.get('secret')!)
    terminal.send(`${await newCode()}\r`)
    await terminal.expect('Enter goes on: ')
    expect(terminal.output().match(/[a-z2-7]{8}-[a-z2-7]{8}/g)).toHaveLength(10)
    terminal.send('\r')
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
    expect(await bastion.events('factor.enrol', 2)).toMatchObject([{}, { user: 'ops1', object: 'ops1' }])
    const asked = await session({ user: 'ops1', password: bastion.password })
    expect(asked.body).toMatchObject({ challenge: { prompts: [{ text: PROMPT }] } })
  })
})
