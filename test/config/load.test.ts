import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { wideBalancers } from '../../src/config/balancers.ts'
import { ConfigError, loadConfig, parseConfig } from '../../src/config/load.ts'
import { VNC_OFFERED_TYPES } from '../../src/model/vnc-options.ts'

const surroundings = { env: { COMMUNITY: 'from-env', EMPTY: '' }, hostname: 'box' }
const parse = (text: string) => parseConfig(text, '/etc/sallyport/sallyport.yaml', surroundings)
function problems(text: string): readonly string[] {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

describe('a configuration that is in order', () => {
  test('has the defaults where nothing is written', () => {
    expect(parse('')).toEqual({
      file: '/etc/sallyport/sallyport.yaml',
      audit: { keepDays: 0 },
      databaseGrace: 60_000,
      secretFiles: [],
      dataDir: '/etc/data',
      hostname: 'box',
      site: 'https://box',
      listen: {
        https: { host: '::', port: 443 },
        ssh: { host: '::', port: 22 },
        telnet: { host: '::', port: 23, allow: ['127.0.0.0/8', '::1/128'] },
        rlogin: { host: '::', port: 513, allow: ['127.0.0.0/8', '::1/128'] },
        vnc: {
          host: '::',
          port: 5900,
          securityTypes: [...VNC_OFFERED_TYPES],
          allowClear: ['127.0.0.0/8', '::1/128'],
        },
        rdp: { host: '::', port: 3389, nla: 'tickets' },
        metrics: { host: '127.0.0.1', port: 9464 },
      },
      ssh: { userCa: [], hostCertificates: [] },
      proxyProtocol: { from: [] },
      trustedProxies: [],
      dns: { servers: [] },
      database: { file: '/etc/data/sallyport.db' },
      masterKey: { file: '/etc/data/master.key' },
      recordings: {
        directory: '/etc/data/recordings',
        recipients: [],
        brokerKey: true,
        search: 'full',
        minFree: 2 ** 30,
        alarmFree: 2 ** 31,
        keepDays: 0,
        holdRelease: 'one',
        maxSize: 0,
      },
      workers: availableParallelism(),
      loginGrace: 60_000,
      passwords: { minLength: 8 },
      signIn: { checkInterval: 300_000, certificateLifetime: 28_800_000 },
      ticketLifetime: 300_000,
      shutdownGrace: 30_000,
      syslog: [],
      snmp: { enterprise: 32473, traps: [] },
      log: { level: 'info', file: '-' },
    })
  })

  test('takes data_dir relative to the file and other paths relative to data_dir', async () => {
    const recipient = await identityToRecipient(await generateIdentity())
    const config = parse(`
data_dir: state
listen: { https: { certificate: a.pem, key: /secure/a.key } }
master_key: { file: ../keys/master.key }
database: { url: "sqlite:db/x.db" }
recordings: { dir: /big/recordings, recipients: [${recipient}], broker_key: false, search: commands, min_free: 64KiB, keep_days: 30, hold_release: two, max_size: 1TiB }
log: { level: debug, file: sallyport.log }
`)
    expect(config.dataDir).toBe('/etc/sallyport/state')
    expect(config.listen.https).toMatchObject({
      certificate: '/etc/sallyport/state/a.pem',
      key: '/secure/a.key',
    })
    expect(config.masterKey).toEqual({ file: '/etc/sallyport/keys/master.key' })
    expect(config.database).toEqual({ file: '/etc/sallyport/state/db/x.db' })
    expect(config.recordings).toEqual({
      directory: '/big/recordings',
      recipients: [recipient],
      brokerKey: false,
      search: 'commands',
      minFree: 65_536,
      alarmFree: 131_072,
      keepDays: 30,
      holdRelease: 'two',
      maxSize: 2 ** 40,
    })
    const { ssh } = parse(
      'ssh: { user_ca: [ca.pub, /secure/ca.pub], revoked_keys: krl, revoked_host_keys: hosts, host_certificates: [c.pub] }',
    )
    expect(ssh).toEqual({
      userCa: ['/etc/data/ca.pub', '/secure/ca.pub'],
      revokedKeys: '/etc/data/krl',
      revokedHostKeys: '/etc/data/hosts',
      hostCertificates: ['/etc/data/c.pub'],
    })
    expect(config.log).toEqual({ level: 'debug', file: '/etc/sallyport/state/sallyport.log' })
  })

  test('takes resolvers by address, on port 53 unless told otherwise', () => {
    const { dns } = parse('dns: { servers: [{ host: 127.0.0.1 }, { host: "::1", port: 5353 }] }')
    expect(dns.servers).toEqual([
      { host: '127.0.0.1', port: 53 },
      { host: '::1', port: 5353 },
    ])
  })

  test('takes the banner as text or from a file, with the line ends of a terminal', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-config-'))
    writeFileSync(join(folder, 'banner'), 'one\ntwo\r\n\n')
    const of = (banner: string) =>
      parseConfig(`data_dir: .\nssh: { banner: ${banner} }`, join(folder, 'sallyport.yaml'), surroundings).ssh
        .banner
    expect(of('{ file: banner }')).toBe('one\r\ntwo\r\n\r\n')
    expect(of('hello')).toBe('hello\r\n')
    rmSync(folder, { recursive: true })
  })

  test('switches listeners off', () => {
    const text =
      'listen: { https: off, ssh: { port: 2222 }, telnet: off, rlogin: off, vnc: off, rdp: off, metrics: off }'
    expect(parse(text).listen).toEqual({ ssh: { host: '::', port: 2222 } })
  })

  test('switches Telnet inside TLS on by its keys', () => {
    const { telnets } = parse('listen: { telnets: { certificate: a.pem, key: a.key } }').listen
    expect(telnets).toEqual({ host: '::', port: 992, certificate: '/etc/data/a.pem', key: '/etc/data/a.key' })
    expect(parse('listen: { telnets: {} }').listen.telnets).toEqual({ host: '::', port: 992 })
  })

  test('takes the networks of balancers as they are', () => {
    const config = parse('{ proxy_protocol: { from: [192.0.2.0/28] }, trusted_proxies: ["2001:db8::1"] }')
    expect(config).toMatchObject({
      proxyProtocol: { from: ['192.0.2.0/28'] },
      trustedProxies: ['2001:db8::1'],
    })
    expect(wideBalancers(config)).toEqual([])
  })

  test.each([
    ['0.0.0.0/0', true],
    ['128.0.0.0/1', true],
    ['10.0.0.0/8', false],
    ['::/0', true],
    ['2000::/3', true],
    ['fc00::/7', false],
    ['::ffff:0:0/96', true],
    ['::ffff:10.0.0.0/104', false],
  ])('finds balancers that are strangers in %s: %s', (network, isWide) => {
    const text = `{ proxy_protocol: { from: ["${network}"] }, trusted_proxies: [192.0.2.1, "${network}"] }`
    const both = [`proxy_protocol.from holds ${network}: `, `trusted_proxies holds ${network}: `]
    expect(wideBalancers(parse(text))).toEqual(
      isWide ? both.map((begin) => expect.stringContaining(begin)) : [],
    )
  })

  test('asks servers every 15 minutes at least, so that a person who is removed there is out by then', () => {
    expect(parse('sign_in: { check_interval: 15m }').signIn.checkInterval).toBe(15 * 60_000)
    expect(problems('sign_in: { check_interval: 901s }')).toEqual([
      expect.stringContaining('sign_in.check_interval: expected 1s to 15m, got 901s'),
    ])
  })

  test('takes the networks of clear text as they are', () => {
    const { telnet } = parse('listen: { telnet: { allow: [10.0.0.0/8, 192.0.2.1] } }').listen
    expect(telnet).toEqual({ host: '::', port: 23, allow: ['10.0.0.0/8', '192.0.2.1'] })
    const { vnc } = parse(
      'listen: { vnc: { allow_clear: [10.0.0.0/8], security_types: [x509plain], certificate: a, key: b } }',
    ).listen
    expect(vnc).toEqual({
      host: '::',
      port: 5900,
      certificate: '/etc/data/a',
      key: '/etc/data/b',
      securityTypes: ['x509plain'],
      allowClear: ['10.0.0.0/8'],
    })
  })

  test('gives a TLS receiver of syslog its own port', () => {
    expect(parse('syslog: [ { host: siem, transport: tls, ca: ca.pem }, { host: "::1" } ]').syslog).toEqual([
      { host: 'siem', port: 6514, transport: 'tls', format: 'rfc5424', ca: '/etc/data/ca.pem' },
      { host: '::1', port: 514, transport: 'udp', format: 'rfc5424' },
    ])
  })

  test('reads a section whose keys are all commented out as absent', () => {
    expect(parse('listen:\nsyslog:\nsnmp:\n  traps:\n')).toEqual(parse(''))
  })
})

