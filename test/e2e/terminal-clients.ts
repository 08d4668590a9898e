/** The real clients of Telnet and rlogin, and a bastion that listens for them. */
import type { BrokerPorts } from '../peers/broker.ts'
import { findProgram, type ProgramName } from '../peers/program.ts'
import { openTerminal, type Terminal, type TerminalOptions } from '../peers/terminal.ts'
import { type Bastion, type BastionOptions, startBastion } from './bastion.ts'

export interface TerminalClientKind {
  name: string
  program: ProgramName
  protocol: 'TELNET' | 'RLOGIN'
  /** `login`: the user name that the client sends by itself. */
  args: (port: number, login: string | undefined) => string[]
  /** The client's terminal type for TERM=xterm-256color. */
  type: string
  /** Whether it reports a new size of its window. */
  resizes: boolean
  /** Whether it leaves lines, echo and Ctrl-C to its own terminal. */
  keepsLines?: true
}

export const TELNET_CLIENTS: readonly TerminalClientKind[] = [
  {
    name: 'inetutils telnet',
    program: 'inetutils-telnet',
    protocol: 'TELNET',
    args: (port, login) => ['-E', ...(login === undefined ? [] : ['-l', login]), '127.0.0.1', String(port)],
    type: 'xterm-256color',
    resizes: true,
  },
  {
    name: 'busybox telnet',
    program: 'busybox',
    protocol: 'TELNET',
    args: (port, login) => [
      'telnet',
      ...(login === undefined ? [] : ['-l', login]),
      '127.0.0.1',
      String(port),
    ],
    type: 'xterm-256color',
    resizes: false,
  },
  {
    name: 'plink -telnet',
    program: 'plink',
    protocol: 'TELNET',
    args: (port, login) => [
      '-telnet',
      ...(login === undefined ? [] : ['-l', login]),
      '-P',
      String(port),
      '127.0.0.1',
    ],
    type: 'xterm',
    resizes: true,
  },
]

export const RLOGIN_CLIENTS: readonly TerminalClientKind[] = [
  {
    name: 'rsh-redone rlogin',
    program: 'rsh-redone-rlogin',
    protocol: 'RLOGIN',
    args: (port, login = '') => ['-l', login, '-p', String(port), '127.0.0.1'],
    type: 'xterm-256color',
    resizes: true,
  },
  {
    name: 'plink -rlogin',
    program: 'plink',
    protocol: 'RLOGIN',
    args: (port, login = '') => ['-rlogin', '-l', login, '-P', String(port), '127.0.0.1'],
    type: 'xterm',
    resizes: true,
    keepsLines: true,
  },
]

export interface TerminalPeople {
  bastion: Bastion
  /** The login string of ops1 for the SSH target. */
  login: string
  /** Starts a client, which sends `login` if given. */
  start(kind: TerminalClientKind, login?: string, options?: TerminalOptions): Terminal
  /** Starts a client as ops1 at the target, up to the shell's prompt there. */
  signIn(kind: TerminalClientKind, options?: TerminalOptions): Promise<Terminal>
  /** Closes the terminals of a test. */
  closeTerminals(): Promise<void>
}

/** Starts a client on a terminal of 132 × 43, which sends `login` if given. */
export function startClient(
  { program, protocol, args }: TerminalClientKind,
  { telnet = 0, rlogin = 0 }: BrokerPorts,
  login?: string,
  options: TerminalOptions = {},
): Terminal {
  const port = protocol === 'TELNET' ? telnet : rlogin
  return openTerminal(findProgram(program), args(port, login), { columns: 132, lines: 43, ...options })
}

/** An SSH target, and a bastion that listens for Telnet and rlogin. */
export async function startTerminalPeople(options: BastionOptions = {}): Promise<TerminalPeople> {
  const bastion = await startBastion({
    credential: 'password',
    ...options,
    broker: { terminals: {}, ...options.broker },
  })
  const login = `ops1+${bastion.account.name}@srv1`
  const terminals: Terminal[] = []
  const start: TerminalPeople['start'] = (kind, name, size) => {
    const terminal = startClient(kind, bastion.broker.ports, name, size)
    terminals.push(terminal)
    return terminal
  }
  return {
    bastion,
    login,
    start,
    async signIn(kind, size) {
      const terminal = start(kind, login, size)
      // busybox cannot send it.
      if ((await terminal.expect(/login: (\S*)/)).endsWith('login: ')) terminal.send(`${login}\r`)
      await terminal.expect('Password: ')
      terminal.send(`${bastion.password}\r`)
      await terminal.expect(bastion.account.prompt)
      return terminal
    },
    async closeTerminals() {
      for (const terminal of terminals.splice(0)) await terminal.close()
    },
  }
}
