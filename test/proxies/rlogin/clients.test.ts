/** Real rlogin clients against the server's end of the protocol. */
import { Buffer } from 'node:buffer'
import { userInfo } from 'node:os'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Arrivals } from '../../../proxies/net/arrivals.ts'
import { takeReads } from '../../../proxies/net/shared-read.ts'
import { ClientStream, type WindowSize } from '../../../proxies/rlogin/codec/client-stream.ts'
import { CONTROL } from '../../../proxies/rlogin/codec/control.ts'
import { ACCEPTED, type Handshake, HandshakeReader } from '../../../proxies/rlogin/codec/handshake.ts'
import type { Bound } from '../../../src/sockets/accept.ts'
import { openUrgentData } from '../../../src/sockets/urgent.ts'
import { describeWithPeers, findProgram, type ProgramName } from '../../peers/program.ts'
import { openTerminal, type Terminal } from '../../peers/terminal.ts'
import { until } from '../../until.ts'
import { listening } from '../listening.ts'

let arrivals: Arrivals
let bound: Bound
let port: number
let handshake: Handshake | undefined
let sizes: WindowSize[]
let typed: string
let terminal: Terminal | undefined

beforeEach(async () => {
  const opened = await openUrgentData()
  if (!('urgent' in opened)) throw new Error(opened.missing)
  const { urgent } = opened
  sizes = []
  typed = ''
  handshake = undefined
  arrivals = new Arrivals({
    graceMs: 60_000,
    onSocket: (socket) => {
      const reader = new HandshakeReader()
      const stream = new ClientStream({
        data: (bytes) => {
          typed += Buffer.from(bytes).toString('latin1')
        },
        windowSize: (size) => sizes.push(size),
      })
      takeReads(socket, (view) => {
        if (handshake) {
          stream.feed(view)
          return
        }
        const found = reader.feed(view)
        if (!found) return
        handshake = found.handshake
        socket.write(ACCEPTED)
        socket.write('welcome\r\n')
        urgent.write(socket, Uint8Array.of(CONTROL.WINDOW))
        socket.write('after\r\n')
        stream.feed(found.rest)
      })
      socket.resume()
    },
  })
  bound = await listening(arrivals, urgent)
  port = bound.port
})
afterEach(async () => {
  bound.close()
  arrivals.close()
  arrivals.destroy()
  await terminal?.close()
  terminal = undefined
})

const LOGIN = 'ops1+root@srv1'
const CLIENTS: { program: ProgramName; args: () => string[]; clientUser: string; type: string }[] = [
  {
    program: 'rsh-redone-rlogin',
    args: () => ['-l', LOGIN, '-p', String(port), '127.0.0.1'],
    clientUser: userInfo().username,
    type: 'xterm-256color',
  },
  {
    program: 'plink',
    args: () => ['-rlogin', '-l', LOGIN, '-P', String(port), '127.0.0.1'],
    clientUser: '',
    type: 'xterm',
  },
]

for (const { program, args, clientUser, type } of CLIENTS) {
  describeWithPeers(`${program} as an rlogin client`, [program, 'python3'], () => {
    test('says whom it wants to be, and tells the size of its window when it is asked', async () => {
      terminal = openTerminal(findProgram(program), args(), { columns: 133, lines: 41 })
      await terminal.expect(/welcome[\r\n]+after/)
      expect(handshake).toMatchObject({ clientUser, serverUser: LOGIN, terminal: type })
      const told = (columns: number, rows: number) =>
        until(
          () => `${columns} × ${rows}; came: ${JSON.stringify(sizes)}`,
          () => sizes.find((size) => size.columns === columns && size.rows === rows),
        )
      await told(133, 41)
      terminal.resize(100, 50)
      await told(100, 50)
      terminal.send('lsö\r')
      await until(
        () => `keys; came: ${JSON.stringify(typed)}`,
        () => /^ls\xc3\xb6[\r\n]$/.test(typed) || undefined,
      )
    })
  })
}
