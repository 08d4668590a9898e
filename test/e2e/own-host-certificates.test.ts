/** The bastion's own host certificates, with clients that trust the authority and clients that do not. */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { openWorkshop, type Workshop } from '../identity/certificates.ts'
import { metricsOf, sallyportCommand } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { dbclient, plink } from '../peers/putty.ts'
import { pythonClient } from '../peers/python.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

let shop: Workshop
let bastion: Bastion
const TYPES = ['ed25519', 'ecdsa', 'rsa'] as const

beforeAll(async () => {
  shop = openWorkshop()
  for (const name of ['ca', 'other-ca']) shop.key(name)
  shop.key('user')
  bastion = await startBastion()
  for (const type of TYPES) {
    copyFileSync(
      join(bastion.broker.dataFolder, 'ssh', `ssh_host_${type}_key.pub`),
      join(shop.folder, `${type}.pub`),
    )
  }
})
beforeEach(() => writeFileSync(bastion.home.knownHosts, ''))
afterAll(async () => {
  await bastion.stop()
  shop.remove()
})

const files = (names: readonly string[]) => names.map((name) => join(shop.folder, `${name}-cert.pub`))
const configure = (file: string, names: readonly string[]): string => {
  const config = parse(readFileSync(bastion.broker.configFile, 'utf8')) as Record<string, unknown>
  writeFileSync(file, stringify({ ...config, ssh: { host_certificates: files(names) } }))
  return file
}
/** Makes the broker reload its configuration with these certificates; returns its message about that. */
async function reload(names: readonly string[]): Promise<string> {
  const before = bastion.broker.log().length
  configure(bastion.broker.configFile, names)
  process.kill(bastion.broker.pid, 'SIGHUP')
  return await until('the new configuration', () => {
    const said = bastion.broker.log().slice(before)
    // The event about it comes before, and its sentence goes on.
    return /the configuration was (?:read again|not taken over)"/.test(said) ? said : undefined
  })
}
async function certify(types: readonly string[], args: string[]): Promise<string> {
  for (const type of types) shop.certify(type, 'ca', args)
  return await reload(types)
}
const GOOD = ['-h', '-I', 'bastion', '-n', '127.0.0.1']

/** Makes the client trust the authority for every port of the bastion. */
const trustAuthority = (name = 'ca') =>
  writeFileSync(bastion.home.knownHosts, `@cert-authority [127.0.0.1]:* ${shop.line(name)}\n`)
const strict = (...options: string[]) =>
  ssh(bastion.home, bastion.login({ options: ['StrictHostKeyChecking=yes', 'LogLevel=INFO', ...options] }), [
    'exit 7',
  ])

describe('a client that knows the authority', () => {
  beforeAll(() => certify(TYPES, GOOD))
  beforeEach(() => trustAuthority())

  test.each([
    'ssh-ed25519-cert-v01@openssh.com',
    'ecdsa-sha2-nistp256-cert-v01@openssh.com',
    'rsa-sha2-256-cert-v01@openssh.com',
    'rsa-sha2-512-cert-v01@openssh.com',
  ])('needs no key of the bastion, by %s', async (algorithm) => {
    expect((await strict(`HostKeyAlgorithms=${algorithm}`)).code).toBe(7)
  })

  test('is shown it again when keys are agreed anew', async () => {
    const login = bastion.login({ options: ['StrictHostKeyChecking=yes', 'RekeyLimit=64K'] })
    const done = await ssh(bastion.home, login, ['head -c 1000000 /dev/zero'])
    expect([done.code, done.bytes.length]).toEqual([0, 1_000_000])
  })

  test('refuses one for another host', async () => {
    await certify(TYPES, ['-h', '-I', 'bastion', '-n', 'bastion.example.com'])
    const done = await strict()
    expect(done.code).toBe(255)
    expect(done.stderr).toMatch(/not a listed principal/i)
  })

  test('refuses one of another authority', async () => {
    await certify(TYPES, GOOD)
    trustAuthority('other-ca')
    expect((await strict()).code).toBe(255)
  })

  test('is not shown one that is over, and refuses the plain key', async () => {
    expect(await certify(TYPES, [...GOOD, '-V', '20200101:20200102'])).toMatch(/was valid until 2020-01-0/)
    const done = await strict()
    expect(done.code).toBe(255)
    expect(done.stderr).toMatch(/key is known|verification failed/i)
    const metrics = await metricsOf(bastion.broker)
    const end = new Date(2020, 0, 2).getTime() / 1000
    expect(metrics).toContain(`sallyport_certificate_expiry_timestamp_seconds{listener="ssh"} ${end}\n`)
    const https = /_expiry_timestamp_seconds\{listener="https"\} (\d+)\n/.exec(metrics)
    expect(Number(https?.[1])).toBeGreaterThan(Date.now() / 1000)
  })
})

