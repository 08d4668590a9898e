/** Targets that prove their host key by a certificate of ssh-keygen, and targets that fail to. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openWorkshop, type Workshop } from '../identity/certificates.ts'
import type { SshKey } from '../peers/keys.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { type Bastion, startBastion } from './bastion.ts'

describeWithPeers('with host_key_policy ca a target', ['sshd', 'ssh', 'ssh-keygen'], () => {
  let shop: Workshop
  let bastion: Bastion
  let revoked: string
  /** Restarted on the port of the first. */
  let sshd: Sshd

  beforeAll(async () => {
    shop = openWorkshop()
    for (const name of ['ca', 'other-ca', 'host', 'neighbour']) shop.key(name)
    shop.key('ca-rsa', 'rsa', 3072)
    shop.key('ecdsa', 'ecdsa', 384)
    shop.key('rsa', 'rsa', 3072)
    revoked = join(shop.folder, 'revoked')
    writeFileSync(revoked, '')
    bastion = await startBastion({
      credential: 'password',
      broker: { config: { ssh: { revoked_host_keys: revoked } } },
    })
    sshd = bastion.sshd
  })
  beforeEach(async () => {
    writeFileSync(revoked, '')
    await policy(['ca'])
    await service('ca')
  })
  afterAll(async () => {
    await sshd.stop()
    await bastion.stop()
    shop.remove()
  })

  const policy = (authorities: string[]) =>
    bastion.broker.must('PUT', '/connectionpolicies/SSH', { host_ca_keys: authorities.map(shop.line) })
  const service = (host_key_policy: string | null) =>
    bastion.broker.must('PUT', '/devices/srv1/services/ssh', { host_key_policy })
  const hostKey = (name: string): SshKey => {
    const path = join(shop.folder, name)
    const fingerprint = shop.fingerprint(name).split(' ')[1]!
    return { path, privateKey: readFileSync(path, 'utf8'), publicKey: shop.line(name), fingerprint }
  }
  /** Restarts the target with this key, and with a certificate for it if given. */
  async function restart(name: string, certificate?: string): Promise<void> {
    const { port } = sshd
    await sshd.stop()
    sshd = await startSshd({
      users: [{ name: bastion.account.name }],
      hostKeys: [hostKey(name)],
      port,
      ...(certificate && {
        extraConfig: [`HostCertificate ${join(shop.folder, `${certificate}-cert.pub`)}`],
      }),
    })
  }
  const login = () => ssh(bastion.home, bastion.login(), ['echo reached'])
  const alerts = async () => (await bastion.events('hostkey.changed')).length
  const refusals = async () => (await bastion.events('hostkey.new')).length
  const GOOD = ['-I', 'srv1', '-h', '-z', '7', '-n', 'srv1.example.com,127.0.0.1']

  test.each(['host', 'ecdsa', 'rsa'])('is believed by its certificate about the key %s', async (name) => {
    shop.certify(name, 'ca', GOOD)
    await restart(name, name)
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
    expect(await bastion.broker.must('GET', '/hostkeys')).toEqual([])
    expect([await alerts(), await refusals()]).toEqual([0, 0])
  })

  test('is believed by one of an RSA authority, and for its port', async () => {
    await policy(['other-ca', 'ca-rsa'])
    shop.certify('host', 'ca-rsa', ['-I', 'srv1', '-h', '-n', `[127.0.0.1]:${sshd.port}`])
    await restart('host', 'host')
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n' })
  })

  const refused = async (said: RegExp, code: 'hostkey.changed' | 'hostkey.new') => {
    const before = (await bastion.events(code)).length
    const { code: exit, stdout, stderr } = await login()
    expect({ exit, stdout }).toEqual({ exit: 255, stdout: '' })
    expect(stderr).toMatch(said)
    const event = (await bastion.events(code, before + 1)).at(-1)
    expect(event?.['reason']).toMatch(/it|certificate|policy/)
    expect(sshd.log()).not.toMatch(/Accepted|Failed password/)
    expect(await bastion.broker.must('GET', '/hostkeys')).toEqual([])
    return event
  }

  test.each<[string, string[], RegExp, 'hostkey.changed' | 'hostkey.new', string?]>([
    ['of another authority', GOOD, /not among host_ca_keys/, 'hostkey.changed', 'other-ca'],
    [
      'of an authority that signs with SHA-1',
      ['-t', 'ssh-rsa', ...GOOD],
      /not signed by/,
      'hostkey.changed',
      'ca-rsa',
    ],
    ['of a user', ['-I', 'x', '-n', '127.0.0.1'], /not one of a host/, 'hostkey.changed'],
    [
      'for another host',
      ['-I', 'x', '-h', '-n', 'srv2,127.0.0.2,127.0.0.*'],
      /for another host/,
      'hostkey.changed',
    ],
    ['for nobody', ['-I', 'x', '-h'], /for another host/, 'hostkey.changed'],
    ['that is over', [...GOOD, '-V', '20200101:20200102'], /not valid now/, 'hostkey.new'],
    ['that is to come', [...GOOD, '-V', '20990101:20990102'], /not valid now/, 'hostkey.new'],
    ['with a condition', [...GOOD, '-O', 'critical:odd@example.com=1'], /critical option/, 'hostkey.new'],
  ])('is refused with a certificate %s', async (_, args, said, code, ca = 'ca') => {
    if (ca === 'ca-rsa') await policy(['ca-rsa'])
    shop.certify('host', ca, args)
    await restart('host', 'host')
    await refused(said, code)
  })

  test('is refused without a certificate, and the key is not kept for anybody to accept', async () => {
    await restart('host')
    const event = await refused(/came without a certificate/, 'hostkey.new')
    expect(event).toMatchObject({ result: 'refused', level: 'warn', method: 'ssh-ed25519' })
    expect(event?.['digest']).toBe(hostKey('host').fingerprint)
  })

  test('is refused with the certificate of its neighbour (attack 50)', async () => {
    shop.certify('neighbour', 'ca', ['-I', 'neighbour', '-h', '-n', 'srv2,192.0.2.2'])
    await restart('neighbour', 'neighbour')
    const event = await refused(/for another host/, 'hostkey.changed')
    expect(event).toMatchObject({ severity: 'alert', method: 'ssh-ed25519 certificate' })
    expect(event?.['digest']).toBe(hostKey('neighbour').fingerprint)
  })

  test('is refused where no authority is named', async () => {
    shop.certify('host', 'ca', GOOD)
    await restart('host', 'host')
    await policy([])
    await refused(/has no host_ca_keys/, 'hostkey.new')
  })

  test.each<[string, () => string[]]>([
    ['serial', () => ['serial: 7']],
    ['key', () => [`key: ${shop.line('host')}`]],
    ['authority', () => [`sha256: ${shop.line('ca')}`]],
  ])('is refused once its %s is revoked, from then on', async (_, spec) => {
    shop.certify('host', 'ca', GOOD)
    await restart('host', 'host')
    expect((await login()).code).toBe(0)
    const { port } = sshd
    await sshd.stop()
    sshd = await startSshd({
      hostKeys: [hostKey('host')],
      port,
      extraConfig: [`HostCertificate ${join(shop.folder, 'host-cert.pub')}`],
    })
    writeFileSync(revoked, shop.revoke(spec(), 'ca'))
    await refused(/it is revoked/, 'hostkey.changed')
  })

  test('has secrets changed only where the authority vouches for it', async () => {
    await bastion.broker.must('PUT', '/devices/srv1/localdomains/local', {
      enable_password_change: true,
      password_change_plugin: 'Unix',
    })
    const change = async () => {
      const account = `${bastion.account.name}@local@srv1`
      const [done] = await bastion.broker.must<Record<string, string>[]>(
        'POST',
        `/accounts/${account}/change`,
        {},
      )
      return done
    }
    shop.certify('host', 'other-ca', GOOD)
    await restart('host', 'host')
    expect(await change()).toMatchObject({ outcome: 'failed', reason: 'untrusted' })
    shop.certify('host', 'ca', GOOD)
    await restart('host', 'host')
    expect(await change()).toMatchObject({ outcome: 'changed' })
    expect((await login()).code).toBe(0)
    expect(bastion.broker.log()).toContain('processes that change secrets')
  })

  test('is not asked for a certificate by another policy, and a revoked key is refused by any', async () => {
    shop.certify('host', 'ca', GOOD)
    await restart('host', 'host')
    await service('first_sight')
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n' })
    const known = await bastion.broker.must<{ id: string }[]>('GET', '/hostkeys')
    expect(known).toMatchObject([{ key_type: 'ssh-ed25519', fingerprint: hostKey('host').fingerprint }])
    writeFileSync(revoked, `${shop.line('host')}\n`)
    expect((await login()).stderr).toMatch(/it is revoked/)
    writeFileSync(revoked, 'nonsense')
    expect((await login()).stderr).toMatch(/list of revoked host keys cannot be read/)
    for (const { id } of known) await bastion.broker.must('DELETE', `/hostkeys/${id}`)
  })
})
