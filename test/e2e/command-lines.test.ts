/**
 * Command lines typed through the bastion in a real terminal: events, the recording, and the effect of rules.
 */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { missingPackages } from '../peers/program.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import { fieldsOf, framesOf } from './recorded.ts'

let bastion: Bastion
let closed = 0

beforeAll(async () => {
  bastion = await startBastion()
  const { must } = bastion.broker
  await must('POST', '/connectionpolicies', {
    policy_name: 'watched',
    command_rules: ['notify \\bsudo\\b', 'kill forbidden', 'kill rm -\\S*r\\S* /$'],
  })
  await must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'watched' })
})
afterAll(() => bastion.stop())

/** Returns the session that has just ended. */
async function ended(): Promise<SessionRow> {
  return (await bastion.closedSessions(++closed)).at(-1)!
}

async function commandsOf(session: string): Promise<Record<string, unknown>[]> {
  const events = await bastion.broker.must<Record<string, unknown>[]>('GET', `/sessions/${session}/events`)
  return events.filter(({ event }) => event === 'command')
}

/** Starts a shell with a known prompt. */
async function shell() {
  const terminal = sshTerminal(bastion.home, bastion.login())
  await terminal.expect('$ ')
  terminal.send("PS1='ready''$ '\r")
  await terminal.expect('ready$ ')
  const say = async (keys: string, answer: string | RegExp = 'ready$ ') => {
    terminal.send(keys)
    return await terminal.expect(answer)
  }
  return { terminal, say }
}

