/**
 * Targets with old algorithms only: refused with the remedy, until their connection policy lists the
 * algorithms.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generateKey } from '../peers/keys.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { startSshd } from '../peers/sshd.ts'
import { type Bastion, startBastion } from './bastion.ts'

describeWithPeers('old gear', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  beforeAll(async () => {
    bastion = await startBastion({ credential: 'password' })
  })
  afterAll(() => bastion.stop())

  const usePort = async (port: number) => {
    await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { port })
    for (const { id } of await bastion.broker.must<{ id: string }[]>('GET', '/hostkeys'))
      await bastion.broker.must('DELETE', `/hostkeys/${id}`)
  }
  const login = () => ssh(bastion.home, bastion.login(), ['echo reached'])
  const allow = (legacy_algorithms: string[]) =>
    bastion.broker.must('PUT', '/connectionpolicies/SSH', { legacy_algorithms })

  test.each([
    [
      'key exchange algorithm',
      ['KexAlgorithms diffie-hellman-group14-sha1'],
      ['diffie-hellman-group14-sha1'],
    ],
    ['key exchange algorithm', ['KexAlgorithms diffie-hellman-group1-sha1'], ['diffie-hellman-group1-sha1']],
    [
      'key exchange algorithm',
      ['KexAlgorithms diffie-hellman-group-exchange-sha256'],
      ['diffie-hellman-group-exchange-sha256'],
    ],
    ['host key format', ['HostKeyAlgorithms ssh-rsa'], ['ssh-rsa']],
    ['C->S cipher', ['Ciphers aes128-cbc', 'MACs hmac-sha2-256'], ['aes128-cbc']],
    ['C->S cipher', ['Ciphers 3des-cbc', 'MACs hmac-sha2-256'], ['3des-cbc']],
    ['C->S MAC', ['Ciphers aes128-ctr', 'MACs hmac-sha1'], ['hmac-sha1']],
    ['C->S MAC', ['Ciphers aes128-ctr', 'MACs hmac-md5'], ['hmac-md5']],
    [
      'key exchange algorithm',
      [
        'KexAlgorithms diffie-hellman-group1-sha1',
        'HostKeyAlgorithms ssh-rsa',
        'Ciphers aes256-cbc',
        'MACs hmac-sha1',
      ],
      ['diffie-hellman-group1-sha1', 'ssh-rsa', 'aes256-cbc', 'hmac-sha1'],
    ],
  ])('without a common %s: %j', async (what, extraConfig, legacy) => {
    const sshd = await startSshd({
      users: [{ name: bastion.account.name }],
      hostKeys: ['rsa'],
      extraConfig,
    })
    try {
      await usePort(sshd.port)
      await allow([])
      const refused = await login()
      expect(refused.code).toBe(255)
      expect(refused.stderr).toContain(`it and the bastion have no ${what} in common`)
      expect(refused.stderr).toContain('legacy_algorithms')
      await allow(legacy)
      expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
    } finally {
      await sshd.stop()
      await allow([])
    }
  })

  test('what no policy can allow is refused by name', async () => {
    const { status, body } = await bastion.broker.api('PUT', '/connectionpolicies/SSH', {
      legacy_algorithms: ['none'],
    })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('legacy_algorithms')
  })

  test('a target with several host keys shows the one that is known, also when we would prefer another', async () => {
    const rsa = await generateKey(bastion.home.folder, { type: 'rsa' })
    const port = await freePort()
    const users = [{ name: bastion.account.name }]
    await usePort(port)
    let sshd = await startSshd({ users, hostKeys: [rsa], port })
    try {
      expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n' })
      await sshd.stop()
      sshd = await startSshd({ users, hostKeys: ['ed25519', 'ecdsa', rsa], port })
      expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
      expect(await bastion.broker.must('GET', '/hostkeys')).toMatchObject([{ key_type: 'ssh-rsa' }])
    } finally {
      await sshd.stop()
    }
  })
})
