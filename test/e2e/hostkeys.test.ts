/** Host keys of targets, pinned and changed, as the user and the administrator see them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { ssh } from '../peers/openssh.ts'
import type { RunResult } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { provision } from '../peers/provision.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { type Bastion, startBastion } from './bastion.ts'

interface HostKeyView {
  id: string
  device: string
  service: string
  fingerprint: string
  key_type: string
  state: 'accepted' | 'offered'
}

describeWithPeers('the host key of a target', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  /** The target is restarted on the port of the first, with different keys. */
  let sshd: Sshd
  let first: SshKey
  let second: SshKey
  let third: SshKey

  beforeAll(async () => {
    bastion = await startBastion({ credential: 'password' })
    first = bastion.sshd.hostKeys[0]!
    second = await generateKey(bastion.home.folder, { type: 'ed25519' })
    third = await generateKey(bastion.home.folder, { type: 'ecdsa' })
    sshd = bastion.sshd
  })
  afterAll(async () => {
    await sshd.stop()
    await bastion.stop()
  })

  const login = (): Promise<RunResult> => ssh(bastion.home, bastion.login(), ['echo reached'])
  const known = () => bastion.broker.must<HostKeyView[]>('GET', '/hostkeys')
  const restart = async (hostKey: SshKey): Promise<void> => {
    const { port } = sshd
    await sshd.stop()
    sshd = await startSshd({ users: [{ name: bastion.account.name }], hostKeys: [hostKey], port })
  }

  test('is pinned when it is first seen, and the event says so', async () => {
    expect(await known()).toEqual([])
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
    expect(await known()).toMatchObject([
      {
        device: 'srv1',
        service: 'ssh',
        key_type: 'ssh-ed25519',
        fingerprint: first.fingerprint,
        state: 'accepted',
      },
    ])
    const [event] = await bastion.events('hostkey.new', 1)
    expect(event).toMatchObject({ device: 'srv1', digest: first.fingerprint, result: 'pinned', user: 'ops1' })
  })

  test('the same key again is no event', async () => {
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n' })
    await bastion.closedSessions(2)
    expect(await bastion.events('hostkey.new')).toHaveLength(1)
    expect(await bastion.events('hostkey.changed')).toHaveLength(0)
  })

  test('another key ends the connection before the credential is sent, with an alert', async () => {
    await restart(second)
    const { code, stdout, stderr } = await login()
    expect({ code, stdout }).toEqual({ code: 255, stdout: '' })
    expect(stderr).toMatch(/^sallyport: .*host key of srv1 has changed/)
    expect(stderr).toContain(second.fingerprint)
    expect(sshd.log()).not.toMatch(/Accepted|Failed password/)

    const [event] = await bastion.events('hostkey.changed', 1)
    const sessions = await bastion.closedSessions(3)
    expect(event).toMatchObject({
      severity: 'alert',
      device: 'srv1',
      digest: second.fingerprint,
      session: sessions.at(-1)?.id,
    })
    expect(sessions.at(-1)).toMatchObject({ result: 'failure' })
    expect(sessions.at(-1)?.reason).toContain('host key of srv1 has changed')
    expect(await known()).toMatchObject([{ fingerprint: first.fingerprint, state: 'accepted' }, {}])
    expect((await known())[1]).toMatchObject({ fingerprint: second.fingerprint, state: 'offered' })
  })

  test('trying again does not help', async () => {
    expect(await login()).toMatchObject({ code: 255, stdout: '' })
    expect(await known()).toHaveLength(2)
    expect(await bastion.events('hostkey.changed', 2)).toHaveLength(2)
  })

  test('once the old one is forgotten the new one is seen for the first time', async () => {
    for (const key of await known()) {
      const answer = await bastion.broker.api('DELETE', `/hostkeys/${key.id}`)
      expect(answer.status).toBe(204)
    }
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
    expect(await known()).toMatchObject([{ fingerprint: second.fingerprint, state: 'accepted' }])
  })

  test('the key of another device is not this one’s, nor is one that a target only talks of (attack 50)', async () => {
    const neighbour = await startSshd({ users: [{ name: bastion.account.name }], hostKeys: [first, third] })
    const { login: toNeighbour, password } = await provision(bastion.broker, {
      user: 'ops2',
      device: 'srv2',
      port: neighbour.port,
      account: bastion.account.name,
      credentials: [{ type: 'password', password: bastion.account.password }],
      subprotocols: ['SSH_REMOTE_COMMAND'],
    })
    const there = { port: bastion.broker.ports.ssh, user: toNeighbour, password }
    expect((await ssh(bastion.home, there, ['exit 7'])).code).toBe(7)
    // sshd announces all of its keys (hostkeys-00): the proven one is stored for its device
    const pinned = async (device: string) => (await known()).filter((key) => key.device === device)
    expect(await pinned('srv2')).toMatchObject([{ fingerprint: first.fingerprint, state: 'accepted' }])
    expect(await pinned('srv1')).toMatchObject([{ fingerprint: second.fingerprint, state: 'accepted' }])
    await restart(first)
    const { code, stderr } = await login()
    expect(code).toBe(255)
    expect(stderr).toContain('host key of srv1 has changed')
    expect((await pinned('srv1')).filter(({ state }) => state === 'accepted')).toMatchObject([
      { fingerprint: second.fingerprint },
    ])
    await neighbour.stop()
    for (const { id } of await pinned('srv2')) await bastion.broker.must('DELETE', `/hostkeys/${id}`)
  })

  test('with the policy pinned an unknown key is refused until an administrator accepts it', async () => {
    await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { host_key_policy: 'pinned' })
    for (const key of await known()) await bastion.broker.api('DELETE', `/hostkeys/${key.id}`)
    await restart(third)

    const { code, stdout, stderr } = await login()
    expect({ code, stdout }).toEqual({ code: 255, stdout: '' })
    expect(stderr).toMatch(/^sallyport: .*host key of srv1 .*not accepted yet/)
    const refused = (await bastion.events('hostkey.new', 3)).at(-1)
    expect(refused).toMatchObject({ result: 'refused', digest: third.fingerprint, level: 'warn' })

    const [offered, ...others] = await known()
    expect(others).toEqual([])
    expect(offered).toMatchObject({ state: 'offered', fingerprint: third.fingerprint })
    await bastion.broker.must('PUT', `/hostkeys/${offered?.id}`, { state: 'accepted' })
    expect(await login()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
  })
})
