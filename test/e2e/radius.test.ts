/** FreeRADIUS: as a second factor of persons and local users, and told of real sessions while it is away and the broker is killed too. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendAsIs } from '../attacks/requests.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { LDAP_ADMIN, type Slapd, SUFFIX, startSlapd } from '../peers/directory.ts'
import { type FreeRadius, RADIUS_SECRET, startFreeRadius } from '../peers/freeradius.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'
import { until } from '../until.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

describeWithPeers('a RADIUS server', ['sshd', 'ssh', 'freeradius', 'slapd'], () => {
  let bastion: Bastion
  let again: Broker | undefined
  let server: FreeRadius
  let slapd: Slapd
  let certificate: CertificateFiles
  const dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-data-'))

  beforeAll(async () => {
    certificate = await certificateFiles()
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true })
    slapd = await startSlapd({ otto: 'Pass-of-otto' }, certificate)
    bastion = await startBastion({ credential: 'password', broker: { dataFolder, terminals: {} } })
  })
  afterAll(async () => {
    await again?.stop()
    await bastion.stop()
    await server.stop()
    await slapd.stop()
    hangUp()
    certificate.remove()
    rmSync(dataFolder, { recursive: true, force: true })
  })

  const kinds = () => server.accounted().map((record) => record['Acct-Status-Type'])

  test('a new object gets the sessions from then on', async () => {
    await bastion.broker.must('POST', '/externalauths', {
      authentication_name: 'codes',
      type: 'RADIUS',
      host: '127.0.0.1',
      port: server.port,
      shared_secret: RADIUS_SECRET,
      timeout: 2,
      radius: { accounting_port: server.accountingPort },
    })
    await bastion.events('sink.begin', 2)
    await ssh(bastion.home, bastion.login(), ['echo one'])
    await until('two records', () => (kinds().length >= 2 ? true : undefined))
    const [begun, ended] = server.accounted()
    expect(begun).toMatchObject({
      'Acct-Status-Type': 'Start',
      'User-Name': 'ops1',
      'Calling-Station-Id': '127.0.0.1',
      'NAS-Identifier': 'sallyport',
    })
    expect(ended).toMatchObject({
      'Acct-Status-Type': 'Stop',
      'Acct-Session-Id': begun?.['Acct-Session-Id'],
      'Acct-Output-Octets': expect.stringMatching(/^[1-9]\d*$/),
      'Acct-Terminate-Cause': 'User-Request',
    })
  })

  test('nothing is lost while the server is away and the broker is killed', async () => {
    await server.stop()
    await ssh(bastion.home, bastion.login(), ['echo two'])
    await bastion.events('sink.down', 1)
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true, ports: server })
    await until('two records', () => (kinds().length >= 2 ? true : undefined))
    expect(kinds()).toEqual(['Start', 'Stop'])
    await server.stop()
    await ssh(bastion.home, bastion.login(), ['echo three'])
    await bastion.closedSessions(3)
    const { ports } = bastion.broker
    await bastion.broker.kill()
    again = await startBroker({ dataFolder, ports, terminals: {} })
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true, ports: server })
    await until('three records', () => (kinds().length >= 3 ? true : undefined))
    expect(kinds()).toEqual(['Start', 'Stop', 'Accounting-On'])
  })

  test('is the second factor after a directory, over SSH and Telnet; one mistake gets in nowhere', async () => {
    await again!.must('POST', '/externalauths', {
      authentication_name: 'directory',
      type: 'LDAP',
      host: '127.0.0.1',
      port: slapd.ldaps,
      timeout: 5,
      bind_password: LDAP_ADMIN.password,
      ldap: { base_dn: SUFFIX, bind_dn: LDAP_ADMIN.login, ca_certificates: certificate.pem.cert },
    })
    await again!.must('POST', '/authdomains', {
      domain_name: 'corp',
      type: 'LDAP',
      external_auths: ['directory'],
      secondary_auth: ['codes'],
    })
    await again!.must('POST', '/authdomains/corp/mappings', {
      user_group: 'ops1-srv1-users',
      external_group: '*',
    })
    const user = `otto@corp+${bastion.account.name}@srv1`
    for (const [second, last, result] of [
      ['Otto-Pass1', '654321', bastion.account.prompt],
      ['Otto-Pass1', '1', /denied/i],
      ['wrong', undefined, /denied/i],
    ] as const) {
      const login = bastion.login({ user, password: 'Pass-of-otto' })
      const terminal = sshTerminal(bastion.home, login, [], { typed: true })
      await terminal.expect('assword: ')
      terminal.send('Pass-of-otto\r')
      await terminal.expect('Second factor: ')
      terminal.send(`${second}\r`)
      if (last !== undefined) {
        await terminal.expect('Your code: ')
        terminal.send('123456\r')
        await terminal.expect('Next code: ')
        terminal.send(`${last}\r`)
      }
      await terminal.expect(result)
      await terminal.close()
    }
    const telnet = await bareTelnet({ port: again!.ports.telnet! })
    for (const [prompt, typed] of [
      ['login: ', user],
      ['Password: ', 'Pass-of-otto'],
      ['Second factor: ', 'Otto-Pass1'],
      ['Your code: ', '123456'],
      ['Next code: ', '654321'],
    ] as const) {
      await telnet.sees(prompt)
      telnet.type(`${typed}\r`)
    }
    await telnet.sees(bastion.account.prompt)
    expect(again!.log()).not.toContain('Otto-Pass1')
  })

  test('is the second factor of a local user: after a password, after a key, at Telnet and the API', async () => {
    const { account, broker, home, key } = bastion
    const password = 'known at the first door'
    await again!.must('POST', '/users', {
      user_name: 'otto',
      password,
      ssh_public_keys: [key.publicKey],
      secondary_auth: ['codes'],
      groups: ['ops1-srv1-users'],
    })
    const user = `otto+${account.name}@srv1`
    const rounds = [
      ['Second factor: ', 'Otto-Pass1'],
      ['Your code: ', '123456'],
      ['Next code: ', '654321'],
    ] as const
    const byPassword = bastion.login({ user, port: again!.ports.ssh })
    const { password: _, ...byKey } = {
      ...byPassword,
      identity: key.path,
      options: ['PreferredAuthentications=publickey,keyboard-interactive'],
    }
    for (const [login, ahead] of [
      [byPassword, [['assword: ', password]]],
      [byKey, []],
    ] as const) {
      const terminal = sshTerminal(home, login, [], { typed: true })
      for (const [prompt, typed] of [...ahead, ...rounds]) {
        await terminal.expect(prompt)
        terminal.send(`${typed}\r`)
      }
      await terminal.expect(account.prompt)
      await terminal.close()
    }
    const alone = await ssh(home, { ...byKey, options: ['BatchMode=yes'] }, ['true'])
    expect([alone.code, alone.stdout]).toEqual([255, ''])
    const telnet = await bareTelnet({ port: again!.ports.telnet! })
    for (const [prompt, typed] of [['login: ', user], ['Password: ', password], ...rounds]) {
      await telnet.sees(prompt!)
      telnet.type(`${typed}\r`)
    }
    await telnet.sees(account.prompt)
    const session = async (body: object) => {
      const answer = await sendAsIs(again!, 'POST', '/api/session', {}, JSON.stringify(body))
      return { status: answer.status, body: JSON.parse(answer.body) }
    }
    let answer = await session({ user: 'otto', password })
    for (const [text, typed] of rounds) {
      expect(answer.body).toMatchObject({ challenge: { prompts: [{ text }] } })
      answer = await session({ challenge: answer.body.challenge.id, answers: [typed] })
    }
    expect([answer.status, answer.body.user]).toEqual([200, 'otto'])
    expect(broker.log() + again!.log()).not.toContain('Otto-Pass1')
    const Class = '0x6f74746f2d31 0x6f74746f2d32'
    const classed = () =>
      server.accounted().filter((one) => one['User-Name'] === 'otto' && one['Class'] === Class)
    const kinds = () => classed().map((one) => one['Acct-Status-Type'])
    await until('its Class in what is accounted', () => (kinds().includes('Stop') ? true : undefined))
    expect(kinds()).toContain('Start')
  })

  test('one that is away lets no local user in by the password alone, and says so', async () => {
    await server.stop()
    const user = `otto+${bastion.account.name}@srv1`
    const login = bastion.login({ user, port: again!.ports.ssh, options: ['LogLevel=INFO'] })
    const terminal = sshTerminal(bastion.home, login, [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send('known at the first door\r')
    await terminal.expect('Second factor: ')
    terminal.send('Otto-Pass1\r')
    await terminal.expect(/cannot be reached at the moment|denied/)
    await terminal.close()
    expect(terminal.output()).toContain('cannot be reached at the moment')
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true, ports: server })
  })

  test('one that is believed without a signature is warned of at the start and by a check', async () => {
    expect(again!.log()).not.toContain('believed without Message-Authenticator')
    await again!.must('PUT', '/externalauths/codes', { radius: { require_message_authenticator: false } })
    const { ports } = again!
    await again!.kill()
    again = await startBroker({ dataFolder, ports, terminals: {} })
    expect(again.log()).toContain('the RADIUS servers of codes are believed without Message-Authenticator')
    const checked = await sallyport(again, ['check'])
    expect(checked.stdout).toMatch(/^warning +radius +the RADIUS servers of codes/m)
  })
})
