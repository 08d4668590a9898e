/** Changes at real network devices: a switch on libcli over Telnet and OpenSSH, and FRR. */
import { Buffer } from 'node:buffer'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cisco } from '../../../proxies/rotation/cisco.ts'
import type { ChangeTarget, SecretChange } from '../../../src/contract/change.ts'
import { FRR, NETGEAR_PEERS, type Netgear, type Switch, startFrr, startSwitch } from '../../peers/netgear.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { type Sshd, startSshd } from '../../peers/sshd.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../../peers/users.ts'
import { errorOf, inTime, outcomeOf, ownChange, signInOf, targetAt } from './targets.ts'

const telnet = (port: number, parameters: ChangeTarget['parameters'] = {}): ChangeTarget => ({
  ...targetAt(port, parameters),
  protocol: 'TELNET',
})

/** A change with `by`, which is privileged by its own secret. */
function withEnable(change: SecretChange, enable: string): SecretChange {
  return { ...change, by: { ...change.by, enable } }
}

describeWithPeers('a switch over Telnet', NETGEAR_PEERS, () => {
  let device: Switch
  const verify = (login: string, password: string, enable?: string) =>
    outcomeOf(cisco.verify(telnet(device.port), signInOf(login, password, enable), inTime()))

  beforeAll(async () => {
    device = await startSwitch({ admin: 'Admin-Pass1', alice: 'Alice-Pass1', enable: 'Enable-Pass1' })
  })
  afterAll(() => device?.stop())

  test('a user changes its own password, and it is kept', async () => {
    const next = 'N$%&()*+,./:<=>@[]^_`{}~-9'
    const change = withEnable(ownChange('alice', 'Alice-Pass1', next), 'Enable-Pass1')
    await cisco.change(telnet(device.port), change, inTime())
    expect(await verify('alice', next)).toBe('valid')
    expect(await verify('alice', 'Alice-Pass1')).toBe('invalid')
    expect(device.configuration('startup')['alice']).toBe(next)
  })

  test('an administrator changes a password, without saving it if that is not wanted', async () => {
    const change: SecretChange = {
      account: signInOf('alice', 'no longer true'),
      by: signInOf('admin', 'Admin-Pass1', 'Enable-Pass1'),
      isAdministrator: true,
      next: { type: 'password', password: 'Alice-Pass3' },
    }
    await cisco.change(telnet(device.port, { skip_save: true }), change, inTime())
    expect(await verify('alice', 'Alice-Pass3')).toBe('valid')
    expect(device.configuration('startup')['alice']).not.toBe('Alice-Pass3')
  })

  test('the secret of `enable` is changed and verified', async () => {
    const by = signInOf('admin', 'Admin-Pass1', 'Enable-Pass1')
    const change: SecretChange = {
      account: by,
      by,
      isAdministrator: false,
      next: { type: 'enable', password: 'Enable-Pass2' },
    }
    await cisco.change(telnet(device.port), change, inTime())
    expect(await verify('admin', 'Admin-Pass1', 'Enable-Pass2')).toBe('valid')
    expect(await verify('admin', 'Admin-Pass1', 'Enable-Pass1')).toBe('invalid')
  })

  test('refusals leave all as it was, with the reason', async () => {
    const own = ownChange('admin', 'Admin-Pass1', 'short-1')
    const set = (change: SecretChange) => errorOf(cisco.change(telnet(device.port), change, inTime()))
    const short = await set(withEnable(own, 'Enable-Pass2'))
    expect(short).toMatchObject({
      code: 'refused_password',
      message: expect.stringContaining('Password length must be at least 8'),
    })
    expect((await set(own))?.code).toBe('not_permitted')
    expect((await set(withEnable(own, 'wrong')))?.code).toBe('refused_sign_in')
    expect((await set(withEnable(ownChange('admin', 'wrong', 'Admin-Pass2'), 'Enable-Pass2')))?.code).toBe(
      'refused_sign_in',
    )
    for (const unsafe of ['With space1', 'With?mark1', 'Line\rend-12', 'Bar|pipe-12', 'ünder-1234']) {
      const change = withEnable(ownChange('admin', 'Admin-Pass1', unsafe), 'Enable-Pass2')
      expect((await set(change))?.code).toBe('refused_password')
    }
    const injected = withEnable(
      ownChange('x secret Evil-Pass1\rno', 'Admin-Pass1', 'Admin-Pass2'),
      'Enable-Pass2',
    )
    expect((await set(injected))?.code).toBe('unsupported')
    expect(device.configuration('running')).toMatchObject({ admin: 'Admin-Pass1', enable: 'Enable-Pass2' })
  })
})

const SSH_PEERS = [...NETGEAR_PEERS, 'sshd', 'ssh-keygen'] as const

describeWithPeers('a switch over SSH', canCreateUsers() ? SSH_PEERS : [], () => {
  let device: Switch
  let sshd: Sshd
  let user: SystemUser
  const at = (hostKey = sshd.hostKeys[0]!.publicKey): ChangeTarget => ({
    ...targetAt(sshd.port, {}, { hostKeys: [hostKey.split(' ')[1]!] }),
    protocol: 'SSH',
  })

  beforeAll(async () => {
    if (!canCreateUsers()) return
    user = await createSystemUser()
    device = await startSwitch({ enable: 'Enable-Pass1' })
    sshd = await startSshd({ users: [{ name: user.name }], extraConfig: [`ForceCommand ${device.command}`] })
  })
  afterAll(async () => {
    await sshd?.stop()
    await device?.stop()
    await user?.remove()
  })

  test.runIf(canCreateUsers())('a user changes its own password', async () => {
    const { name, password } = user
    const verify = (secret: string, enable?: string) =>
      outcomeOf(cisco.verify(at(), signInOf(name, secret, enable), inTime()))
    expect(await verify(password, 'wrong')).toBe('invalid')
    await cisco.change(at(), withEnable(ownChange(name, password, 'Gear-Pass-77'), 'Enable-Pass1'), inTime())
    expect(await verify('Gear-Pass-77')).toBe('valid')
    expect(await verify(password)).toBe('invalid')
    const other = `ssh-ed25519 ${Buffer.from('another key').toString('base64')}`
    expect(await outcomeOf(cisco.verify(at(other), signInOf(name, 'Gear-Pass-77'), inTime()))).toBe(
      'untrusted',
    )
  })
})

describeWithPeers('FRR', NETGEAR_PEERS, () => {
  let device: Netgear
  beforeAll(async () => {
    device = await startFrr()
  })
  afterAll(() => device?.stop())

  test('its password and the one of `enable` are changed', async () => {
    const target = telnet(device.port, { password_command: 'password', enable_command: 'enable password' })
    const verify = (password: string, enable?: string) =>
      outcomeOf(cisco.verify(target, signInOf('vty', password, enable), inTime()))
    expect(await verify(FRR.password, FRR.enable)).toBe('valid')
    const change = withEnable(ownChange('vty', FRR.password, 'Vty-Pass2'), FRR.enable)
    await cisco.change(target, change, inTime())
    expect(await verify('Vty-Pass2')).toBe('valid')
    expect(await verify(FRR.password)).toBe('invalid')
    const by = signInOf('vty', 'Vty-Pass2', FRR.enable)
    const next = { type: 'enable', password: 'En-Pass2' } as const
    await cisco.change(target, { account: by, by, isAdministrator: false, next }, inTime())
    expect(await verify('Vty-Pass2', 'En-Pass2')).toBe('valid')
    expect(await verify('Vty-Pass2', FRR.enable)).toBe('invalid')
  })
})