describe('a client that does not', () => {
  beforeAll(() => certify(TYPES, GOOD))

  test.each(TYPES)('knows the key %s as before, and learns of the others', async (type) => {
    const known = readFileSync(join(shop.folder, `${type}.pub`), 'utf8')
    bastion.home.trust(bastion.broker.ports.ssh, known)
    expect((await strict('UpdateHostKeys=yes')).code).toBe(7)
    for (const other of TYPES) {
      expect(readFileSync(bastion.home.knownHosts, 'utf8')).toContain(shop.line(other).split(' ')[1])
    }
  })

  test('is dropbear, PuTTY, paramiko or asyncssh', async () => {
    const hostFingerprint = shop.fingerprint('ed25519').split(' ')[1]!
    expect((await dbclient(bastion.home, bastion.login(), 'exit 4')).code).toBe(4)
    expect((await plink(bastion.home, bastion.login({ hostFingerprint }), 'exit 5')).code).toBe(5)
    for (const library of ['paramiko', 'asyncssh'] as const) {
      const [step] = await pythonClient(library, bastion.home, bastion.login(), [{ exec: 'exit 6' }])
      expect(step).toMatchObject({ code: 6 })
    }
  })
})

test('PuTTY takes one of an authority that it knows', async () => {
  await certify(TYPES, GOOD)
  const folder = join(bastion.home.folder, '.putty', 'sshhostcas')
  mkdirSync(folder, { recursive: true })
  const [, key] = shop.line('ca').split(' ')
  writeFileSync(join(folder, 'ours'), `PublicKey=${key}\nValidity=127.0.0.1\n`)
  const done = await plink(bastion.home, bastion.login(), 'exit 5')
  expect(done.stderr).not.toMatch(/fingerprint/)
  expect(done.code).toBe(5)
  await certify(TYPES, ['-h', '-I', 'bastion', '-n', 'bastion.example.com'])
  expect((await plink(bastion.home, bastion.login(), 'exit 5')).code).not.toBe(5)
})

test('a file with something else is refused by SIGHUP, check and start', async () => {
  shop.certify('ed25519', 'ca', GOOD)
  await reload(['ed25519'])
  const config = join(shop.folder, 'sallyport.yaml')
  for (const [name, args, said] of [
    ['user', ['-h', '-I', 'x', '-n', '127.0.0.1'], 'about none of the host keys'],
    ['ed25519', ['-I', 'x', '-n', '127.0.0.1'], 'is not one of a host'],
    ['ed25519', ['-h', '-I', 'x'], 'names no host'],
    ['ed25519', [...GOOD, '-O', 'critical:odd@example.com=1'], 'critical option'],
  ] as const) {
    shop.certify(name, 'ca', [...args])
    expect(await reload([name])).toContain(said)
    const checked = await run(...sallyportCommand(['check', '--config', configure(config, [name])]))
    expect(checked.stdout).toContain(said)
    expect(checked.code).toBe(1)
  }
  // the certificates from before are still shown
  trustAuthority()
  expect((await strict()).code).toBe(7)
  shop.certify('ed25519', 'ca', GOOD)
  expect(await reload(['ed25519', 'ed25519'])).toContain('is about the same key as')
  const started = await run(...sallyportCommand(['serve', '--config', configure(config, ['nowhere'])]))
  expect(started.code).toBe(1)
})

test('a configuration that fails at its last file leaves all of the old one', async () => {
  shop.certify('ed25519', 'ca', GOOD)
  await reload(['ed25519'])
  trustAuthority()
  const tls = (name: string) => join(bastion.broker.dataFolder, 'tls', name)
  const before = readFileSync(tls('cert.pem'))
  for (const name of ['cert.pem', 'key.pem']) writeFileSync(tls(name), 'no certificate')
  try {
    expect(await reload([])).toContain('the configuration was not taken over')
    expect((await strict()).code).toBe(7)
  } finally {
    rmSync(tls('key.pem'))
    writeFileSync(tls('cert.pem'), before)
  }
  expect(await reload([])).toContain('the configuration was read again')
  expect((await strict()).code).toBe(255)
})

test('check warns a month before the end, and says when it is over', async () => {
  const config = join(shop.folder, 'sallyport.yaml')
  for (const [validity, level] of [
    ['+40d', 'ok'],
    ['+20d', 'warning'],
    ['20200101:20200102', 'error'],
    ['20990101:20990102', 'error'],
  ] as const) {
    shop.certify('ed25519', 'ca', [...GOOD, '-V', validity])
    const done = await run(
      ...sallyportCommand(['check', '--json', '--config', configure(config, ['ed25519'])]),
    )
    const findings = done.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>)
    expect(findings.filter(({ subject }) => subject === 'host certs')).toMatchObject([{ level }])
  }
})
