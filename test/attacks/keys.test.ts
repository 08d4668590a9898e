/** Invalid keys at the front: offered, and with a signature. */
import { createECDH, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { ssh } from '../peers/openssh.ts'
import { AUTH, connectToSignIn, keyOffer, keyRequest, type Signer } from './raw.ts'
import { describeAttacks } from './setting.ts'

const string = (...parts: (string | Uint8Array)[]): Buffer =>
  parts.reduce((writer: Writer, part) => writer.string(part), new Writer()).finish()

const ED25519 = 'ssh-ed25519'
const P256 = 'ecdsa-sha2-nistp256'
const ONE = Buffer.concat([Buffer.of(1), Buffer.alloc(31)])
const huge = (bytes: number): Buffer => Buffer.concat([Buffer.of(0), Buffer.alloc(bytes, 0xff)])
const THREE = Buffer.of(3)

describeAttacks('keys', (setting) => {
  const keys: [string, string, Buffer, Uint8Array][] = [
    ['Ed25519 of 31 bytes', ED25519, string(ED25519, randomBytes(31)), randomBytes(64)],
    ['Ed25519 of 33 bytes', ED25519, string(ED25519, randomBytes(33)), randomBytes(64)],
    ['Ed25519 of no bytes', ED25519, string(ED25519, ''), randomBytes(64)],
    ['Ed25519 of small order', ED25519, string(ED25519, ONE), Buffer.concat([ONE, Buffer.alloc(32)])],
    ['Ed25519 with a signature of 4 bytes', ED25519, string(ED25519, ONE), randomBytes(4)],
    [
      'ECDSA that is no point',
      P256,
      string(P256, 'nistp256', Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)])),
      string(Buffer.of(1), Buffer.of(1)),
    ],
    ['ECDSA at infinity', P256, string(P256, 'nistp256', Buffer.of(0)), string('', '')],
    [
      'ECDSA of another curve',
      P256,
      string(P256, 'nistp384', createECDH('secp384r1').generateKeys()),
      string(Buffer.of(1), Buffer.of(1)),
    ],
    ['RSA of 240,000 bits', 'rsa-sha2-512', string('ssh-rsa', THREE, huge(30_000)), huge(2_000)],
    ['RSA of no bits', 'rsa-sha2-512', string('ssh-rsa', THREE, ''), randomBytes(64)],
    [
      'RSA of a negative number',
      'rsa-sha2-512',
      string('ssh-rsa', THREE, Buffer.alloc(256, 0xff)),
      huge(256),
    ],
    [
      'RSA with an exponent of 16,000 bits',
      'rsa-sha2-512',
      string('ssh-rsa', huge(2_000), huge(256)),
      huge(256),
    ],
    ['a type of 20,000 bytes', ED25519, string('x'.repeat(20_000)), randomBytes(64)],
    ['a key that is cut short', ED25519, string(ED25519, randomBytes(32)).subarray(0, -1), randomBytes(64)],
    ['nothing', ED25519, Buffer.alloc(0), Buffer.alloc(0)],
  ]

  async function arrive() {
    return await connectToSignIn({ port: setting.bastion.broker.ports.ssh, from: '127.6.0.1' })
  }

  describe.each(keys)('%s', (_, algorithm, blob, signature) => {
    const key: Signer = { algorithm, blob, sign: () => Buffer.from(signature) }

    test.each(['offered', 'signed'])('%s: is refused, and the next one may try', async (how) => {
      const { user } = setting.bastion.login()
      const client = await arrive()
      client.send(how === 'offered' ? keyOffer(user, key) : keyRequest(user, key, client.sessionId))
      // If the message itself cannot be parsed the connection ends, as with any other.
      const answer = await client.next(AUTH.success, AUTH.failure, AUTH.pkOk).catch(() => undefined)
      expect(answer?.[0] ?? AUTH.failure).toBe(AUTH.failure)
      expect(answer !== undefined || client.closed).toBe(true)
      client.destroy()
    })
  })

  test('of 2 MiB (16 Mbit of RSA) ends the connection', async () => {
    const client = await arrive()
    const blob = string('ssh-rsa', THREE, huge(2 * 1024 * 1024))
    const before = setting.resident()
    client.send(keyOffer(setting.bastion.login().user, { algorithm: 'rsa-sha2-512', blob, sign: () => blob }))
    await client.untilClosed()
    expect(setting.resident() - before).toBeLessThan(100_000)
    expect((await ssh(setting.bastion.home, setting.bastion.login(), ['true'])).code).toBe(0)
  })
})
