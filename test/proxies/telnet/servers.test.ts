/** The client's end of the protocol against a real telnetd, over a connection made like a session's. */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { dial } from '../../../proxies/net/dial.ts'
import { takeReads } from '../../../proxies/net/shared-read.ts'
import { TelnetEndpoint } from '../../../proxies/telnet/codec/endpoint.ts'
import { COMMAND, OPTION } from '../../../proxies/telnet/codec/numbers.ts'
import { openUrgentData } from '../../../src/sockets/urgent.ts'
import { INETD_PEERS, type Inetd, startInetd } from '../../peers/inetd.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../../peers/users.ts'
import { until } from '../../until.ts'

let inetd: Inetd
let user: SystemUser
let socket: Socket | undefined
let endpoint: TelnetEndpoint
/** The output since the last match, and from the start. */
let shown: string
let all: string

beforeAll(async () => {
  if (!canCreateUsers()) return
  inetd = await startInetd()
  user = await createSystemUser()
})
afterAll(async () => {
  await inetd?.stop()
  await user?.remove()
})
afterEach(() => socket?.destroy())

async function login(): Promise<void> {
  const opened = await openUrgentData()
  if (!('urgent' in opened)) throw new Error(opened.missing)
  const { urgent } = opened
  const { signal } = new AbortController()
  const connection = await dial('127.0.0.1', inetd.telnet, { name: 'telnetd', signal, urgent })
  socket = connection
  shown = ''
  all = ''
  endpoint = new TelnetEndpoint({
    role: 'client',
    terminalType: 'xterm-256color',
    windowSize: { columns: 133, rows: 41 },
    now: () => performance.now(),
    write: (bytes) => void connection.write(bytes),
    writeUrgent: (bytes) => urgent.write(connection, bytes),
    visitor: {
      data: (bytes) => {
        const text = Buffer.from(bytes).toString('latin1')
        shown += text
        all += text
      },
      command: () => undefined,
    },
  })
  takeReads(connection, (view) => endpoint.receive(view))
  connection.resume()
  endpoint.start()
  await shows('login: ')
  type(`${user.name}\r`)
  await shows('Password: ')
  type(`${user.password}\r`)
  await shows(user.prompt)
}

const type = (text: string) => endpoint.send(Buffer.from(text))
/** Waits for the text, and forgets the output up to its end. */
const shows = (text: string) =>
  until(
    () => `${JSON.stringify(text)}; came: ${JSON.stringify(shown.slice(-200))}`,
    () => {
      const at = shown.indexOf(text)
      if (at < 0) return undefined
      shown = shown.slice(at + text.length)
      return true
    },
  )

describeWithPeers('inetutils telnetd', canCreateUsers() ? INETD_PEERS : [], () => {
  const root = test.runIf(canCreateUsers())

  root('logs in, knows the terminal and its size', async () => {
    await login()
    expect(endpoint.isOn('theirs', OPTION.ECHO)).toBe(true)
    type('echo "$(stty size) $TERM"\r')
    await shows('\r41 133 xterm-256color\r\n')
    endpoint.windowSize = { columns: 255, rows: 50 }
    type('echo "now $(stty size)"\r')
    await shows('\rnow 50 255\r\n')
  })

  root('gets every byte, and gives it back', async () => {
    await login()
    type('stty raw -echo; cat\r')
    await shows('cat\r\n')
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    endpoint.send(Uint8Array.of(...bytes, ...Buffer.from('.end')))
    await shows(`${Buffer.from(bytes).toString('latin1')}.end`)
  })

  root('is interrupted, and its urgent answer leaves nothing in the output', async () => {
    await login()
    type('cat\r')
    await shows('cat\r\n')
    type('\x03')
    await shows('^C')
    await shows(user.prompt)
    type('cat; echo done\r')
    await shows('echo done\r\n')
    endpoint.sendCommand(COMMAND.IP)
    endpoint.sendSynch()
    await shows(user.prompt)
    type('echo rest\r')
    await shows('\rrest\r\n')
    // The rest of IAC DM when its urgent byte is lost.
    expect(all).not.toContain('\xf2')
  })

  root('sends a megabyte', async () => {
    await login()
    type('head -c 1000000 /dev/zero | tr "\\0" x; echo; echo over\r')
    await shows(`${'x'.repeat(1_000_000)}\r\nover\r\n`)
  })
})
