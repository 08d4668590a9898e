import { describe, expect, it } from 'vitest'
import { canonicalName, resolveTarget, targetsOf } from '../../src/access/targets.ts'
import type { WantedTarget } from '../../src/model/login.ts'
import type { TargetRow } from '../../src/store/store.ts'

function row(canonical: string, more: Partial<TargetRow> = {}): TargetRow {
  const [owner = '', deviceName = '', serviceName = ''] = canonical.split(':')
  const [accountName = '', domainName = ''] = owner.split('@')
  const isLocal = domainName === 'local'
  return {
    accountId: isLocal ? `${owner}@${deviceName}` : owner,
    accountName,
    accountLogin: accountName,
    domainId: domainName,
    domainName,
    isLocal,
    deviceId: deviceName,
    deviceName,
    deviceDescription: '',
    host: '192.0.2.1',
    serviceId: `${deviceName}:${serviceName}`,
    serviceName,
    protocol: 'SSH',
    port: 22,
    serviceSubprotocols: [],
    connectionPolicyId: undefined,
    hostKeyPolicy: 'first_sight',
    authorizationId: 'A1',
    authorizationName: 'ops:servers',
    authorizationSubprotocols: ['SSH_SHELL'],
    isRecorded: true,
    ...more,
  }
}

function resolve(rows: TargetRow[], wanted: WantedTarget): string | string[] {
  const resolution = resolveTarget(rows, wanted, 'SSH')
  if (resolution.result === 'found') return canonicalName(resolution.target)
  return resolution.result === 'ambiguous' ? resolution.candidates : 'unknown'
}

describe('a target that is wanted', () => {
  const local = row('root@local:srv1:ssh')
  const global = row('root@corp:srv1:ssh')
  const other = row('svc@corp:srv1:ssh')
  const elsewhere = row('root@local:srv2:ssh')

  it.each<[string, TargetRow[], WantedTarget, string | string[]]>([
    [
      'all of its name',
      [local, global, other],
      { account: 'root', domain: 'corp', device: 'srv1', service: 'ssh' },
      'root@corp:srv1:ssh',
    ],
    [
      'case is no matter',
      [local, other],
      { account: 'ROOT', domain: 'Local', device: 'SRV1', service: 'Ssh' },
      'root@local:srv1:ssh',
    ],
    ['no account: the only one', [local, elsewhere], { device: 'srv1' }, 'root@local:srv1:ssh'],
    [
      'no account: not the own one first',
      [local, other],
      { device: 'srv1' },
      ['root@local:srv1:ssh', 'svc@corp:srv1:ssh'],
    ],
    [
      'no domain: the own one first',
      [global, local],
      { account: 'root', device: 'srv1' },
      'root@local:srv1:ssh',
    ],
    ['no domain: the only one', [global, other], { account: 'root', device: 'srv1' }, 'root@corp:srv1:ssh'],
    [
      'no domain: the candidates',
      [global, row('root@lab:srv1:ssh')],
      { account: 'root', device: 'srv1' },
      ['root@corp:srv1:ssh', 'root@lab:srv1:ssh'],
    ],
    ['no service: the only one', [local], { account: 'root', device: 'srv1' }, 'root@local:srv1:ssh'],
    [
      'no service: the candidates',
      [local, row('root@local:srv1:ssh2')],
      { account: 'root', device: 'srv1' },
      ['root@local:srv1:ssh', 'root@local:srv1:ssh2'],
    ],
    [
      'a service narrows the accounts',
      [local, row('svc@corp:srv1:ssh2')],
      { device: 'srv1', service: 'ssh2' },
      'svc@corp:srv1:ssh2',
    ],
    ['a device that is not there', [local], { device: 'srv3' }, 'unknown'],
    ['an account that is not there', [local], { account: 'admin', device: 'srv1' }, 'unknown'],
    ['nothing at all', [], { device: 'srv1' }, 'unknown'],
  ])('%s', (_, rows, wanted, expected) => {
    expect(resolve(rows, wanted)).toEqual(expected)
  })

  it('gets one answer when it does not exist and when it is not allowed', () => {
    const wanted = { account: 'root', device: 'srv9' }
    expect(resolveTarget([], wanted, 'SSH')).toEqual(resolveTarget([local], wanted, 'SSH'))
  })

  it('is refused with ten candidates at most', () => {
    const rows = Array.from({ length: 12 }, (_, i) => row(`u${i}@corp:srv1:ssh`))
    const resolution = resolveTarget(rows, { device: 'srv1' }, 'SSH')
    expect(resolution).toMatchObject({
      result: 'ambiguous',
      message: expect.stringMatching(/u9@corp:srv1:ssh and 2 more$/),
    })
  })
})

describe('a target over several authorizations', () => {
  const first = row('root@local:srv1:ssh', { authorizationSubprotocols: ['SSH_SHELL'], isRecorded: false })
  const second = row('root@local:srv1:ssh', {
    authorizationId: 'A2',
    authorizationName: 'ops:files',
    authorizationSubprotocols: ['SFTP_SESSION'],
    isRecorded: false,
  })

  it('grants the union of their rights, and names them', () => {
    expect(targetsOf([first, second], 'SSH')).toMatchObject([
      {
        rights: ['SSH_SHELL', 'SFTP_SESSION'],
        authorizationIds: ['A1', 'A2'],
        authorizationNames: ['ops:servers', 'ops:files'],
      },
    ])
  })

  it('grants what the service lists at most', () => {
    const cut = [first, second].map((r) => ({ ...r, serviceSubprotocols: ['SFTP_SESSION' as const] }))
    expect(targetsOf(cut, 'SSH')).toMatchObject([{ rights: ['SFTP_SESSION'] }])
  })

  it('grants the plain session when an authorization names no right', () => {
    expect(targetsOf([{ ...first, authorizationSubprotocols: [] }], 'SSH')).toMatchObject([
      { rights: ['SSH_SHELL'] },
    ])
  })

  it('is recorded unless every one of them says not', () => {
    expect(targetsOf([first, second], 'SSH')[0]?.isRecorded).toBe(false)
    expect(targetsOf([first, { ...second, isRecorded: true }], 'SSH')[0]?.isRecorded).toBe(true)
  })
})

it('a canonical name escapes what a login string would split at', () => {
  expect(
    canonicalName({ accountName: 'svc@corp', domainName: 'ad', deviceName: 'web1', serviceName: 'ssh' }),
  ).toBe('svc%40corp@ad:web1:ssh')
})
