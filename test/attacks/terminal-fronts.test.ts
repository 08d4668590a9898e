/** Telnet and rlogin clients that follow no rule: rejected before the sign-in, bounded after it. */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ACCEPTED, buildHandshake, NAME_LIMIT } from '../../proxies/rlogin/codec/handshake.ts'
import { MAX_AUTH_TRIES } from '../../proxies/session/limits.ts'
import { COMMAND } from '../../proxies/telnet/codec/numbers.ts'
import { type BareTelnet, bareTelnet, hangUp } from '../e2e/bare-telnet.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'

const STRANGER = '127.0.0.9'
const MEBIBYTE = 1024 * 1024

describeWithPeers('clients of clear text', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let login: string
  const sockets: Socket[] = []

  beforeAll(async () => {
    const allow = ['127.0.0.0/29']
    bastion = await startBastion({
      credential: 'password',
      broker: { terminals: { telnet: { allow }, rlogin: { allow } }, config: { login_grace: '5s' } },
    })
    login = `ops1+${bastion.account.name}@srv1`
  })
  afterAll(() => bastion.stop())
  afterEach(() => {
    hangUp()
    for (const socket of sockets.splice(0)) socket.destroy()
  })

  const telnet = (from?: string) =>
    bareTelnet({ port: bastion.broker.ports.telnet!, ...(from !== undefined && { from }) })
  /** Opens a socket that sends these bytes, and returns the received data, one character for each byte. */
  async function plain(port: number, bytes: Uint8Array, from = '127.0.0.1') {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from })
    sockets.push(socket)
    const state = { socket, came: '', isClosed: false }
    socket.on('data', (data) => {
      state.came += data.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      state.isClosed = true
    })
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.write(bytes)
    return state
  }
  const closed = (state: { isClosed: boolean; came: string }) =>
    until(
      () => `the end; came: ${JSON.stringify(state.came.slice(-500))}`,
      () => state.isClosed || undefined,
    )
  const resident = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${bastion.broker.pid}/status`, 'utf8'))?.[1]) * 1024
  async function answer(client: BareTelnet, question: string, text: string): Promise<void> {
    await client.sees(question)
    client.type(`${text}\r`)
  }

  describe('before the sign-in', () => {
    test.each(['telnet', 'rlogin'] as const)(
      '%s from another network is turned away, and told why',
      async (name) => {
        const from = await plain(bastion.broker.ports[name]!, new Uint8Array(0), STRANGER)
        await closed(from)
        const reason = 'sallyport: clear text is not allowed from your address, use SSH\r\n'
        expect(from.came).toBe(name === 'rlogin' ? `\x01${reason}` : reason)
      },
    )

    test('who says nothing is cut when the time for it is over', async () => {
      const silent = [
        await plain(bastion.broker.ports.telnet!, new Uint8Array(0)),
        await plain(bastion.broker.ports.rlogin!, new Uint8Array(0)),
        await plain(bastion.broker.ports.telnets!, new Uint8Array(0)),
      ]
      for (const one of silent) await closed(one)
    })

    test('a bomb of options ends the connection, and nothing else', async () => {
      const bomb = Buffer.concat(
        Array.from({ length: 100_000 }, (_, n) => Uint8Array.of(COMMAND.IAC, COMMAND.DO, n & 0x7f)),
      )
      const before = resident()
      const from = await plain(bastion.broker.ports.telnet!, bomb)
      await closed(from)
      expect(from.came).toContain('negotiations and commands a second were expected')
      expect(resident() - before).toBeLessThan(32 * MEBIBYTE)
      await (await telnet()).sees('login: ')
    })

    test('a subnegotiation without end is cut', async () => {
      const begin = Uint8Array.of(COMMAND.IAC, COMMAND.SB, 24)
      const from = await plain(
        bastion.broker.ports.telnet!,
        Buffer.concat([begin, Buffer.alloc(MEBIBYTE, 65)]),
      )
      await closed(from)
      expect(from.came).toContain('a subnegotiation of at most')
    })

    test('a handshake of rlogin without end is cut', async () => {
      const from = await plain(
        bastion.broker.ports.rlogin!,
        Buffer.concat([Buffer.alloc(1), Buffer.alloc(MEBIBYTE, 65)]),
      )
      await closed(from)
      expect(from.came).toContain(`in at most ${NAME_LIMIT} bytes`)
    })

    test('a line without end is no line, and is not kept', async () => {
      const client = await telnet()
      await client.sees('login: ')
      const before = resident()
      client.type(Buffer.alloc(8 * MEBIBYTE, 65))
      client.type('\r')
      await answer(client, 'Password: ', 'x')
      await client.sees('sallyport: the login holds more than 256 bytes')
      expect(resident() - before).toBeLessThan(32 * MEBIBYTE)
    })

    test('passwords are tried so often and no more, and each is an event', async () => {
      const client = await telnet()
      for (let n = 0; n < MAX_AUTH_TRIES; n++) {
        await until(`login ${n}`, () => client.shown().split('login: ').length > n + 1 || undefined)
        client.type('somebody\r')
        await until(`password ${n}`, () => client.shown().split('Password: ').length > n + 1 || undefined)
        client.type('wrong\r')
      }
      await client.sees('too many failed attempts')
      await client.closed()
      const failures = (await bastion.events('auth.failure', MAX_AUTH_TRIES)).filter(
        ({ user, protocol }) => user === 'somebody' && protocol === 'TELNET',
      )
      expect(failures).toHaveLength(MAX_AUTH_TRIES)
    })

    test('the user that an rlogin client says to be proves nothing, from whatever port', async () => {
      const handshake = { clientUser: 'ops1', serverUser: 'ops1', terminal: 'xterm', speed: 38_400 }
      const from = await plain(bastion.broker.ports.rlogin!, buildHandshake(handshake))
      await until('the question', () => from.came.endsWith('Password: ') || undefined)
      expect(from.came.charCodeAt(0)).toBe(ACCEPTED[0])
      from.socket.write('\r')
      await until('the login', () => from.came.endsWith('login: ') || undefined)
    })

    test('escape sequences in a login are shown as nothing', async () => {
      const handshake = { clientUser: '', serverUser: 'a\x1b]0;x\x07b', terminal: 'xterm', speed: 38_400 }
      const from = await plain(bastion.broker.ports.rlogin!, buildHandshake(handshake))
      await until('the question', () => from.came.endsWith('Password: ') || undefined)
      expect(from.came).not.toContain('\x1b')
      from.socket.write('x\r')
      await until('the refusal', () => from.came.includes('sallyport: the login holds') || undefined)
    })
  })

  describe('after it', () => {
    async function shell(): Promise<BareTelnet> {
      const client = await telnet()
      await answer(client, 'login: ', login)
      await answer(client, 'Password: ', bastion.password)
      await client.sees(bastion.account.prompt)
      return client
    }

    test('a client that stops reading while the target floods holds no memory', {
      timeout: 300_000,
    }, async () => {
      const warm = await shell()
      warm.type('head -c 64000000 /dev/zero; echo wa\\rm\r')
      await warm.sees('warm')
      const before = resident()
      const client = await shell()
      // Without back-pressure it would send hundreds of MiB in these seconds.
      client.type('cat /dev/zero\r')
      await client.sees('\0\0\0\0')
      client.socket.pause()
      let most = 0
      for (const end = Date.now() + 4_000; Date.now() < end; ) {
        most = Math.max(most, resident())
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      expect(most - before).toBeLessThan(64 * MEBIBYTE)
      warm.type('echo ali\\ve\r')
      await warm.sees('alive')
    })

    test('a client that negotiates and reads no answer is not read either', async () => {
      const client = await shell()
      client.socket.pause()
      const before = resident()
      const questions = Buffer.concat(
        Array.from({ length: 900 }, () => Uint8Array.of(COMMAND.IAC, COMMAND.AYT)),
      )
      for (let n = 0; n < 200 && !client.isClosed(); n++) {
        client.raw(questions)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(resident() - before).toBeLessThan(32 * MEBIBYTE)
    })
  })
})