describe('secrets', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-config-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('come from text, a file in data_dir or a variable, and print as [secret]', () => {
    writeFileSync(join(folder, 'community'), 'from-file\n')
    const file = join(folder, 'sallyport.yaml')
    writeFileSync(
      file,
      `data_dir: .
snmp:
  traps:
    - { host: a, community: from-text }
    - { host: b, community: { file: community } }
    - { host: c, community: { env: COMMUNITY } }
    - { host: d, version: 3, inform: true, user: u, auth_password: longenough, priv_password: longenough }
`,
    )
    const { traps } = loadConfig(file, surroundings).snmp
    expect(traps.map((trap) => (trap.version === '2c' ? trap.community.revealText() : trap.user))).toEqual([
      'from-text',
      'from-file',
      'from-env',
      'u',
    ])
    expect(JSON.stringify(traps)).not.toMatch(/from-|longenough/)
  })

  test('that are missing or empty are errors', () => {
    expect(problems('snmp: { traps: [ { host: a, community: { env: NOPE } } ] }')).toEqual([
      '/etc/sallyport/sallyport.yaml:1: snmp.traps[0].community: the environment variable NOPE is not set',
    ])
    expect(problems('snmp: { traps: [ { host: a, community: { env: EMPTY } } ] }')[0]).toMatch(
      /EMPTY is empty/,
    )
    expect(problems('snmp: { traps: [ { host: a, community: { file: nope } } ] }')[0]).toMatch(
      /cannot read the secret: .*nope/,
    )
  })

  test('never reach an error text', () => {
    for (const text of [
      'snmp: { traps: [ { host: a, version: 3, community: hunter2, auth_password: hunter2 } ] }',
      'snmp: { traps: [ { host: a, community: { fil: hunter2 } } ] }',
      'snmp: { traps: [ { host: a, community: 71070071 } ] }',
      'snmp: { traps: [ { host: a, community: "hunter2 } ] }',
      'snmp: { traps: [ { host: a, community: hunter2, community: hunter2 } ] }',
      'database: { url: "postgres://sallyport:hunter2@db,,db2/x" }',
      'database: { url: "mysql://sallyport:hunter2@db/x" }',
    ]) {
      expect(problems(text).length, text).toBeGreaterThan(0)
      expect(problems(text).join('\n')).not.toMatch(/hunter2|71070071/)
    }
  })

  test('never reach an error text inside an address, whatever key has it, and the rest of it does', () => {
    const address = 'https://monitor:hunt/er@2 "x@collector.example.com/v1'
    const quoted = JSON.stringify(address)
    for (const text of [
      `traces: { endpoint: ${quoted} }`,
      `traces: { endpoint: ${JSON.stringify(`https://monitor:${'hunt/er@2 '.repeat(20)}@collector.example.com`)} }`,
      `recordings: { object_store: { bucket: b-1, access_key: a, secret_key: s, endpoint: ${quoted} } }`,
      `syslog: [{ host: ${quoted} }]`,
      `login_grace: ${quoted}`,
      `trusted_proxies: [${quoted}]`,
      `dns: { servers: [{ host: ${quoted} }] }`,
      `log: { ${quoted}: 1 }`,
      `log: *${address.replace(/ .*@/, '@')}`,
      `ssh: { motd: { file: ${quoted} } }`,
      `recordings: { object_store: { bucket: b-1, access_key: a, secret_key: { file: ${quoted} } } }`,
    ]) {
      const said = problems(text).join('\n')
      expect(said, text).not.toBe('')
      expect(said, text).not.toMatch(/hunt|er@2|monitor/)
      expect(said, text).toContain('@collector.example.com')
    }
  })
})

