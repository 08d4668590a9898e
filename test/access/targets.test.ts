import { describe, expect, it } from 'vitest'
import { canonicalName, resolveTarget, targetsOf } from '../../src/access/targets.ts'
import { parseLogin, parseTargetName, type WantedTarget } from '../../src/model/login.ts'
import type { TargetRow } from '../../src/store/store.ts'

function row(canonical: string, more: Partial<TargetRow> = {}): TargetRow {
  const [owner = '', deviceName = '', serviceName = ''] = canonical.split(':')
  const [accountName = '', domainName = ''] = owner.split('@')
  const isLocal = domainName === 'local'
  return {
    kind: 'account',
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
    timeframes: [],
    authorizationSubprotocols: ['SSH_SHELL'],
    isRecorded: true,
    recordingMode: 'standard',
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

  it('is recorded strictly when one that records says so', () => {
    const strict = (...modes: Partial<TargetRow>[]) =>
      targetsOf(
        [first, second].map((one, n) => ({ ...one, ...modes[n] })),
        'SSH',
      )[0]?.isStrict
    expect(strict({ recordingMode: 'strict' }, { isRecorded: true })).toBe(false)
    expect(strict({ recordingMode: 'strict', isRecorded: true }, { isRecorded: true })).toBe(true)
    expect(strict({ isRecorded: true }, { recordingMode: 'strict', isRecorded: true })).toBe(true)
  })
})

it('a canonical name escapes what a login string would split at', () => {
  expect(
    canonicalName({ accountName: 'svc@corp', domainName: 'ad', deviceName: 'web1', serviceName: 'ssh' }),
  ).toBe('svc%40corp@ad:web1:ssh')
})

describe('a target without a stored account', () => {
  const none = { accountId: undefined, domainId: undefined, domainName: '', isLocal: false }
  const login = (device: string, service = 'ssh', more: Partial<TargetRow> = {}) =>
    row(`@:${device}:${service}`, {
      ...none,
      kind: 'interactive',
      accountName: '',
      accountLogin: '',
      authorizationId: 'A9',
      ...more,
    })
  const mapping = (device: string, service = 'ssh') =>
    row(`@:${device}:${service}`, {
      ...none,
      kind: 'mapping',
      accountName: 'ops1',
      accountLogin: 'ops1',
      authorizationSubprotocols: ['SFTP_SESSION'],
    })
  const root = row('root@local:srv1:ssh')

  it.each<[string, TargetRow[], WantedTarget, string | string[]]>([
    ['asked for, as the only one', [login('srv1')], { device: 'srv1' }, '@srv1:ssh'],
    ['asked for, before a stored one', [root, login('srv1')], { device: 'srv1' }, '@srv1:ssh'],
    [
      'another service has a stored one',
      [root, login('srv1', 'ssh2')],
      { device: 'srv1' },
      ['root@local:srv1:ssh', '@srv1:ssh2'],
    ],
    [
      'which the service tells apart',
      [root, login('srv1', 'ssh2')],
      { device: 'srv1', service: 'ssh2' },
      '@srv1:ssh2',
    ],
    ['a login that is no account', [root, login('srv1')], { account: 'adm', device: 'srv1' }, 'adm@srv1:ssh'],
    [
      'a stored account first',
      [root, login('srv1')],
      { account: 'ROOT', device: 'srv1' },
      'root@local:srv1:ssh',
    ],
    [
      'no stored account, by the empty domain',
      [root, login('srv1')],
      { account: 'root', domain: '', device: 'srv1' },
      'root@srv1:ssh',
    ],
    [
      'a domain is of a stored one',
      [login('srv1')],
      { account: 'a', domain: 'x', device: 'srv1' },
      'unknown',
    ],
    ['mapped, as the only one', [mapping('srv1')], { device: 'srv1' }, 'ops1@srv1:ssh'],
    [
      'mapped, by the own name',
      [mapping('srv1'), root],
      { account: 'Ops1', device: 'srv1' },
      'ops1@srv1:ssh',
    ],
    ['mapped, and nobody else', [mapping('srv1')], { account: 'root', device: 'srv1' }, 'unknown'],
    [
      'mapped or stored',
      [mapping('srv1'), root],
      { device: 'srv1' },
      ['ops1@srv1:ssh', 'root@local:srv1:ssh'],
    ],
    [
      'mapped before asked for, by the own name',
      [mapping('srv1'), login('srv1')],
      { account: 'ops1', device: 'srv1' },
      'ops1@srv1:ssh',
    ],
    ['on another device only', [login('srv2')], { account: 'adm', device: 'srv1' }, 'unknown'],
    [
      'chosen in the menu, and gone: no other instead',
      [root, mapping('srv1')],
      { account: '', domain: '', device: 'srv1', service: 'ssh' },
      'unknown',
    ],
  ])('%s', (_, rows, wanted, expected) => {
    expect(resolve(rows, wanted)).toEqual(expected)
  })

  it('keeps the rights of one kind from the other', () => {
    const rows = [mapping('srv1'), login('srv1'), login('srv1', 'ssh', { authorizationId: 'A2' })]
    const rights = (wanted: WantedTarget) => {
      const resolution = resolveTarget(rows, wanted, 'SSH')
      return resolution.result === 'found' ? resolution.target.rights : resolution.result
    }
    expect(rights({ account: 'ops1', device: 'srv1' })).toEqual(['SFTP_SESSION'])
    expect(rights({ account: 'root', device: 'srv1' })).toEqual(['SSH_SHELL'])
    expect(targetsOf(rows, 'SSH')).toHaveLength(2)
  })

  it('has a name that leads back to it', () => {
    const rows = [mapping('srv1'), login('srv1'), mapping('srv2'), root]
    for (const target of targetsOf(rows, 'SSH')) {
      const name = canonicalName(target)
      const login = parseLogin(`ops1:${name}`)
      const typed = 'malformed' in login ? undefined : login.target
      for (const wanted of [typed, parseTargetName(name)]) {
        const found = resolveTarget(rows, wanted!, 'SSH')
        expect(found).toMatchObject({
          result: 'found',
          target: { kind: target.kind, deviceName: target.deviceName },
        })
      }
    }
  })
})

