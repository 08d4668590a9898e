/** Telnet and rlogin targets that are broken, hostile, or simply unexpected. */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { CONTROL_BURST } from '../../proxies/telnet/codec/endpoint.ts'
import { COMMAND } from '../../proxies/telnet/codec/numbers.ts'
import { framesOf, streamOf } from '../e2e/recorded.ts'
import { startTerminalBastion, type TerminalBastion, type TerminalService } from '../e2e/terminals.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type FalseTerminal, type Manner, startFalseTerminal } from './false-terminal.ts'

const PASSWORD = 'Sec-ret1'
const IAC = 0xff

describeWithPeers('a target with a terminal', ['ssh'], () => {
  let bastion: TerminalBastion
  const targets: FalseTerminal[] = []
  const terminals: Terminal[] = []
  let devices = 0

  beforeAll(async () => {
    bastion = await startTerminalBastion()
  })
  afterAll(() => bastion.stop())
  afterEach(async () => {
    for (const terminal of terminals.splice(0)) await terminal.close()
    for (const target of targets.splice(0)) await target.stop()
  })

  async function reach(manner: Manner, more: Partial<TerminalService> = {}) {
    const target = await startFalseTerminal(manner)
    targets.push(target)
    const login = await bastion.add({
      device: `gear-${++devices}`,
      protocol: 'TELNET',
      port: target.port,
      credentials: [{ type: 'password', password: PASSWORD }],
      ...more,
      // These targets prompt for a password only.
      policy: { password_prompt: '(?i)password:\\s*$', ...more.policy },
    })
    return { target, login }
  }
  async function open(manner: Manner, more: Partial<TerminalService> = {}) {
    const { target, login } = await reach(manner, more)
    const terminal = sshTerminal(bastion.home, login)
    terminals.push(terminal)
    return { target, terminal }
  }
  async function fails(terminal: Terminal, message: RegExp) {
    await terminal.expect(message)
    expect(await terminal.exit()).toBe(255)
    const row = await bastion.closed()
    expect(row.result).toBe('failure')
    expect(row.reason).toMatch(message)
    expect(JSON.stringify([row, terminal.output()])).not.toContain(PASSWORD)
  }
  const asksPassword: Manner = async (socket, heard) => {
    socket.write('Password: ')
    await heard(`${PASSWORD}\r`)
  }
  const letsIn: Manner = async (socket, heard) => {
    await asksPassword(socket, heard)
    socket.write('\r\nsw1> ')
  }

  describe('does not let the bastion in', () => {
    test('and says so', async () => {
      const { terminal } = await open(async (socket, heard) => {
        await asksPassword(socket, heard)
        socket.write('\r\nAccess denied\r\n')
      })
      await fails(terminal, /refused the password of admin: it said "Access denied"/)
    })

    test('and closes', async () => {
      const { terminal } = await open((socket) => socket.end('Too many users\r\n'))
      await fails(terminal, /closed the connection during the login; it said "Too many users"/)
    })

    test('and says nothing', async () => {
      const { terminal } = await open(() => undefined, { policy: { login_timeout: 1 } })
      await fails(terminal, /showed no prompt that the connection policy knows within 1 s: it said nothing/)
    })

    test('and never stops talking', async () => {
      const line = Buffer.from(`${'talk '.repeat(200)}\r\n`)
      const { terminal } = await open((socket) => {
        const talk = () => {
          while (socket.writable && socket.write(line));
        }
        socket.on('drain', talk)
        talk()
      })
      await fails(terminal, /said more than 256 KiB before the login was over/)
    })

    test('and repeats the password while it does not', async () => {
      const { terminal } = await open(async (socket, heard) => {
        await asksPassword(socket, heard)
        socket.end(`\r\nbad password ${PASSWORD} from \x1b]0;you\x07\r\n`)
      })
      await fails(terminal, /refused the password of admin: it said "bad password {1,2}from/)
    })
  })

  test('asks for the password before it has asked for the login', async () => {
    const target = await startFalseTerminal((socket) => socket.write('Message from ops2:\r\nPassword: '))
    targets.push(target)
    const login = await bastion.add({
      device: 'gear-asks',
      protocol: 'TELNET',
      port: target.port,
      credentials: [{ type: 'password', password: PASSWORD }],
    })
    const terminal = sshTerminal(bastion.home, login)
    terminals.push(terminal)
    await fails(terminal, /asks for a password and has not asked for the login admin/)
    expect(target.received().toString()).not.toContain(PASSWORD)
  })

  test('echoes the password', async () => {
    const { terminal, target } = await open(async (socket, heard) => {
      await asksPassword(socket, heard)
      // Send pieces, as from a terminal.
      for (const character of PASSWORD) socket.write(character)
      socket.write('\r\nsw1> ')
      await heard('exit\r')
      socket.end()
    })
    await terminal.expect('sw1> ')
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
    expect(target.received().toString('latin1')).toBe(`${PASSWORD}\r\0exit\r\0`)
    const frames = await framesOf(bastion.broker, (await bastion.closed()).id)
    expect(terminal.output() + JSON.stringify(frames)).not.toContain(PASSWORD)
    expect(streamOf(frames, 'output').toString()).toBe('Password: \r\nsw1> ')
  })

  describe('breaks the protocol', () => {
    test.each([
      ['negotiates without end', Buffer.alloc(3 * (CONTROL_BURST + 500), Buffer.of(IAC, 251, 200))],
      ['has a subnegotiation without end', Buffer.concat([Buffer.of(IAC, 250, 24), Buffer.alloc(10_000, 1)])],
    ])('%s', async (_, bytes) => {
      const { terminal } = await open((socket) => socket.write(bytes))
      await fails(terminal, /broke the Telnet protocol: telnet: /)
    })

    test('after the login too', async () => {
      const { terminal } = await open(async (socket, heard) => {
        await letsIn(socket, heard)
        await heard('go\r')
        socket.write(Buffer.alloc(3 * (CONTROL_BURST + 500), Buffer.of(IAC, 251, 200)))
      })
      await terminal.expect('sw1> ')
      terminal.send('go\r')
      await fails(terminal, /broke the Telnet protocol: telnet: /)
    })
  })

  test('is logged in to by one’s own name and password', async () => {
    const { terminal, target } = await open(
      async (socket, heard) => {
        socket.write('login: ')
        await heard('ops1\r')
        socket.write('Password: ')
        await heard('ops1 password\r')
        socket.write('\r\nsw1> ')
      },
      { by: 'account_mappings' },
    )
    await terminal.expect('sw1> ')
    expect(target.received().toString()).toBe('ops1\r\0ops1 password\r\0')
  })

  test('has its session ended with its terminal, where the client stays for more', async () => {
    const { login } = await reach(async (socket, heard) => {
      await letsIn(socket, heard)
      await heard('exit\r')
      socket.end()
    })
    const options = [
      `ControlPath=${join(bastion.home.folder, 'm')}`,
      'ControlMaster=yes',
      'ControlPersist=yes',
    ]
    const terminal = sshTerminal(bastion.home, { ...login, options })
    terminals.push(terminal)
    await terminal.expect('sw1> ')
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
    expect(await bastion.closed()).toMatchObject({ result: 'success' })
  })

  test('gets and gives every byte', async () => {
    const { terminal, target } = await open(async (socket, heard) => {
      await letsIn(socket, heard)
      await heard('go\r')
      socket.write(Buffer.of(0x3c, IAC, IAC, 0x80, 0x3e))
    })
    await terminal.expect('sw1> ')
    terminal.send(Uint8Array.of(IAC, 0x80, ...Buffer.from('go\r')))
    await until('the bytes', () => terminal.bytes().includes(Buffer.of(0x3c, IAC, 0x80, 0x3e)) || undefined)
    expect(target.received().includes(Buffer.of(IAC, IAC, 0x80))).toBe(true)
  })

  test('gets a line’s break', async () => {
    const { terminal, target } = await open(letsIn)
    await terminal.expect('sw1> ')
    terminal.send('\r')
    await until('Return', () => target.received().includes(`${PASSWORD}\r\0\r\0`) || undefined)
    // OpenSSH's own escape for it, at the beginning of a line.
    terminal.send('~B')
    await until('the break', () => target.received().includes(Buffer.of(IAC, COMMAND.BRK)) || undefined)
  })

  test('takes ten megabytes that were pasted, all of them', async () => {
    const line = `${'paste '.repeat(20)}\n`
    const input = line.repeat(Math.ceil((10 * 1024 * 1024) / line.length))
    const { target, login } = await reach(async (socket, heard) => {
      await letsIn(socket, heard)
      await heard('end of it')
      socket.end()
    })
    const done = await ssh(bastion.home, login, [], {
      flags: ['-tt'],
      input: `${input}end of it\n`,
      timeout: 300_000,
    })
    expect(done.code, done.stderr).toBe(0)
    const typed = target.received().toString('latin1').slice(`${PASSWORD}\r\0`.length)
    expect(typed.length).toBe(input.length + 'end of it\n'.length)
    expect(typed.startsWith(line)).toBe(true)
  })

  describe('speaks rlogin', () => {
    const rlogin = { protocol: 'RLOGIN' } as const
    const accepts: Manner = async (socket, heard) => {
      await heard('/38400\0')
      socket.write('\0')
      await letsIn(socket, heard)
    }

    test('and is told whom the policy names, from a port of its choice', async () => {
      const policy = { client_user: 'bastion', privileged_port: false }
      const { terminal, target } = await open(accepts, { ...rlogin, policy })
      await terminal.expect('sw1> ')
      expect(target.received().toString('latin1')).toContain('\0bastion\0admin\0xterm-256color/38400\0')
      expect(target.ports.every((port) => port >= 1024)).toBe(true)
    })

    test.runIf(process.getuid?.() === 0)('and is come to from a port below 1024', async () => {
      const { terminal, target } = await open(accepts, rlogin)
      await terminal.expect('sw1> ')
      expect(target.received().toString('latin1')).toContain('\0admin\0admin\0')
      expect(target.ports.every((port) => port >= 512 && port < 1024)).toBe(true)
    })

    test('and is told nobody whom it could trust, where a person names the login', async () => {
      const { target, login } = await reach(accepts, { ...rlogin, by: 'interactive_logins' })
      const [who, device] = login.user.split('+')
      const terminal = sshTerminal(bastion.home, { ...login, user: `${who}+root@${device}` })
      terminals.push(terminal)
      await terminal.expect('Password: ')
      expect(target.received().toString('latin1')).toContain('\0?\0root\0')
    })

    test('and asks for the window’s size together with its first words', async () => {
      const { terminal, target } = await open(async (socket, heard) => {
        await accepts(socket, heard)
        await heard('go\r')
        // Sent without urgency, which a target's system may lose: the position decides.
        socket.write('\x80and more', 'latin1')
      }, rlogin)
      await terminal.expect('sw1> ')
      terminal.send('go\r')
      await terminal.expect('and more')
      await until(
        'the size',
        () => target.received().includes(Buffer.from('\xff\xffss', 'latin1')) || undefined,
      )
      expect(terminal.bytes().includes(0x80)).toBe(false)
    })

    test('and refuses', async () => {
      const { terminal } = await open((socket) => socket.end('\x01rlogind: Permission denied.\r\n'), rlogin)
      await fails(terminal, /refused the session: rlogind: Permission denied\./)
    })
  })
})
