/** Targets whose host keys the DNS confirms, and targets without confirmation. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { startUnbound, type Unbound } from '../peers/unbound.ts'
import { type Bastion, startBastion } from './bastion.ts'

const PEERS = ['sshd', 'ssh', 'ssh-keygen', 'unbound', 'ldns-keygen', 'ldns-signzone'] as const

describeWithPeers('with host_key_policy dns a target', PEERS, () => {
  let bastion: Bastion
  let sshd: Sshd
  let unbound: Unbound | undefined
  let other: SshKey
  let port: number

  beforeAll(async () => {
    port = await freePort()
    bastion = await startBastion({
      credential: 'password',
      broker: { config: { dns: { servers: [{ host: '127.0.0.1', port }] } } },
    })
    sshd = bastion.sshd
    other = await generateKey(bastion.home.folder, { type: 'ed25519' })
    await bastion.broker.must('PUT', '/devices/srv1', { host: 'localhost' })
    await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { host_key_policy: 'dns' })
  })
  afterEach(async () => {
    await unbound?.stop()
    unbound = undefined
  })
  afterAll(async () => {
    await sshd.stop()
    await bastion.stop()
  })

  /** Returns ssh-keygen's DNS records for this key. */
  async function recordsOf(key: SshKey): Promise<string[]> {
    const done = await run(findProgram('ssh-keygen'), ['-r', 'localhost.', '-f', `${key.path}.pub`])
    return done.stdout.trim().split('\n')
  }
  const own = () => recordsOf(sshd.hostKeys[0]!)
  const login = () => ssh(bastion.home, bastion.login(), ['echo reached'])

  async function refused(said: RegExp, code: 'hostkey.changed' | 'hostkey.new') {
    const before = (await bastion.events(code)).length
    const { code: exit, stdout, stderr } = await login()
    expect({ exit, stdout }).toEqual({ exit: 255, stdout: '' })
    expect(stderr).toMatch(said)
    const event = (await bastion.events(code, before + 1)).at(-1)
    expect(event?.['reason']).toMatch(said)
    expect(await bastion.broker.must('GET', '/hostkeys')).toEqual([])
    return event
  }

  test('is believed by authentic records, and nothing is pinned', async () => {
    unbound = await startUnbound({ records: await own() }, port)
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
    expect(await bastion.broker.must('GET', '/hostkeys')).toEqual([])
    expect(unbound.log()).toMatch(/localhost\. SSHFP IN/)
  })

  test('is believed by one record among those of other keys', async () => {
    unbound = await startUnbound({ records: [...(await recordsOf(other)), ...(await own())] }, port)
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n' })
  })

  test('is refused with an alert when its key differs', async () => {
    unbound = await startUnbound({ records: await recordsOf(other) }, port)
    const event = await refused(/differs from the SSHFP records of localhost/, 'hostkey.changed')
    expect(event).toMatchObject({ severity: 'alert', digest: sshd.hostKeys[0]!.fingerprint })
  })

  test('is refused when the records are not signed', async () => {
    unbound = await startUnbound({ records: await own(), signed: 'no' }, port)
    await refused(/are not authenticated by DNSSEC/, 'hostkey.new')
  })

  test('is refused when somebody else has signed them', async () => {
    unbound = await startUnbound({ records: await own(), signed: 'other' }, port)
    await refused(/were not found: the resolver answers SERVFAIL/, 'hostkey.new')
  })

  test('is refused when there are none, or only by SHA-1', async () => {
    unbound = await startUnbound({ records: [] }, port)
    await refused(/localhost has no SSHFP records/, 'hostkey.new')
    await unbound.stop()
    const weak = (await own()).filter((line) => / SSHFP \d 1 /.test(line))
    expect(weak).toHaveLength(1)
    unbound = await startUnbound({ records: weak }, port)
    await refused(/no SHA-256 fingerprint/, 'hostkey.new')
  })

  test('is refused when no resolver answers', async () => {
    await refused(/were not found: the resolver (?:cannot be reached|does not answer)/, 'hostkey.new')
  })

  test('is refused by its address, about which the DNS has no such records', async () => {
    unbound = await startUnbound({ records: await own() }, port)
    await bastion.broker.must('PUT', '/devices/srv1', { host: '127.0.0.1' })
    await refused(/127\.0\.0\.1 is an address/, 'hostkey.new')
    await bastion.broker.must('PUT', '/devices/srv1', { host: 'localhost' })
    expect((await login()).code).toBe(0)
  })

  test('may have an ECDSA or RSA key', async () => {
    for (const type of ['ecdsa', 'rsa'] as const) {
      const before = sshd.port
      await sshd.stop()
      sshd = await startSshd({ users: [{ name: bastion.account.name }], hostKeys: [type], port: before })
      unbound = await startUnbound({ records: await own() }, port)
      expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n' })
      await unbound.stop()
    }
  })
})

test('without a resolver that is trusted the policy dns believes nobody', async () => {
  const bastion = await startBastion()
  try {
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', { host_key_policy: 'dns' })
    const done = await ssh(bastion.home, bastion.login(), ['echo reached'])
    expect(done).toMatchObject({ code: 255, stdout: '' })
    expect(done.stderr).toMatch(/trusts no resolver \(dns\.servers\)/)
  } finally {
    await bastion.stop()
  }
})
