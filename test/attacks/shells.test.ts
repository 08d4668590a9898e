/** A user who may only copy files, against accounts whose shell parses a line differently from sh. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildExec } from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { scp } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { signInRaw } from './raw.ts'
import { noSession, openSession, PEERS } from './setting.ts'

const SHELLS = ['/usr/bin/fish', '/bin/tcsh']

describeWithPeers('an account with another shell', [...PEERS, 'fish', 'tcsh'], () => {
  let bastion: Bastion
  let home: string
  let local: string
  beforeAll(async () => {
    bastion = await startBastion({ subprotocols: ['SSH_SCP_UP', 'SSH_SCP_DOWN'] })
    home = bastion.account.home
    local = join(bastion.home.folder, 'local.txt')
    writeFileSync(local, 'something')
  })
  afterAll(async () => {
    await noSession(bastion)
    await bastion.stop()
  })
  beforeEach(async () => {
    for (const name of ['in', 'ran']) rmSync(join(home, name), { recursive: true, force: true })
    mkdirSync(join(home, 'in'))
    writeFileSync(join(home, 'in/a.txt'), 'a')
    writeFileSync(join(home, 'in/b c.txt'), 'b')
    await run('chown', ['-R', bastion.account.name, home])
  })

  /**
   * Sends a command on its own connection; returns the line that the user reads, when the channel has ended.
   */
  async function told(command: string): Promise<string> {
    const client = await signInRaw({
      port: bastion.broker.ports.ssh,
      user: bastion.login().user,
      password: bastion.password,
    })
    try {
      const id = await openSession(client)
      client.send(buildExec(id, true, command))
      const isClose = ([type]: Buffer): boolean => type === MSG.channelClose
      await until('the end of it', () => client.closed || client.received.some(isClose) || undefined)
      const said = client.received.filter(([type]) => type === MSG.channelExtendedData)
      return Buffer.concat(said.map((payload) => payload.subarray(13))).toString('latin1')
    } finally {
      client.destroy()
    }
  }

  describe.each(SHELLS)('%s', (shell) => {
    beforeAll(async () => {
      expect((await run('usermod', ['--shell', shell, bastion.account.name])).code).toBe(0)
    })

    test.each([
      ['an end of quotes that fish does not see', "scp -t 'x\\';touch ran;echo \\''"],
      ['the same for a download', "scp -f 'x\\';touch ran;echo \\''"],
      ['an escaped quote of sh', "scp -t it\\'s';touch ran;'"],
      ['a line of the history', "scp -t '!touch ran'"],
      ['the line itself, as the history has it', "scp -t 'x;touch ran;!#'"],
      ['a variable of cmd.exe', 'scp -t %COMSPEC%'],
      ['an escape of cmd.exe', "scp -t 'x^&touch ran'"],
      ['an end of quotes that PowerShell sees', "scp -t 'x\u2019;touch ran;\u2019'"],
      ['a substitution of PowerShell', "scp -t 'x$(touch ran)'"],
      ['a command of rc', "scp -t '`{touch ran}'"],
      ['the newline that an old csh makes of a byte', "scp -t 'x\x8atouch ran'"],
      ['a home folder of another', 'scp -t ~root/x'],
    ])('runs nothing: %s', async (_, command) => {
      const line = await told(command)
      expect(existsSync(join(home, 'ran'))).toBe(false)
      expect(line).toMatch(
        /^sallyport: you may not run commands on srv1: .*SSH_REMOTE_COMMAND.*: use scp without -O/,
      )
      const denied = (await bastion.events('channel.denied')).at(-1)
      expect(denied).toMatchObject({ subprotocol: 'SSH_REMOTE_COMMAND' })
    })

    test('copies by old SCP as ever: names with blanks, globs, the home folder', async () => {
      const copy = (from: string | { remote: string }, to: string | { remote: string }) =>
        scp(bastion.home, bastion.login(), from, to, ['-O'])
      for (const to of ['in/up', "'in/up two'", '"in/up=3,x@y~"', '~/in/up4', 'in/up\\ 5']) {
        const { code, stderr } = await copy(local, { remote: to })
        // Double quotes are not supported here: users quote by single ones, or by a backslash.
        if (to.startsWith('"')) expect(stderr).toMatch(/use scp without -O/)
        else expect({ to, code, stderr }).toEqual({ to, code: 0, stderr: '' })
      }
      for (const name of ['up', 'up two', 'up4', 'up 5'])
        expect(readFileSync(join(home, 'in', name), 'utf8')).toBe('something')
      const back = join(bastion.home.folder, 'back')
      mkdirSync(back, { recursive: true })
      expect((await copy({ remote: 'in/*.txt' }, back)).code).toBe(0)
      expect(readFileSync(join(back, 'a.txt'), 'utf8')).toBe('a')
      expect(readFileSync(join(back, 'b c.txt'), 'utf8')).toBe('b')
      // scp sends the name without quotes: two words.
      const { code, stderr } = await copy({ remote: 'in/b c.txt' }, back)
      expect(code).not.toBe(0)
      expect(stderr).toMatch(/use scp without -O/)
    })
  })

  test('rules for commands are asked of old SCP too, as it was typed and as it goes on', async () => {
    const rules = (...command_rules: string[]) =>
      bastion.broker.must('PUT', '/connectionpolicies/SSH', { command_rules })
    await rules('kill scp.* -t .*secret', 'notify scp -f "in/b c')
    expect(await told("scp -t in/'sec'ret")).toMatch(/rule/)
    const killed = (await bastion.events('command')).at(-1)
    expect(killed).toMatchObject({
      result: 'denied',
      object: "scp -t in/'sec'ret",
      subprotocol: 'SSH_SCP_UP',
    })
    await scp(bastion.home, bastion.login(), { remote: "'in/b c.txt'" }, join(bastion.home.folder, 'x'), [
      '-O',
    ])
    const noticed = (await bastion.events('command')).at(-1)
    expect(noticed).toMatchObject({ rule: 'notify scp -f "in/b c', object: "scp -f 'in/b c.txt'" })
    await rules()
  })
})
