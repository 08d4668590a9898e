/** OpenSSH's client signs in by certificates of ssh-keygen; revoked ones are refused. */
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AUTH, connectToSignIn, keyRequest, type Signer, signerOf } from '../attacks/raw.ts'
import { openWorkshop, type Workshop } from '../identity/certificates.ts'
import { sallyportCommand } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { type Bastion, startBastion } from './bastion.ts'

let shop: Workshop
let bastion: Bastion
let revoked: string

beforeAll(async () => {
  shop = openWorkshop()
  for (const name of ['ca', 'other-ca', 'laptop']) shop.key(name)
  shop.key('ecdsa', 'ecdsa', 256)
  shop.key('rsa', 'rsa', 3072)
  revoked = join(shop.folder, 'revoked')
  writeFileSync(revoked, '')
  bastion = await startBastion({
    broker: { config: { ssh: { user_ca: [join(shop.folder, 'ca.pub')], revoked_keys: revoked } } },
  })
})
beforeEach(() => writeFileSync(revoked, ''))
afterAll(async () => {
  await bastion.stop()
  shop.remove()
})

/** Certifies the key and signs in with it; returns the exit code of `exit 7`. */
async function attempt(name: string, args: string[], ca = 'ca'): Promise<number | null> {
  shop.certify(name, ca, ['-I', `${name} of ops1`, '-z', '7', ...args])
  return await again(name)
}

async function again(name: string): Promise<number | null> {
  const { port, user } = bastion.login()
  const options = [`CertificateFile=${join(shop.folder, `${name}-cert.pub`)}`, 'BatchMode=yes']
  const identity = join(shop.folder, name)
  return (await ssh(bastion.home, { port, user, identity, options }, ['exit 7'])).code
}

describe('a certificate', () => {
  test.each(['laptop', 'ecdsa', 'rsa'])(
    'about the key %s signs in, and the key alone does not',
    async (name) => {
      expect(await attempt(name, ['-n', 'ops1'])).toBe(7)
      const { port, user } = bastion.login()
      // Elsewhere ssh would find the certificate beside the key.
      const alone = join(bastion.home.folder, name)
      copyFileSync(join(shop.folder, name), alone)
      const done = await ssh(bastion.home, { port, user, identity: alone, options: ['BatchMode=yes'] }, [
        'true',
      ])
      expect(done.code).toBe(255)
    },
  )

  test.each<[string, string[], string?]>([
    ['of another authority', ['-n', 'ops1'], 'other-ca'],
    ['for somebody else', ['-n', 'root,admin']],
    ['for nobody', []],
    ['that is over', ['-n', 'ops1', '-V', '20200101:20200102']],
    ['that is to come', ['-n', 'ops1', '-V', '20990101:20990102']],
    ['for another network', ['-n', 'ops1', '-O', 'source-address=192.0.2.0/24']],
    ['of a host', ['-h', '-n', 'ops1']],
    ['with an unknown option', ['-n', 'ops1', '-O', 'critical:odd@example.com=1']],
  ])('%s does not sign in', async (_, args, ca) => {
    expect(await attempt('laptop', args, ca)).toBe(255)
  })

  test('for this network does', async () => {
    expect(await attempt('laptop', ['-n', 'ops1', '-O', 'source-address=127.0.0.0/8'])).toBe(7)
  })

  test('does not sign in who may not use keys, or may not sign in at all', async () => {
    for (const [off, on] of [
      [{ user_auths: ['local_password'] }, { user_auths: ['local_password', 'local_sshkey'] }],
      [{ is_disabled: true }, { is_disabled: false }],
    ]) {
      await bastion.broker.must('PUT', '/users/ops1', off)
      expect(await attempt('laptop', ['-n', 'ops1'])).toBe(255)
      await bastion.broker.must('PUT', '/users/ops1', on)
      expect(await attempt('laptop', ['-n', 'ops1'])).toBe(7)
    }
  })
})

