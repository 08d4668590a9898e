/** Real Telnet clients against the server's end of the protocol. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { COMMAND, OPTION } from '../../../proxies/telnet/codec/numbers.ts'
import { openUrgentData } from '../../../src/sockets/urgent.ts'
import { describeWithPeers, findProgram, type ProgramName } from '../../peers/program.ts'
import { openTerminal, type Terminal } from '../../peers/terminal.ts'
import { until } from '../../until.ts'
import { type EchoServer, startEchoServer } from './listener.ts'

let server: EchoServer
let terminal: Terminal | undefined

beforeEach(async () => {
  const opened = await openUrgentData()
  if (!('urgent' in opened)) throw new Error(opened.missing)
  server = await startEchoServer(opened.urgent)
})
afterEach(async () => {
  server.close()
  await terminal?.close()
  terminal = undefined
})

function start(program: ProgramName, ...args: string[]): Terminal {
  terminal = openTerminal(findProgram(program), args, { columns: 132, lines: 43 })
  return terminal
}
const soFar = () => JSON.stringify([server.events, server.typed()])
const told = (...event: unknown[]) =>
  until(
    () => `${JSON.stringify(event)}; came: ${soFar()}`,
    () => server.events.find((one) => JSON.stringify(one) === JSON.stringify(event)),
  )
const typed = (text: string) => {
  const bytes = Buffer.from(text).toString('latin1')
  return until(
    () => `${JSON.stringify(bytes)}; came: ${soFar()}`,
    () => server.typed().includes(bytes) || undefined,
  )
}

const CLIENTS: {
  program: ProgramName
  args: (port: number) => string[]
  type: string
  resizes: boolean
}[] = [
  {
    program: 'inetutils-telnet',
    args: (port) => ['127.0.0.1', String(port)],
    type: 'xterm-256color',
    resizes: true,
  },
  {
    program: 'busybox',
    args: (port) => ['telnet', '127.0.0.1', String(port)],
    type: 'xterm-256color',
    resizes: false,
  },
  {
    program: 'plink',
    args: (port) => ['-telnet', '-P', String(port), '127.0.0.1'],
    type: 'xterm',
    resizes: true,
  },
]

for (const { program, args, type, resizes } of CLIENTS) {
  describeWithPeers(`${program} as a Telnet client`, [program, 'python3'], () => {
    test('tells its terminal, and sends one Return for each', async () => {
      const client = start(program, ...args(server.port))
      await client.expect('welcome')
      await told('windowSize', { columns: 132, rows: 43 })
      await told('terminalType', type)
      client.send('one\r')
      await typed('one\r')
      await client.expect('one\r\n')
      client.send('zwölf\rÿ\x01\r')
      await typed('zwölf\rÿ\x01\r')
      expect(server.typed()).toBe(Buffer.from('one\rzwölf\rÿ\x01\r').toString('latin1'))
    })

    // busybox sends the size only once.
    if (!resizes) return
    test('tells a new size of its window', async () => {
      const client = start(program, ...args(server.port))
      await client.expect('welcome')
      await told('windowSize', { columns: 132, rows: 43 })
      client.resize(255, 50)
      await told('windowSize', { columns: 255, rows: 50 })
    })
  })
}

describeWithPeers('inetutils-telnet', ['inetutils-telnet', 'python3'], () => {
  const login = (...args: string[]) => start('inetutils-telnet', ...args, '127.0.0.1', String(server.port))

  test('shows every byte but its own escape', async () => {
    const client = login('-8E')
    await client.expect('welcome')
    await told('option', 'ours', OPTION.BINARY, true)
    const all = Uint8Array.from({ length: 256 }, (_, i) => i)
    server.endpoint().send(Uint8Array.of(...all, ...Buffer.from('<end>')))
    await client.expect('<end>')
    expect(client.bytes().includes(Buffer.from(all.subarray(128)))).toBe(true)
  })

  test('its commands arrive, and the urgent byte of its Synch', async () => {
    const client = login('-e', '^]')
    await client.expect('welcome')
    for (const command of ['ip', 'brk', 'ayt', 'synch']) {
      client.send('\x1d')
      await client.expect('telnet> ')
      client.send(`send ${command}\r`)
    }
    await told('command', COMMAND.DM)
    client.send('x\r')
    await typed('x\r')
    const commands = server.events.flatMap(([kind, code]) => (kind === 'command' ? [code] : []))
    expect(commands).toEqual(expect.arrayContaining([COMMAND.IP, COMMAND.BRK, COMMAND.AYT, COMMAND.DM]))
    // If the IAC of a Synch is lost, the 0xF2 stays, as a character.
    expect(server.typed()).not.toContain('\xf2')
  })

  test('takes a Synch', async () => {
    const client = login()
    await client.expect('welcome')
    server.endpoint().sendSynch()
    server.endpoint().send(Buffer.from('after\r\n'))
    await client.expect('after')
    expect(client.bytes().includes(0xf2)).toBe(false)
  })

  test('tells the user of its command line, and of a paste no byte is lost', async () => {
    const client = login('-l', 'ops1+root@srv1')
    await client.expect('welcome')
    await told('environment', [{ name: 'USER', value: 'ops1+root@srv1' }])
    const lines = Array.from({ length: 2000 }, (_, i) => `line ${i} of a paste`)
    client.send(`${lines.join('\r')}\r`)
    await typed(`${lines.at(-1)}\r`)
    expect(server.typed()).toBe(`${lines.join('\r')}\r`)
  })
})