test('typed, recalled and searched lines are events and frames; passwords and editors are not', async () => {
  const { terminal, say } = await shell()
  await say('echo one\r', /one\r\n[^\n]*ready\$ /)
  await say('echo twx\x7fo\r', /two\r\n[^\n]*ready\$ /)
  await say('\x1b[A', 'echo two')
  await say('\x1b[A', 'one')
  await say('\r', /one\r\n[^\n]*ready\$ /)
  await say('read -s -p "Password: " x; echo\r', /[^"]Password: /)
  await say('Sup3rSecret\r')
  await say('vi -u NONE /tmp/none\r', '~')
  await say('ihello\x1b:q!\r')
  terminal.send('exit\r')
  await terminal.exit()
  const { id } = await ended()
  const commands = await commandsOf(id)
  expect(commands.map(({ object, confidence }) => [object, confidence]).slice(1)).toEqual([
    ['echo one', 'certain'],
    ['echo two', 'certain'],
    ['echo one', 'certain'],
    ['read -s -p "Password: " x; echo', 'certain'],
    ['vi -u NONE /tmp/none', 'certain'],
    ['exit', 'certain'],
  ])
  expect(commands[1]).toMatchObject({ subprotocol: 'SSH_SHELL', user: 'ops1' })
  expect(bastion.broker.log()).not.toContain('Sup3rSecret')
  const frames = fieldsOf(await framesOf(bastion.broker, id), 'command')
  expect(frames.map(({ line }) => line)).toEqual(commands.map(({ object }) => object))
})

test('passwords with arrow keys in them, suspended programs and pagers end no session', async () => {
  const { terminal, say } = await shell()
  await say('read -s -p "Password: " x; echo\r', /[^"]Password: /)
  await say('Sup3r\x1b[DSecret\t\r')
  // A shell that has not begun the program yet would take the key itself.
  await say(`sh -c 'echo begun; exec sleep 60'\r`, /\rbegun\r\n/)
  await say('\x1a', /Stopped[^\n]*\n[^\n]*ready\$ /)
  await say('kill %1; seq 100 | less\r', ':')
  await say('\x1b[B q')
  await say('echo after\r', /\rafter\r\n[^\n]*ready\$ /)
  terminal.send('exit\r')
  expect(await terminal.exit()).toBe(0)
  const { id } = await ended()
  const objects = (await commandsOf(id)).map(({ object }) => object)
  expect(objects.slice(-4)).toEqual([
    `sh -c 'echo begun; exec sleep 60'`,
    'kill %1; seq 100 | less',
    'echo after',
    'exit',
  ])
  expect(bastion.broker.log()).not.toContain('Sup3r')
})

test('a rule that notifies: the event is a warning that names it, of a terminal and of an exec', async () => {
  const { terminal, say } = await shell()
  await say('echo sudo make\r', /\rsudo make\r\n[^\n]*ready\$ /)
  terminal.send('exit\r')
  await terminal.exit()
  const typed = (await commandsOf((await ended()).id)).find(({ rule }) => rule !== undefined)
  const rule = 'notify \\bsudo\\b'
  expect(typed).toMatchObject({ object: 'echo sudo make', rule })
  const logged = (await bastion.events('command')).find(({ object }) => object === 'echo sudo make')
  expect(logged).toMatchObject({ severity: 'warning', rule })
  expect(await ssh(bastion.home, bastion.login(), ['echo sudo'])).toMatchObject({ code: 0, stdout: 'sudo\n' })
  expect(await commandsOf((await ended()).id)).toMatchObject([
    {
      object: 'echo sudo',
      rule,
      confidence: 'certain',
      subprotocol: 'SSH_REMOTE_COMMAND',
    },
  ])
})

test.runIf(missingPackages(['sudo']).length === 0)(
  'the password that sudo asks for is in no event',
  async () => {
    const { terminal, say } = await shell()
    await say('sudo -k true\r', /password for [^:]*:/)
    await say(`${bastion.account.password}\r`)
    await say('echo after\r', /\rafter\r\n[^\n]*ready\$ /)
    terminal.send('exit\r')
    await terminal.exit()
    const lines = (await commandsOf((await ended()).id)).map(({ object }) => object)
    expect(lines.slice(1)).toEqual(['sudo -k true', 'echo after', 'exit'])
    expect(bastion.broker.log()).not.toContain(bastion.account.password)
  },
)

describe('a rule that kills', () => {
  const rule = 'kill forbidden'
  const reason = `the command is not allowed here: rule ${JSON.stringify(rule)}`

  async function expectKilled(object: string | undefined): Promise<void> {
    const row = await ended()
    expect(row).toMatchObject({ result: 'killed', killed: true, reason })
    const killed = (await bastion.events('session.kill', 1)).at(-1)
    expect(killed).toMatchObject({ session: row.id, reason })
    expect(killed).not.toHaveProperty('user')
    const last = (await commandsOf(row.id)).findLast((event) => event['rule'] === rule)
    expect(last).toMatchObject({ result: 'denied', ...(object && { object }) })
  }

  test('stops a line that is typed, before the target has it', async () => {
    const { terminal } = await shell()
    terminal.send('touch /tmp/forbidden-$$')
    await terminal.expect('$$')
    terminal.send('; echo r"a"n')
    await terminal.expect('r"a"n')
    terminal.send('\r')
    expect(await terminal.exit()).toBe(255)
    expect(terminal.output()).toContain(`sallyport: ${reason}`)
    expect(terminal.output()).not.toMatch(/[\r\n]ran/)
    await expectKilled('touch /tmp/forbidden-$$; echo r"a"n')
  })

  test('stops a line out of the history, and one that comes at once with its Return', async () => {
    const { terminal, say } = await shell()
    await say('echo for""bidden r"a"n\r', /\rforbidden ran\r\n[^\n]*ready\$ /)
    await say('\x1b[A', 'r"a"n')
    terminal.send('\x01\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[3~\x1b[3~\r')
    expect(await terminal.exit()).toBe(255)
    await expectKilled('echo forbidden r"a"n')
    const second = await shell()
    second.terminal.send('echo forbidden r"a"n\r')
    expect(await second.terminal.exit()).toBe(255)
    expect(second.terminal.output()).not.toContain('forbidden ran')
    await expectKilled('echo forbidden r"a"n')
  })

  test('in a paste of many lines: what stands before it runs, it does not, nor what follows', async () => {
    const { terminal } = await shell()
    terminal.send('echo l1 r"a"n\recho l2 r"a"n\recho forbidden r"a"n\recho l4 r"a"n\r')
    expect(await terminal.exit()).toBe(255)
    const output = terminal.output()
    expect(output).toContain('l1 ran')
    expect(output).not.toContain('forbidden ran')
    expect(output).not.toContain('l4 ran')
    await expectKilled('echo forbidden r"a"n')
  })

  test('lets a paste of two megabytes through whole', async () => {
    const text = Array.from({ length: 2_000 }, (_, n) => `line ${n} ${'of a paste '.repeat(100)}\n`).join('')
    const { stdout } = await ssh(bastion.home, bastion.login(), ['stty -echo; sha256sum'], {
      flags: ['-tt'],
      input: `${text}\x04`,
      timeout: 300_000,
    })
    expect(stdout.slice(-100)).toContain(createHash('sha256').update(text).digest('hex'))
    await ended()
  }, 300_000)

  test('in a line that goes on with others', async () => {
    const { terminal, say } = await shell()
    await say('echo forb\\\r', '> ')
    terminal.send('idden r"a"n\r')
    expect(await terminal.exit()).toBe(255)
    expect(terminal.output()).not.toContain('forbidden ran')
    await expectKilled('idden r"a"n')
  })

  test('stops an exec, and the input of a shell without a terminal', async () => {
    const exec = await ssh(bastion.home, bastion.login(), ['echo ran; : forbidden'])
    expect(exec).toMatchObject({ code: 255, stdout: '' })
    expect(exec.stderr).toContain(`sallyport: ${reason}`)
    await expectKilled('echo ran; : forbidden')
    const piped = await ssh(bastion.home, bastion.login(), [], {
      flags: ['-T'],
      input: 'echo first\nsleep 0.1\n: forbidden; echo ran\n',
    })
    expect(piped.code).toBe(255)
    expect(piped.stdout).not.toContain('ran')
    await expectKilled(undefined)
  })
})

test('a thousand lines in a second leave a bounded number of events, and one that counts the rest', async () => {
  const { terminal, say } = await shell()
  await say('cat > /dev/null\r', '\n')
  for (let n = 0; n < 1000; n++) terminal.send(`line ${n}\r`)
  await terminal.expect('line 999', 60_000)
  terminal.send('\x04')
  await terminal.expect('ready$ ')
  terminal.send('exit\r')
  await terminal.exit()
  const { id } = await ended()
  const commands = await commandsOf(id)
  const omitted = commands.flatMap(({ reason }) =>
    Number(/^(\d+) command line/.exec(String(reason))?.[1] ?? []),
  )
  // A line without timely output is logged without its text.
  const told = commands.filter(({ reason }) => !/^\d+ command line/.test(String(reason)))
  expect(told.length).toBeLessThan(200)
  const sum = omitted.reduce((total, count) => total + count, 0)
  const frames = fieldsOf(await framesOf(bastion.broker, id), 'command')
  expect(frames.length).toBe(told.length + sum)
  expect(frames.length).toBeGreaterThan(900)
}, 300_000)