describe('a fault', () => {
  test.each([
    [
      'an unknown key',
      'listen:\n  htps: {}',
      ':2: listen.htps: unknown key; the nearest known one is listen.https',
    ],
    [
      'an unknown key at the top',
      'login_grase: 1s',
      ':1: login_grase: unknown key; the nearest known one is login_grace',
    ],
    [
      'an unknown key in a list',
      'syslog:\n  - host: a\n    prot: 1',
      ':3: syslog[0].prot: unknown key; the nearest known one is syslog[0].port',
    ],
    [
      'an unknown key in a secret',
      'snmp: { traps: [ { host: a, community: { envv: X } } ] }',
      ':1: snmp.traps[0].community: expected text, { file: PATH } or { env: NAME }, got a map',
    ],
    [
      'a banner with an escape',
      'ssh: { banner: "\\e[2J" }',
      ':1: ssh.banner: expected text without control characters',
    ],
    [
      'a resolver by name',
      'dns: { servers: [{ host: ns }] }',
      ':1: dns.servers[0].host: expected an address',
    ],
    [
      'a message of the day with an escape',
      'ssh: { motd: "\\e[2J" }',
      ':1: ssh.motd: expected text without control characters',
    ],
    [
      'a banner that is too long',
      `ssh: { banner: ${'x'.repeat(9000)} }`,
      ':1: ssh.banner: expected text or { file: PATH }',
    ],
    [
      'a banner that is not there',
      'ssh: { banner: { file: nowhere } }',
      ':1: ssh.banner: cannot read the banner',
    ],
    ['an unknown key far from all', 'tls: {}', ':1: tls: unknown key; the nearest known one is dns'],
    ['__proto__', '"__proto__": { x: 1 }', ':1: __proto__: unknown key'],
    [
      'a port',
      'listen: { ssh: { port: 70000 } }',
      'listen.ssh.port: expected a port number from 0 to 65535, got 70000',
    ],
    [
      'a port as text',
      'listen: { ssh: { port: "22" } }',
      'listen.ssh.port: expected a port number from 0 to 65535, got "22"',
    ],
    [
      'a listener',
      'listen: { ssh: on }',
      'listen.ssh: expected a map with the keys of a listener, or off, got "on"',
    ],
    ['a duration', 'login_grace: 90', 'login_grace: expected a duration such as 90s, 15m, 8h or 30d, got 90'],
    ['a duration out of bounds', '\nlogin_grace: 2h', ':2: login_grace: expected 1s to 1h, got 2h'],
    [
      'an object store over a clear line',
      `recordings: { object_store: { bucket: b-1, access_key: a, secret_key: s, endpoint: "http://s3.example.com" } }`,
      'recordings.object_store.endpoint: expected https://, got http://s3.example.com: http is for this machine only',
    ],
    [
      'a prefix that leads elsewhere',
      `recordings: { object_store: { bucket: b-1, access_key: a, secret_key: s, prefix: ../up/.. } }`,
      'recordings.object_store.prefix: expected empty, or folders that end with a slash',
    ],
    [
      'a secret of the object store',
      `recordings: { object_store: { bucket: b-1, access_key: a, secret_key: { env: NOT_SET } } }`,
      'recordings.object_store.secret_key: the environment variable NOT_SET is not set',
    ],
    [
      'a key of the object store',
      `recordings: { object_store: { bucket: b-1, acces_key: a, secret_key: s } }`,
      'unknown key; the nearest known one is recordings.object_store.access_key',
    ],
    [
      'a size',
      'recordings: { min_free: 1GB }',
      'recordings.min_free: expected a size such as 64KiB, 100MiB or 1GiB, got "1GB"',
    ],
    [
      'recordings that nobody could open',
      'recordings: { broker_key: false }',
      'recordings.broker_key: expected at least one of recordings.recipients with false: nobody could open a recording',
    ],
    [
      'a recipient',
      'recordings: { recipients: [ssh-rsa] }',
      'recordings.recipients[0]: expected an age recipient (age1…), got "ssh-rsa"',
    ],
    [
      "a recipient's checksum",
      'recordings: { recipients: [age1qqqqqqqqqqqqqqq] }',
      'recordings.recipients[0]: not an age recipient',
    ],
    ['a missing key', 'syslog: [ { port: 514 } ]', 'syslog[0]: the key host is missing'],
    ['a map for a list', 'syslog: { host: a }', 'syslog: expected a list of syslog receivers, got a map'],
    [
      'too many items',
      `syslog: [${'{ host: a },'.repeat(17)}]`,
      'syslog: expected a list of syslog receivers, got a list',
    ],
    ['text for a map', 'listen: 443', 'listen: expected a map of keys, got 443'],
    ['a list for the file', '- a', ':1: expected a map of keys, got a list'],
    [
      'a level',
      'log: { level: loud }',
      'log.level: expected one of error, warn, info, debug, trace, got "loud"',
    ],
    [
      'a control byte in a host',
      'syslog: [ { host: "a\\nb" } ]',
      'syslog[0].host: expected a host name or an address',
    ],
    [
      'a certificate without its key',
      'listen: { https: { certificate: a } }',
      'listen.https: certificate and key belong together',
    ],
    [
      'a CA without TLS',
      'syslog: [ { host: a, transport: tcp, ca: x } ]',
      'syslog[0].ca: a certificate is of use with transport tls only',
    ],
    [
      'half a certificate for syslog',
      'syslog: [ { host: a, transport: tls, key: x } ]',
      'syslog[0]: certificate and key belong together',
    ],
    ['no community', 'snmp: { traps: [ { host: a } ] }', 'snmp.traps[0]: version 2c needs the key community'],
    [
      'a user with version 2c',
      'snmp: { traps: [ { host: a, community: x, user: u } ] }',
      'snmp.traps[0].user: this key is not one of version 2c',
    ],
    [
      'version 3 without inform',
      'snmp: { traps: [ { host: a, version: 3, user: u, auth_password: 12345678, priv_password: 12345678 } ] }',
      'snmp.traps[0].auth_password: expected text',
    ],
    [
      'version 3 without inform',
      'snmp: { traps: [ { host: a, version: 3, user: u, auth_password: longenough, priv_password: longenough } ] }',
      'snmp.traps[0]: version 3 is available with inform: true only',
    ],
    [
      'a short password',
      'snmp: { traps: [ { host: a, version: 3, inform: true, user: u, auth_password: short, priv_password: longenough } ] }',
      'snmp.traps[0].auth_password: expected at least 8 characters',
    ],
    [
      'no network',
      'listen: { rlogin: { allow: [10.0.0.0/33] } }',
      'listen.rlogin.allow[0]: expected an address or a network',
    ],
    [
      'clear text from a bad network',
      'listen: { vnc: { allow_clear: [10.0.0.0/33] } }',
      'listen.vnc.allow_clear[0]: expected an address or a network',
    ],
    [
      'a balancer by its name',
      'proxy_protocol: { from: [192.0.2.1, balancer.example.com] }',
      'proxy_protocol.from[1]: expected an address or a network such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32, got balancer.example.com',
    ],
    [
      'a proxy with a zone',
      'trusted_proxies: ["fe80::1%eth0"]',
      'trusted_proxies[0]: expected an address or a network such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32, got fe80::1%eth0',
    ],
    [
      'balancers that are no list',
      'proxy_protocol: { from: 10.0.0.0/8 }',
      'proxy_protocol.from: expected a list of networks',
    ],
    ['nobody', 'listen: { telnet: { allow: [] } }', 'listen.telnet.allow: expected a list of networks'],
    [
      'half a certificate',
      'listen: { telnets: { key: a } }',
      'listen.telnets: certificate and key belong together',
    ],
    ['a key twice', 'log: {}\nlog: {}', ':2: map keys must be unique'],
    ['no YAML', 'listen: [', ':1: flow sequence'],
    ['a lone dash', 'log: { level: info, file: - }', 'write "-" in quotes'],
    [
      'traces in clear text to another machine',
      'traces: { endpoint: "http://collector:4318/v1/traces" }',
      ':1: traces.endpoint: expected https://, got http://collector:4318/v1/traces',
    ],
    ['an agent that answers nobody', 'snmp: { agent: {} }', ':1: snmp.agent: expected v2c, v3 or both'],
    [
      'a community that is guessed',
      'snmp: { agent: { v2c: { community: public } } }',
      'snmp.agent.v2c.community: expected 8 to 255 bytes',
    ],
    [
      'an agent with SHA-1',
      'snmp: { agent: { v3: { user: u, auth: sha, auth_password: longenough, priv_password: longenough } } }',
      'snmp.agent.v3.auth: expected one of sha224, sha256, sha384, sha512, got "sha"',
    ],
    [
      'an agent with DES',
      'snmp: { agent: { v3: { user: u, auth_password: longenough, priv: des, priv_password: longenough } } }',
      'snmp.agent.v3.priv: expected one of aes, aes256, got "des"',
    ],
    [
      'an agent with a key that would have to be stretched',
      'snmp: { agent: { v3: { user: u, auth: sha224, auth_password: longenough, priv: aes256, priv_password: longenough } } }',
      'snmp.agent.v3.priv: aes256 needs auth: sha256, sha384 or sha512',
    ],
    [
      'an agent with a short password',
      'snmp: { agent: { v3: { user: u, auth_password: longenough, priv_password: short } } }',
      'snmp.agent.v3.priv_password: expected at least 8 characters',
    ],
    [
      'an agent without a password',
      'snmp: { agent: { v3: { user: u, auth_password: longenough } } }',
      'snmp.agent.v3',
    ],
    [
      'managers from no network',
      'snmp: { agent: { allow: [10.0.0.0/99], v2c: { community: longenough } } }',
      'snmp.agent.allow[0]: expected an address or a network',
    ],
  ])('is named with its line: %s', (_, text, expected) => {
    const found = problems(text)
    expect(found.every((problem) => /^\/etc\/sallyport\/sallyport\.yaml:\d+: /.test(problem))).toBe(true)
    expect(found.join('\n')).toContain(expected)
  })

  test('does not hide another one', () => {
    expect(problems('snmp: { agnt: {} }\nlogin_grace: x\nlogg: {}')).toHaveLength(3)
  })

  test('a file that is not there is named', () => {
    expect(() => loadConfig('/nonexistent/sallyport.yaml', surroundings)).toThrow(
      /cannot read the configuration \/nonexistent\/sallyport.yaml/,
    )
  })

  test('an alias bomb is refused', () => {
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]']
    for (let i = 1; i < 10; i++)
      bomb.push(`b${i}: &b${i} [${'*'.concat(i === 1 ? 'a' : `b${i - 1}`, ',').repeat(9)}]`)
    expect(() => parse(bomb.join('\n'))).toThrow(ConfigError)
  })
})

