/**
 * FIDO keys at the front: node:crypto is the token, and a raw client sends messages that a real one never
 * would.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { fidoKey } from '../identity/keys.ts'
import { AUTH, connectToSignIn, keyOffer, keyRequest, type RawClient, type Signer } from './raw.ts'
import { describeAttacks } from './setting.ts'

/** Flags of a signature: the user has touched the token, and has shown a PIN or a finger. */
const [PRESENT, VERIFIED] = [1, 4]

describeAttacks('a FIDO token', (setting) => {
  describe.each(['sk-ssh-ed25519@openssh.com', 'sk-ecdsa-sha2-nistp256@openssh.com'])('with %s', (type) => {
    const token = fidoKey(type)
    let user: string
    const signer = (field: (data: Buffer) => Buffer): Signer => ({
      algorithm: type,
      blob: token.blob,
      sign: () => Buffer.alloc(0),
      field,
    })

    beforeAll(async () => {
      const { broker } = setting.bastion
      const known = await broker.must<{ ssh_public_keys: string[] }>('GET', '/users/ops1')
      await broker.must('PUT', '/users/ops1', { ssh_public_keys: [...known.ssh_public_keys, token.line] })
      user = setting.bastion.login().user
    })

    async function attempt(
      key: Signer,
      body: (client: RawClient) => Promise<void> = async () => undefined,
    ): Promise<number | undefined> {
      const client = await connectToSignIn({ port: setting.bastion.broker.ports.ssh })
      try {
        await body(client)
        client.send(keyRequest(user, key, client.sessionId))
        const [answer] = await client.next(AUTH.success, AUTH.failure)
        return answer
      } finally {
        client.destroy()
      }
    }

    test('is acceptable, and signs in when its user touched it', async () => {
      const key = signer((data) => token.sign(data, { flags: 1 }))
      const answer = await attempt(key, async (client) => {
        client.send(keyOffer(user, key))
        const acceptable = new Writer().byte(AUTH.pkOk).string(type).string(token.blob).finish()
        expect(await client.next(AUTH.failure, AUTH.pkOk)).toEqual(acceptable)
      })
      expect(answer).toBe(AUTH.success)
    })

    test('counts as both factors where the policy says so, if it has checked its user, and else does not', async () => {
      const group = '/usergroups/ops1-srv1-users'
      const { broker } = setting.bastion
      const by = (flags: number) => attempt(signer((data) => token.sign(data, { flags })))
      await broker.must('PUT', group, { second_factor: 'required' })
      expect(await by(PRESENT | VERIFIED)).toBe(AUTH.failure)
      await broker.must('PUT', group, { second_factor_keys: true })
      expect([await by(PRESENT | VERIFIED), await by(PRESENT)]).toEqual([AUTH.success, AUTH.failure])
      // One more policy, which does not say so.
      await broker.must('PUT', '/profiles/user', { second_factor: 'required' })
      expect(await by(PRESENT | VERIFIED)).toBe(AUTH.failure)
      await broker.must('PUT', '/profiles/user', { second_factor: 'none' })
      await broker.must('PUT', group, { second_factor: 'none', second_factor_keys: false })
      expect(await by(PRESENT)).toBe(AUTH.success)
    })

    const plain = type.includes('ed25519') ? 'ssh-ed25519' : 'ecdsa-sha2-nistp256'
    test.each<[string, (data: Buffer) => Buffer]>([
      ['without a touch', (data) => token.sign(data, { flags: 0 })],
      ['for another application', (data) => token.sign(data, { flags: 1, application: 'ssh:other' })],
      ['as a plain key', (data) => token.signPlainly(data, plain)],
      ['as a plain key under its own name', (data) => token.signPlainly(data, type)],
      ['cut short', (data) => token.sign(data, { flags: 1 }).subarray(0, -1)],
      ['over something else', (data) => token.sign(data.subarray(1), { flags: 1 })],
    ])('is refused %s', async (_, field) => {
      expect(await attempt(signer(field))).toBe(AUTH.failure)
    })
  })
})
