/** Persons of a real directory sign in at a whole bastion: over SSH and Telnet, and at the API. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'ldapts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendAsIs, signInAs } from '../attacks/requests.ts'
import { ADMIN_PASSWORD } from '../peers/broker.ts'
import { LDAP_ADMIN, type Slapd, SUFFIX, startSlapd } from '../peers/directory.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'

const [RIGHT, NEXT] = ['Pass-of-alice', 'Another-Pass-9']
const PEOPLE = `ou=people,${SUFFIX}`

describeWithPeers('persons of a directory', ['slapd', 'sshd', 'ssh-keygen'], () => {
  let certificate: CertificateFiles
  let slapd: Slapd
  let bastion: Bastion
  const login = (user: string, password = RIGHT) =>
    bastion.login({ user: `${user}+${bastion.account.name}@srv1`, password })
  const session = (body: object) =>
    bastion.broker.api<{ user?: string; error?: string }>('POST', '/session', body)

  beforeAll(async () => {
    certificate = await certificateFiles()
    slapd = await startSlapd(
      {
        alice: RIGHT,
        bob: 'Pass-of-bob',
        fresh: 'Old-Password1',
        other: 'Old-Password1',
        leaver: RIGHT,
        mover: RIGHT,
        keeper: RIGHT,
      },
      certificate,
    )
    const client = new Client({ url: `ldap://127.0.0.1:${slapd.ldap}`, strictDN: false })
    await client.bind(LDAP_ADMIN.login, LDAP_ADMIN.password)
    const member = ['alice', 'fresh', 'other', 'leaver', 'mover'].map((name) => `uid=${name},${PEOPLE}`)
    await client.add(`cn=staff,${SUFFIX}`, { objectClass: 'groupOfNames', cn: 'staff', member })
    const keyed = [`uid=keeper,${PEOPLE}`]
    await client.add(`cn=keyed,${SUFFIX}`, { objectClass: 'groupOfNames', cn: 'keyed', member: keyed })
    for (const name of ['fresh', 'other']) {
      const { Attribute, Change } = await import('ldapts')
      const modification = new Attribute({ type: 'pwdReset', values: ['TRUE'] })
      await client.modify(`uid=${name},${PEOPLE}`, new Change({ operation: 'replace', modification }))
    }
    await client.unbind()
    bastion = await startBastion({ broker: { terminals: {}, config: { sign_in: { check_interval: '1s' } } } })
    const { broker } = bastion
    await broker.must('POST', '/externalauths', {
      authentication_name: 'directory',
      type: 'LDAP',
      host: '127.0.0.1',
      port: slapd.ldaps,
      timeout: 5,
      bind_password: LDAP_ADMIN.password,
      ldap: { base_dn: SUFFIX, bind_dn: LDAP_ADMIN.login, ca_certificates: certificate.pem.cert },
    })
    await broker.must('POST', '/authdomains', {
      domain_name: 'corp',
      type: 'LDAP',
      external_auths: ['directory'],
      public_key_attribute: 'sshPublicKey',
    })
    await broker.must('POST', '/authdomains/corp/mappings', {
      user_group: 'ops1-srv1-users',
      external_group: `cn=staff,${SUFFIX}`,
    })
    await broker.must('POST', '/authdomains/corp/mappings', {
      user_group: 'ops1-srv1-users',
      external_group: `cn=keyed,${SUFFIX}`,
    })
  })
  afterAll(async () => {
    hangUp()
    await bastion.stop()
    await slapd.stop()
    certificate.remove()
  })

  test('open a session under NAME@DOMAIN, named in either form; wrong, unknown and unmapped ones get one answer', async () => {
    for (const name of ['alice@corp', 'CORP\\alice']) {
      const run = await ssh(bastion.home, login(name), ['id', '-un'])
      expect([name, run.code, run.stdout]).toEqual([name, 0, `${bastion.account.name}\n`])
    }
    expect((await bastion.closedSessions(2)).map(({ user }) => user)).toEqual(['alice@corp', 'alice@corp'])
    const before = (await bastion.events('auth.failure')).length
    const texts: string[] = []
    for (const [name, password] of [
      ['alice@corp', 'wrong'],
      ['nobody@corp', RIGHT],
      ['bob@corp', 'Pass-of-bob'],
      ['nobody', RIGHT],
    ] as const) {
      const run = await ssh(bastion.home, login(name, password), ['true'])
      texts.push(run.stderr.replaceAll(/\S+@127\.0\.0\.1/g, 'YOU'))
      expect(run.code).toBe(255)
    }
    expect(new Set(texts).size).toBe(1)
    const failures = (await bastion.events('auth.failure', before + 4)).slice(before)
    expect(new Set(failures.map(({ reason }) => reason))).toEqual(
      new Set(['wrong_password', 'unknown_user', 'unmapped']),
    )
  })

  test('sign in by the keys of their directory, for as long as it has them', async () => {
    const { Attribute, Change } = await import('ldapts')
    const keyOf = async (name: string) => {
      const file = join(bastion.home.folder, `key-${name}`)
      const made = await run(findProgram('ssh-keygen'), ['-q', '-t', 'ed25519', '-N', '', '-f', file])
      expect(made.code).toBe(0)
      return { file, line: readFileSync(`${file}.pub`, 'utf8').trim() }
    }
    const [own, strange] = [await keyOf('own'), await keyOf('strange')]
    const client = new Client({ url: `ldap://127.0.0.1:${slapd.ldap}`, strictDN: false })
    await client.bind(LDAP_ADMIN.login, LDAP_ADMIN.password)
    const change = (name: string, operation: 'add' | 'delete', type: string, values: string[]) =>
      client.modify(
        `uid=${name},${PEOPLE}`,
        new Change({ operation, modification: new Attribute({ type, values }) }),
      )
    for (const name of ['keeper', 'bob']) {
      await change(name, 'add', 'objectClass', ['ldapPublicKey'])
      await change(name, 'add', 'sshPublicKey', ['no key', `command="id" ${strange.line}`, own.line])
    }
    const by = (name: string, identity: string) => ({ ...login(name), identity })
    const right = await ssh(bastion.home, by('keeper@corp', own.file), ['id', '-un'])
    expect([right.code, right.stdout]).toEqual([0, `${bastion.account.name}\n`])
    const texts: string[] = []
    for (const [name, file] of [
      ['keeper@corp', strange.file],
      ['alice@corp', own.file],
      // In no group that is mapped.
      ['bob@corp', own.file],
      ['nobody@corp', own.file],
    ] as const) {
      const wrong = await ssh(bastion.home, by(name, file), ['true'])
      texts.push(wrong.stderr.replaceAll(/\S+@127\.0\.0\.1/g, 'YOU'))
      expect(wrong.code).toBe(255)
    }
    expect(new Set(texts).size).toBe(1)
    const terminal = sshTerminal(bastion.home, by('keeper@corp', own.file), [])
    await terminal.expect(bastion.account.prompt)
    const before = (await bastion.events('session.kill')).length
    await change('keeper', 'delete', 'sshPublicKey', [own.line])
    await client.unbind()
    const [kill] = (await bastion.events('session.kill', before + 1)).slice(before)
    expect(kill?.['reason']).toBe('the key of the sign-in was removed from the user')
    await terminal.exit()
  })

  test('lose running sessions when the directory has removed them, or taken the group that gave the right', async () => {
    const open = async (name: string) => {
      const terminal = sshTerminal(bastion.home, login(`${name}@corp`), [], { typed: true })
      await terminal.expect('assword: ')
      terminal.send(`${RIGHT}\r`)
      await terminal.expect(bastion.account.prompt)
      return terminal
    }
    const [alice, leaver, mover] = [await open('alice'), await open('leaver'), await open('mover')]
    const before = (await bastion.events('session.kill')).length
    const client = new Client({ url: `ldap://127.0.0.1:${slapd.ldap}`, strictDN: false })
    await client.bind(LDAP_ADMIN.login, LDAP_ADMIN.password)
    await client.del(`uid=leaver,${PEOPLE}`)
    const { Attribute, Change } = await import('ldapts')
    const modification = new Attribute({ type: 'member', values: [`uid=mover,${PEOPLE}`] })
    await client.modify(`cn=staff,${SUFFIX}`, new Change({ operation: 'delete', modification }))
    await client.unbind()
    const kills = (await bastion.events('session.kill', before + 2)).slice(before)
    const rows = kills.map((kill) =>
      bastion.broker.must<{ user: string }>('GET', `/sessions/${kill['session']}`),
    )
    const users = (await Promise.all(rows)).map(({ user }) => user)
    expect(users.toSorted()).toEqual(['leaver@corp', 'mover@corp'])
    await Promise.all([leaver.exit, mover.exit])
    alice.send('echo still-$((40+2))\r')
    await alice.expect('still-42')
    await alice.close()
    expect((await session({ user: 'leaver@corp', password: RIGHT })).status).toBe(401)
  })

  test('lose running sessions with the mapping that gave the right, and when they are forgotten', async () => {
    const persons = '/authdomains/corp/persons'
    const mappings = '/authdomains/corp/mappings'
    const { broker } = bastion
    const all = await broker.must<{ id: string; external_group: string }[]>('GET', mappings)
    const staff = all.find(({ external_group }) => external_group.startsWith('cn=staff'))!
    const ways = [
      { end: `${persons}/alice@corp`, restore: async () => undefined },
      {
        end: `${mappings}/${staff.id}`,
        restore: () =>
          broker.must('POST', mappings, {
            user_group: 'ops1-srv1-users',
            external_group: `cn=staff,${SUFFIX}`,
          }),
      },
    ]
    for (const { end, restore } of ways) {
      const terminal = sshTerminal(bastion.home, login('alice@corp'), [], { typed: true })
      await terminal.expect('assword: ')
      terminal.send(`${RIGHT}\r`)
      await terminal.expect(bastion.account.prompt)
      const before = (await bastion.events('session.kill')).length
      expect((await broker.api('DELETE', end)).status).toBe(204)
      const [kill] = (await bastion.events('session.kill', before + 1)).slice(before)
      const row = await broker.must<{ user: string }>('GET', `/sessions/${kill!['session']}`)
      expect(row.user).toBe('alice@corp')
      await terminal.exit()
      expect(await broker.must('GET', `${persons}?q=user_name=alice@corp`)).toEqual([])
      await restore()
    }
    expect((await session({ user: 'alice@corp', password: RIGHT })).status).toBe(200)
  })

  test('change a password that was reset, in keyboard-interactive rounds', async () => {
    const terminal = sshTerminal(bastion.home, login('fresh@corp'), [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send('Old-Password1\r')
    await terminal.expect('New password: ')
    terminal.send('short\r')
    await terminal.expect('again: ')
    terminal.send('short\r')
    await terminal.expect('New password: ')
    terminal.send(`${NEXT}\r`)
    await terminal.expect('again: ')
    terminal.send(`${NEXT}\r`)
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
    expect((await session({ user: 'fresh@corp', password: NEXT })).status).toBe(200)
  })

  test('are asked at the terminal of Telnet', async () => {
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await telnet.sees('login: ')
    telnet.type(`alice@corp+${bastion.account.name}@srv1\r`)
    await telnet.sees('Password: ')
    telnet.type(`${RIGHT}\r`)
    await telnet.sees(bastion.account.prompt)
  })

  test('answer a challenge of the API, once', async () => {
    const first = await session({ user: 'corp\\other', password: 'Old-Password1' })
    expect(first).toMatchObject({ status: 401, body: { error: 'second_factor_required' } })
    const { challenge } = first.body as { challenge?: { id: string; prompts: object[] } }
    expect(challenge?.prompts).toHaveLength(2)
    const answer = { challenge: challenge!.id, answers: [NEXT, NEXT] }
    expect(await session(answer)).toMatchObject({ status: 200, body: { user: 'other@corp' } })
    expect(await session(answer)).toMatchObject({ status: 401, body: { error: 'invalid_credentials' } })
  })

  test('sign in while their directory is stopped, or has ended, by a password that it had accepted', async () => {
    const { broker } = bastion
    const cookie = await signInAs(broker, 'admin', ADMIN_PASSWORD)
    const set = async (change: object) => {
      const path = '/api/externalauths/directory'
      const sent = await sendAsIs(broker, 'PUT', path, { cookie }, JSON.stringify(change))
      expect([sent.status, sent.body]).toEqual([200, expect.anything()])
    }
    await set({ offline: 900, timeout: 1 })
    const alice = async (password = RIGHT) => (await session({ user: 'alice@corp', password })).status
    expect(await alice()).toBe(200)
    process.kill(slapd.pid, 'SIGSTOP')
    try {
      expect([await alice(), await alice('wrong')]).toEqual([200, 503])
      expect((await session({ user: 'mover@corp', password: RIGHT })).status).toBe(503)
    } finally {
      process.kill(slapd.pid, 'SIGCONT')
    }
    expect(await bastion.events('auth.offline', 1)).toMatchObject([
      { user: 'alice@corp', object: 'directory' },
    ])
    expect(await alice()).toBe(200)
    await slapd.stop()
    const run = await ssh(bastion.home, login('alice@corp'), ['id', '-un'])
    expect(run.stdout).toBe(`${bastion.account.name}\n`)
    await set({ offline: 0 })
    expect(await alice()).toBe(503)
  })

  test('hear that their directory is away, which counts as no failure', async () => {
    await slapd.stop()
    for (let i = 0; i < 12; i++)
      expect(await session({ user: 'alice@corp', password: RIGHT })).toMatchObject({
        status: 503,
        body: { error: 'sign_in_unavailable' },
      })
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await telnet.sees('login: ')
    telnet.type('alice@corp\r')
    await telnet.sees('Password: ')
    telnet.type(`${RIGHT}\r`)
    await telnet.sees('cannot be reached at the moment')
    expect((await ssh(bastion.home, bastion.login(), ['id', '-un'])).stdout).toBe(`${bastion.account.name}\n`)
    const [event] = await bastion.events('auth.unavailable', 1)
    expect(event).toMatchObject({ user: 'alice@corp', object: 'directory' })
    expect(bastion.broker.log()).not.toContain(RIGHT)
  })
})