describe('a certificate in the hands of a client that keeps no rule', () => {
  const CERTIFICATE = 'ssh-ed25519-cert-v01@openssh.com'

  /** Returns the response to one signed request. */
  async function request(key: Signer, by: Signer = key): Promise<number | undefined> {
    const { port, user } = bastion.login()
    const client = await connectToSignIn({ port })
    client.send(keyRequest(user, key, client.sessionId, by))
    const [answer] = await client.next(AUTH.success, AUTH.failure)
    client.destroy()
    return answer
  }
  const keyOf = (name: string): Signer => signerOf(readFileSync(join(shop.folder, name), 'utf8'))
  const signedBy = (name: string, blob: Buffer, algorithm = CERTIFICATE): Signer => ({
    ...keyOf(name),
    blob,
    algorithm,
  })

  test('counts when its own key has signed by its own name, and in no other way', async () => {
    const blob = shop.certify('laptop', 'ca', ['-I', 'x', '-n', 'ops1'])
    const plain = keyOf('laptop')
    expect(await request(signedBy('laptop', blob), plain)).toBe(AUTH.success)
    expect(await request(signedBy('laptop', blob), keyOf('other-ca'))).toBe(AUTH.failure)
    expect(await request(signedBy('laptop', blob))).toBe(AUTH.failure)
    expect(await request(signedBy('laptop', blob, 'ssh-ed25519'), plain)).toBe(AUTH.failure)
    expect(await request(signedBy('laptop', plain.blob), plain)).toBe(AUTH.failure)
    expect(await request(plain)).toBe(AUTH.failure)
  })

  test('of RSA does not sign with SHA-1', async () => {
    const blob = shop.certify('rsa', 'ca', ['-I', 'x', '-n', 'ops1'])
    const text = readFileSync(join(shop.folder, 'rsa'), 'utf8')
    for (const [name, expected] of [
      ['rsa-sha2-256', AUTH.success],
      ['rsa-sha2-512', AUTH.success],
      ['ssh-rsa', AUTH.failure],
    ] as const) {
      const key = { ...signerOf(text, name), blob, algorithm: `${name}-cert-v01@openssh.com` }
      expect(await request(key, signerOf(text, name))).toBe(expected)
    }
  })

  test('refused, is an event that says why', async () => {
    const reasons: unknown[] = []
    for (const [ca, args] of [
      ['other-ca', ['-n', 'ops1']],
      ['ca', ['-n', 'root']],
      ['ca', ['-n', 'ops1', '-V', '20200101:20200102']],
    ] as const) {
      const before = (await bastion.events('auth.failure')).length
      const blob = shop.certify('laptop', ca, ['-I', 'x', ...args])
      expect(await request(signedBy('laptop', blob), keyOf('laptop'))).toBe(AUTH.failure)
      reasons.push((await bastion.events('auth.failure', before + 1)).at(-1)?.['reason'])
    }
    expect(reasons).toEqual(['certificate_authority', 'certificate_principal', 'certificate_validity'])
  })
})

describe('what is revoked', () => {
  test.each<[string, () => string[]]>([
    ['by serial', () => ['serial: 7']],
    ['by key id', () => ['id: laptop of ops1']],
    ['by key', () => [`key: ${shop.line('laptop')}`]],
    ['by hash', () => [`sha256: ${shop.line('laptop')}`]],
    ['with its authority', () => [`key: ${shop.line('ca')}`]],
  ])('%s, does not sign in from then on', async (_, spec) => {
    expect(await attempt('laptop', ['-n', 'ops1'])).toBe(7)
    writeFileSync(revoked, shop.revoke(spec(), 'ca'))
    expect(await again('laptop')).toBe(255)
    writeFileSync(revoked, shop.revoke(['serial: 8'], 'ca'))
    expect(await again('laptop')).toBe(7)
  })

  test('holds for a key that is registered with the user too', async () => {
    const login = { ...bastion.login(), identity: bastion.key.path, options: ['BatchMode=yes'] }
    const { password: _, ...byKey } = login
    expect((await ssh(bastion.home, byKey, ['exit 7'])).code).toBe(7)
    writeFileSync(revoked, `${bastion.key.publicKey}\n`)
    expect((await ssh(bastion.home, byKey, ['exit 7'])).code).toBe(255)
  })

  test('is everything while the list cannot be read; passwords still sign in', async () => {
    shop.certify('laptop', 'ca', ['-I', 'x', '-n', 'ops1'])
    renameSync(revoked, `${revoked}.gone`)
    expect(await again('laptop')).toBe(255)
    writeFileSync(revoked, 'nonsense')
    expect(await again('laptop')).toBe(255)
    expect((await ssh(bastion.home, bastion.login(), ['exit 7'])).code).toBe(7)
  })
})

test('the start refuses files that hold something else, and check says so', async () => {
  const config = join(shop.folder, 'sallyport.yaml')
  for (const [key, value, said] of [
    ['user_ca', [join(shop.folder, 'ca')], 'that is no public key'],
    ['user_ca', [join(shop.folder, 'nowhere')], 'ENOENT'],
    ['revoked_keys', join(shop.folder, 'nowhere'), 'ENOENT'],
  ] as const) {
    const off =
      '{ https: off, telnet: off, rlogin: off, vnc: off, rdp: off, metrics: off, ssh: { host: 127.0.0.1, port: 0 } }'
    writeFileSync(config, `listen: ${off}\nssh: { ${key}: ${JSON.stringify(value)} }\ndata_dir: data\n`)
    for (const command of ['check', 'serve']) {
      const done = await run(...sallyportCommand([command, '--config', config]))
      expect(done.code).toBe(1)
      expect(done.stdout + done.stderr).toContain(said)
    }
  }
})