describe('of services of several protocols', () => {
  const of = (protocol: TargetRow['protocol'], service: string) =>
    row(`root@local:srv1:${service}`, { protocol, authorizationSubprotocols: [] })
  const [ssh, telnet, rlogin] = [of('SSH', 'ssh'), of('TELNET', 'telnet'), of('RLOGIN', 'rlogin')]
  const name = (front: TargetRow['protocol'], rows: TargetRow[], service?: string) => {
    const wanted = { account: 'root', device: 'srv1', ...(service !== undefined && { service }) }
    const resolution = resolveTarget(rows, wanted, front)
    return resolution.result === 'found' ? resolution.target.serviceName : resolution.result
  }

  it.each([
    ['SSH', 'ssh'],
    ['TELNET', 'telnet'],
    ['RLOGIN', 'rlogin'],
  ] as const)('the one of the front’s own protocol is meant: %s', (front, service) => {
    expect(name(front, [ssh, telnet, rlogin])).toBe(service)
  })

  it('else the only one, and one that is named in any case', () => {
    expect(name('SSH', [telnet])).toBe('telnet')
    expect(name('SSH', [telnet, rlogin])).toBe('ambiguous')
    expect(name('SSH', [ssh, telnet], 'telnet')).toBe('telnet')
    expect(name('SSH', [ssh, telnet], 'vnc')).toBe('unknown')
  })

  it('an account that is only there by another one is found', () => {
    const admin = row('admin@local:srv1:telnet', { protocol: 'TELNET' })
    expect(resolve([ssh, admin], { account: 'admin', device: 'srv1' })).toBe('admin@local:srv1:telnet')
  })

  it('each has the plain right of its own', () => {
    expect(targetsOf([ssh, telnet, rlogin], 'SSH').map(({ rights }) => rights)).toEqual([
      ['SSH_SHELL'],
      ['TELNET'],
      ['RLOGIN'],
    ])
  })
})
