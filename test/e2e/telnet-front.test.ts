/** The common features of Telnet and SSH sessions, and data that must pass through Telnet unchanged. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { COMMAND } from '../../proxies/telnet/codec/numbers.ts'
import { watchAsAdmin } from '../peers/live.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { openTerminal, type Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type BareTelnet, bareTelnet, hangUp } from './bare-telnet.ts'
import type { Bastion, SessionRow } from './bastion.ts'
import { startTerminalPeople, TELNET_CLIENTS, type TerminalPeople } from './terminal-clients.ts'

const INETUTILS = TELNET_CLIENTS[0]!
const PASTE = 10 * 1024 * 1024

describeWithPeers('a Telnet session', ['sshd', 'python3', 'inetutils-telnet', 'openssl'], () => {
  let people: TerminalPeople
  let bastion: Bastion
  const terminals: Terminal[] = []

  beforeAll(async () => {
    people = await startTerminalPeople()
    bastion = people.bastion
  })
  afterAll(() => bastion.stop())
  afterEach(async () => {
    hangUp()
    for (const terminal of terminals.splice(0)) await terminal.close()
    await people.closeTerminals()
  })

  const certificate = () => readFileSync(join(bastion.broker.dataFolder, 'tls', 'cert.pem'))
  const running = () => bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
  async function shell(telnet: BareTelnet, login = people.login): Promise<SessionRow> {
    const before = new Set((await running()).map(({ id }) => id))
    await telnet.sees('login: ')
    telnet.type(`${login}\r`)
    await telnet.sees('Password: ')
    telnet.type(`${bastion.password}\r`)
    await telnet.sees(bastion.account.prompt)
    return await until('the session', async () => (await running()).find(({ id }) => !before.has(id)))
  }
  const ended = (id: string) =>
    until('the end of the session', async () => {
      const rows = await bastion.broker.must<SessionRow[]>('GET', '/sessions?status=closed&limit=-1')
      return rows.find((row) => row.id === id)
    })

  test('is ended by an administrator: the user reads the reason', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    const { id } = await shell(telnet)
    await bastion.broker.must('POST', `/sessions/${id}/kill`, { reason: 'enough' })
    await telnet.sees('sallyport: ended by admin: enough')
    await telnet.closed()
    expect(await ended(id)).toMatchObject({ result: 'killed', recording: { state: 'sealed' } })
  })

  test('is watched while it runs', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    const { id } = await shell(telnet)
    const watcher = await watchAsAdmin(bastion.broker, id)
    await telnet.sees('admin watches this session')
    telnet.type('echo wat\\ched\r')
    await until('the output', async () => (await watcher.screen()).includes('watched') || undefined)
    await watcher.close()
    telnet.type('exit\r')
    await telnet.closed()
    await ended(id)
  })

  test('ends with the client', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    const { id } = await shell(telnet)
    telnet.socket.destroy()
    expect(await ended(id)).toMatchObject({ result: 'success' })
  })

  test('ends when nothing is done', async () => {
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', { idle_timeout: 2 })
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    const { id } = await shell(telnet)
    await telnet.sees('sallyport: nothing was done for 2 seconds')
    await telnet.closed()
    expect(await ended(id)).toMatchObject({ reason: 'nothing was done for 2 seconds' })
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', { idle_timeout: 0 })
  })

  test('takes a paste of ten megabytes, and every byte of it', { timeout: 300_000 }, async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    const { id } = await shell(telnet)
    // Return has one form on a terminal, whichever a client sends: CR, LF, CR LF or CR NUL.
    const paste = Buffer.from(randomBytes(PASTE).map((byte) => (byte === 0x0a || byte === 0 ? 0xff : byte)))
    telnet.type(`stty raw -echo; echo rea\\dy; head -c ${PASTE} | sha256sum; stty sane\r`)
    await telnet.sees('ready')
    telnet.type(paste)
    await telnet.sees(createHash('sha256').update(paste).digest('hex'), 90_000)
    telnet.type('exit\r')
    await telnet.closed()
    expect((await ended(id)).bytes_in).toBeGreaterThan(PASTE)
  })

  test('shows every byte, 0xFF and a CR alone too', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await shell(telnet)
    telnet.type("stty -opost; printf '<\\377\\377\\300\\rx\\r\\n>'; stty sane\r")
    await telnet.sees('<\xff\xff\xc0\rx\r\n>')
  })

  test('what is typed ahead of the sign-in arrives', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    telnet.type(`${people.login}\r${bastion.password}\recho a\\head\rexit\r`)
    await telnet.sees('ahead')
    await telnet.closed()
    expect(telnet.shown()).not.toContain(bastion.password)
  })

  test('asks for a login of its own at the target', async () => {
    const { must } = bastion.broker
    await must('POST', '/targetgroups', {
      group_name: 'asked',
      session: { interactive_logins: ['srv1:ssh'] },
    })
    await must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: 'asked',
      authorize_sessions: true,
    })
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await telnet.sees('login: ')
    telnet.type(`ops1+@srv1\r`)
    await telnet.sees('Password: ')
    telnet.type(`${bastion.password}\r`)
    await telnet.sees('Login at srv1:ssh: ')
    telnet.type(`${bastion.account.name}\r`)
    await telnet.sees('Password at srv1:ssh: ')
    telnet.type(`${bastion.account.password}\r`)
    await telnet.sees(bastion.account.prompt)
    expect(telnet.shown()).not.toContain(bastion.account.password)
  })

  test('is recorded strictly where that is wanted', async () => {
    const { must } = bastion.broker
    const [authorization] = await must<{ id: string }[]>(
      'GET',
      '/authorizations?q=user_group=ops1-srv1-users',
    )
    const setMode = (recording_mode: string) =>
      must('PUT', `/authorizations/${authorization!.id}`, { recording_mode })
    await setMode('strict')
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    const { id } = await shell(telnet)
    telnet.type('yes | head -c 1000000; echo str\\ict; exit\r')
    await telnet.sees('strict')
    await telnet.closed()
    expect(await ended(id)).toMatchObject({ result: 'success', recording: { state: 'sealed' } })
    await setMode('standard')
  })

  test('takes over other networks, and another banner, by SIGHUP', async () => {
    const { configFile, pid, ports } = bastion.broker
    const text = readFileSync(configFile, 'utf8')
    const config = parse(text)
    config.listen.telnet.allow = ['192.0.2.0/24']
    config.ssh = { banner: 'Access is recorded.' }
    const nextSees = async (port: number, text: string) => {
      await until(`${text} after SIGHUP`, async () => {
        const telnet = await bareTelnet({ port })
        await until('a line', () => telnet.shown().includes('\r\n') || undefined)
        return telnet.shown().includes(text) || undefined
      })
    }
    writeFileSync(configFile, stringify(config))
    process.kill(pid, 'SIGHUP')
    await nextSees(ports.telnet!, 'clear text is not allowed from your address')
    config.listen.telnet.allow = ['127.0.0.1']
    writeFileSync(configFile, stringify(config))
    process.kill(pid, 'SIGHUP')
    await nextSees(ports.telnet!, 'Access is recorded.\r\n')
    writeFileSync(configFile, text)
    process.kill(pid, 'SIGHUP')
  })

  test('commands of the protocol are keys: interrupt, end of file', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await shell(telnet)
    telnet.type('echo beg\\un; cat; echo int\\errupted\r')
    await telnet.sees('begun')
    telnet.raw(Uint8Array.of(COMMAND.IAC, COMMAND.AYT))
    await telnet.sees('[sallyport: yes]')
    telnet.raw(Uint8Array.of(COMMAND.IAC, COMMAND.EOF))
    await telnet.sees('interrupted')
    telnet.type("sh -c 'echo sta\\rted; exec sleep 1000'; echo never\\theless\r")
    await telnet.sees('started')
    telnet.raw(Uint8Array.of(COMMAND.IAC, COMMAND.IP))
    telnet.type('echo be\\fore\r')
    await telnet.sees('before')
    expect(telnet.shown()).not.toContain('nevertheless')
  })

  test('inetutils telnet interrupts with urgent data', async () => {
    const terminal = await people.signIn({
      ...INETUTILS,
      args: (port) => ['-e', '^]', '-l', people.login, '127.0.0.1', String(port)],
    })
    terminal.send("sh -c 'echo sta\\rted; exec sleep 1000'\r")
    await terminal.expect('started')
    for (const command of ['ip', 'synch']) {
      terminal.send('\x1d')
      await terminal.expect('telnet> ')
      terminal.send(`send ${command}\r`)
    }
    await terminal.expect(bastion.account.prompt)
    terminal.send('echo af\\ter\r')
    await terminal.expect('after\r\n')
    // A Synch that lost its IAC leaves its 0xF2 as a character.
    expect(terminal.bytes().includes(0xf2)).toBe(false)
  })

  test('inside TLS has no warning, and is whole', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnets!, certificate: certificate() })
    const { id } = await shell(telnet)
    expect(telnet.shown()).not.toContain('not encrypted')
    telnet.type('stty size; yes | head -c 3000000; echo; echo all\\ of it\r')
    await telnet.sees('43 132')
    await telnet.sees('all of it')
    telnet.type('exit\r')
    await telnet.closed()
    await ended(id)
  })

  const sClient = (...options: string[]) => {
    const terminal = openTerminal(
      findProgram('openssl'),
      ['s_client', ...options, '-connect', `127.0.0.1:${bastion.broker.ports.telnets}`],
      { columns: 132, lines: 43 },
    )
    terminals.push(terminal)
    return terminal
  }

  test('openssl s_client, which speaks no Telnet, gets as far', async () => {
    const terminal = sClient('-quiet')
    await terminal.expect('login: ')
    terminal.send(`${people.login}\r`)
    await terminal.expect('Password: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect(bastion.account.prompt)
    terminal.send('echo "at $(stty size)"\r')
    await terminal.expect('at 24 80')
    terminal.send('exit\r')
    await terminal.exit()
  })

  test('inside TLS takes nothing older than TLS 1.2', async () => {
    // OpenSSL's default security level would prevent the attempt.
    const [old, taken] = ['-tls1_1', '-tls1_2'].map((one) => sClient(one, '-cipher', 'DEFAULT@SECLEVEL=0'))
    await taken!.expect('Cipher    : ECDHE')
    await old!.expect('no peer certificate available')
    expect(await old!.exit()).toBe(1)
  })

  test('inside TLS is not negotiated anew', async () => {
    const terminal = sClient('-tls1_2')
    await terminal.expect('login: ')
    terminal.send('R\r')
    await terminal.expect(/RENEGOTIATING[\s\S]*no renegotiation/)
    await terminal.exit()
  })

  test('inside TLS ends with what breaks it', async () => {
    const raw = connect(bastion.broker.ports.telnets!, '127.0.0.1')
    const telnet = await bareTelnet({ over: raw, port: 0, certificate: certificate() })
    const { id } = await shell(telnet)
    raw.write(randomBytes(64))
    await telnet.closed()
    await ended(id)
  })

  test('goes on after others on the same port have sent rubbish instead of TLS', async () => {
    const rubbish = await bareTelnet({ port: bastion.broker.ports.telnets! })
    rubbish.raw(randomBytes(4096))
    await rubbish.closed()
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnets!, certificate: certificate() })
    await telnet.sees('login: ')
  })
})
