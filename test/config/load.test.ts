import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigError, loadConfig, parseConfig } from '../../src/config/load.ts'

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
      dataDir: '/etc/data',
      hostname: 'box',
      listen: {
        https: { host: '::', port: 443 },
        ssh: { host: '::', port: 22 },
        metrics: { host: '127.0.0.1', port: 9464 },
      },
      ssh: { userCa: [] },
      database: { file: '/etc/data/sallyport.db' },
      masterKey: { file: '/etc/data/master.key' },
      recordings: { directory: '/etc/data/recordings', recipients: [], minFree: 2 ** 30 },
      loginGrace: 60_000,
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
recordings: { dir: /big/recordings, recipients: [${recipient}], min_free: 64KiB }
log: { level: debug, file: sallyport.log }
`)
    expect(config.dataDir).toBe('/etc/sallyport/state')
    expect(config.listen.https).toMatchObject({
      certificate: '/etc/sallyport/state/a.pem',
      key: '/secure/a.key',
    })
    expect(config.masterKey).toEqual({ file: '/etc/sallyport/keys/master.key' })
    expect(config.database.file).toBe('/etc/sallyport/state/db/x.db')
    expect(config.recordings).toEqual({
      directory: '/big/recordings',
      recipients: [recipient],
      minFree: 65_536,
    })
    const { ssh } = parse('ssh: { user_ca: [ca.pub, /secure/ca.pub], revoked_keys: krl }')
    expect(ssh).toEqual({ userCa: ['/etc/data/ca.pub', '/secure/ca.pub'], revokedKeys: '/etc/data/krl' })
    expect(config.log).toEqual({ level: 'debug', file: '/etc/sallyport/state/sallyport.log' })
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
    expect(parse('listen: { https: off, ssh: { port: 2222 }, metrics: off }').listen).toEqual({
      ssh: { host: '::', port: 2222 },
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
      'database: { url: "postgres://sallyport:hunter2@db/x" }',
      'database: { url: "mysql://sallyport:hunter2@db/x" }',
    ]) {
      expect(problems(text).length, text).toBeGreaterThan(0)
      expect(problems(text).join('\n')).not.toMatch(/hunter2|71070071/)
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
      'a banner that is too long',
      `ssh: { banner: ${'x'.repeat(9000)} }`,
      ':1: ssh.banner: expected text or { file: PATH }',
    ],
    [
      'a banner that is not there',
      'ssh: { banner: { file: nowhere } }',
      ':1: ssh.banner: cannot read the banner',
    ],
    ['an unknown key far from all', 'tls: {}', ':1: tls: unknown key; the nearest known one is ssh'],
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
      'a size',
      'recordings: { min_free: 1GB }',
      'recordings.min_free: expected a size such as 64KiB, 100MiB or 1GiB, got "1GB"',
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
    ['a key twice', 'log: {}\nlog: {}', ':2: map keys must be unique'],
    ['no YAML', 'listen: [', ':1: flow sequence'],
    ['a lone dash', 'log: { level: info, file: - }', 'write "-" in quotes'],
  ])('is named with its line: %s', (_, text, expected) => {
    const found = problems(text)
    expect(found.every((problem) => /^\/etc\/sallyport\/sallyport\.yaml:\d+: /.test(problem))).toBe(true)
    expect(found.join('\n')).toContain(expected)
  })

  test.each([
    'workers: 0',
    'listen: { telnet: off }',
    'listen: { telnet: { port: 23 } }',
    'listen: { rlogin: {} }',
    'listen: { telnets: off }',
    'listen: { vnc: {} }',
    'listen: { rdp: {} }',
    'recordings: { keep_days: 0 }',
    'snmp: { agent: {} }',
    'database: { url: "postgres://db/x" }',
    'syslog: [ { host: a, format: cef } ]',
    'syslog: [ { host: a, format: leef } ]',
  ])('is said to be of a later release: %s', (text) => {
    expect(problems(text)).toHaveLength(1)
    expect(problems(text)[0]).toContain('not available yet')
  })

  test('does not hide another one', () => {
    expect(problems('workers: 1\nlogin_grace: x\nlogg: {}')).toHaveLength(3)
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