describe('two listeners on one port', () => {
  test.each([
    ['the same address', '{ ssh: { port: 22 }, vnc: { port: 22 } }'],
    ['all addresses and one of them', '{ ssh: { port: 22 }, metrics: { host: 127.0.0.1, port: 22 } }'],
    [
      'all of IPv4 and one of them',
      '{ ssh: { host: 0.0.0.0, port: 22 }, rdp: { host: 192.0.2.1, port: 22 } }',
    ],
  ])('are a fault with the line: %s', (_name, listen) => {
    expect(problems(`listen: ${listen}`)).toEqual([
      expect.stringMatching(
        /:1: listen\.\w+\.port: expected a port of its own, got 22, which listen\.ssh has too$/,
      ),
    ])
  })

  test('are none on different addresses, or where the system chooses', () => {
    const apart = '{ ssh: { host: 127.0.0.1, port: 22 }, vnc: { host: 192.0.2.1, port: 22 } }'
    expect(problems(`listen: ${apart}`)).toEqual([])
    expect(problems('listen: { ssh: { port: 0 }, vnc: { port: 0 } }')).toEqual([])
    const families = "{ ssh: { host: 0.0.0.0, port: 22 }, vnc: { host: '::1', port: 22 } }"
    expect(problems(`listen: ${families}`)).toEqual([])
  })
})
