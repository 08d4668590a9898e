/** The client's end of the protocol against a real rlogind. */
import { Buffer } from 'node:buffer'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { buildWindowSize } from '../../../proxies/rlogin/codec/client-stream.ts'
import { CONTROL } from '../../../proxies/rlogin/codec/control.ts'
import { AnswerReader, buildHandshake } from '../../../proxies/rlogin/codec/handshake.ts'
import { ServerStream } from '../../../proxies/rlogin/codec/server-stream.ts'
import { openUrgentData } from '../../../src/sockets/urgent.ts'
import { INETD_PEERS, type Inetd, startInetd } from '../../peers/inetd.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../../peers/users.ts'
import { until } from '../../until.ts'

let inetd: Inetd
let user: SystemUser
let socket: Socket | undefined

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

/** Connects from a port below 1024: rlogind accepts no others. */
async function connectFromPrivilegedPort(): Promise<Socket> {
  for (let localPort = 1023; localPort >= 512; localPort--) {
    const made = await new Promise<Socket | undefined>((resolve, reject) => {
      const to = { host: '127.0.0.1', port: inetd.rlogin, localAddress: '127.0.0.1', localPort }
      const attempt = connect(to, () => resolve(attempt))
      attempt.on('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' || error.code === 'EADDRNOTAVAIL' ? resolve(undefined) : reject(error),
      )
    })
    if (made) return made
  }
  throw new Error('no port from 512 to 1023 is free')
}

describeWithPeers('rsh-redone’s rlogind', canCreateUsers() ? INETD_PEERS : [], () => {
  test.runIf(canCreateUsers())(
    'takes the handshake, asks for the window, and is told of a new one',
    async () => {
      const opened = await openUrgentData()
      if (!('urgent' in opened)) throw new Error(opened.missing)
      const { urgent } = opened
      const connection = await connectFromPrivilegedPort()
      socket = connection
      urgent.keepInPlace(connection)
      const controls: number[] = []
      let shown = ''
      let isAccepted = false
      let isUrgent = false
      const answer = new AnswerReader()
      const stream = new ServerStream({
        data: (bytes) => {
          shown += Buffer.from(bytes).toString('latin1')
        },
        control: (byte) => controls.push(byte),
      })
      connection.on('data', (chunk: Buffer) => {
        const rest = isAccepted ? chunk : answer.feed(chunk)
        if (rest) {
          isAccepted = true
          stream.feed(rest, isUrgent)
        }
        isUrgent = urgent.isNext(connection)
      })
      const shows = (text: string) =>
        until(
          () => `${JSON.stringify(text)}; came: ${JSON.stringify([shown, answer.refusal])}`,
          () => shown.includes(text) || undefined,
        )
      const size = { columns: 133, rows: 41, pixelWidth: 0, pixelHeight: 0 }

      connection.write(
        buildHandshake({ clientUser: 'bastion', serverUser: user.name, terminal: 'xterm', speed: 38400 }),
      )
      await shows('Password: ')
      connection.write(`${user.password}\r`)
      await shows(user.prompt)
      await until('the request for the size', () => controls.includes(CONTROL.WINDOW) || undefined)
      connection.write(buildWindowSize(size))
      connection.write('echo "$(stty size) $TERM"\r')
      await shows('\r41 133 xterm\r\n')
      connection.write(buildWindowSize({ ...size, columns: 255, rows: 50 }))
      connection.write('echo "now $(stty size)"\r')
      await shows('\rnow 50 255\r\n')
      connection.write('exit\r')
      await until('the end', () => connection.destroyed || undefined)
      // None of the control bytes was shown.
      expect(shown).not.toContain('\x80')
    },
  )
})
