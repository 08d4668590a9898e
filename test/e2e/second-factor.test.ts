/** One-time codes at a whole bastion: made by oathtool, asked for by OpenSSH, Telnet and the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendAsIs, signInAs } from '../attacks/requests.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

const STEP = 30
const PROMPT = 'One-time code (or a recovery code): '

describeWithPeers('who is enrolled', ['ssh', 'sshd', 'ssh-keygen', 'oathtool'], () => {
  let bastion: Bastion
  let secret: string
  let recovery: string[]
  let last = 0

  /** Makes a code of a step that was not used yet. */
  async function newCode(): Promise<string> {
    last = Math.max(last + 1, Math.floor(Date.now() / 1000 / STEP) - 1)
    const args = ['--totp', '--base32', '--now', `@${last * STEP}`, secret]
    return (await run(findProgram('oathtool'), args)).stdout.trim()
  }

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
    const { broker, password } = bastion
    const cookie = await signInAs(broker, 'ops1', password)
    const call = async (path: string, body: object) => {
      const answer = await sendAsIs(
        broker,
        'POST',
        `/api/users/ops1/totp${path}`,
        { cookie },
        JSON.stringify(body),
      )
      return JSON.parse(answer.body) as { secret: string; recovery_codes: string[] }
    }
    secret = (await call('', { password })).secret
    recovery = (await call('/confirm', { code: await newCode() })).recovery_codes
    expect(recovery).toHaveLength(10)
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
    terminal.send(`${await newCode()}\r`)
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
  })

  test('is asked after a key, whose success is a partial one', async () => {
    const { password: _, ...login } = bastion.login({ identity: bastion.key.path })
    const options = ['PreferredAuthentications=publickey,keyboard-interactive']
    const terminal = sshTerminal(bastion.home, { ...login, options }, [], { typed: true })
    await terminal.expect(PROMPT)
    terminal.send(`${recovery[0]}\r`)
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
    telnet.type(`${await newCode()}\r`)
    await telnet.sees(bastion.account.prompt)
    const asked = await session({ user: 'ops1', password: bastion.password })
    expect(asked.body).toMatchObject({
      error: 'second_factor_required',
      challenge: { prompts: [{ text: PROMPT }] },
    })
    const body = { challenge: asked.body.challenge!.id, answers: [recovery[1]] }
    expect((await session(body)).status).toBe(200)
  })

  test('does not get in by a used recovery code, and without one after a reset on the machine', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect(PROMPT)
    terminal.send(`${recovery[0]}\r`)
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
    expect([log.includes(secret), recovery.some((code) => log.includes(code))]).toEqual([false, false])
  })

  test('enrols in the dialogue of SSH, where a group requires it', async () => {
    await bastion.broker.must('PUT', '/usergroups/ops1-srv1-users', { second_factor: 'required' })
    // OpenSSH shows what is said before the prompts as a message of its log.
    const login = bastion.login({ options: ['LogLevel=INFO'] })
    const terminal = sshTerminal(bastion.home, login, [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect('First code: ')
    secret = /[?&]secret=([A-Z2-7]+)&/.exec(terminal.output())![1]!
    last = 0
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
