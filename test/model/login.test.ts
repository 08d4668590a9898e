import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatCanonical,
  formatLogin,
  type Login,
  MAX_LOGIN_BYTES,
  parseCanonical,
  parseLogin,
  parseTargetName,
} from '../../src/model/login.ts'
import { accountNameError, nameKey, objectNameError, userNameError } from '../../src/model/names.ts'

const ops1 = (target: Login['target']): Login => ({ user: 'ops1', ...(target && { target }) })

describe('a login string', () => {
  it.each<[string, Login]>([
    ['ops1', ops1(undefined)],
    ['ops1:root@srv1', ops1({ account: 'root', device: 'srv1' })],
    ['ops1+root@srv1', ops1({ account: 'root', device: 'srv1' })],
    [
      'ops1+root@local@srv1+ssh2',
      ops1({ account: 'root', domain: 'local', device: 'srv1', service: 'ssh2' }),
    ],
    [
      'ops1@corp.com:svc@corp.com@web1:ssh',
      {
        user: 'ops1@corp.com',
        target: { account: 'svc', domain: 'corp.com', device: 'web1', service: 'ssh' },
      },
    ],
    ['ops1:srv1', ops1({ device: 'srv1' })],
    ['ops1:@srv1', ops1({ device: 'srv1' })],
    ['ops1:@srv1:ssh', ops1({ device: 'srv1', service: 'ssh' })],
    ['ops1+root+srv1', ops1({ account: 'root', device: 'srv1' })],
    ['ops1:root:srv1', ops1({ account: 'root', device: 'srv1' })],
    ['ops1+root+srv1+ssh', ops1({ account: 'root', device: 'srv1', service: 'ssh' })],
    ['ops1:root@local:srv1:ssh', ops1({ account: 'root', domain: 'local', device: 'srv1', service: 'ssh' })],
    ['ops1+root@local+srv1+ssh', ops1({ account: 'root', domain: 'local', device: 'srv1', service: 'ssh' })],
    ['ops1:root@srv1:ssh', ops1({ account: 'root', device: 'srv1', service: 'ssh' })],
    ['ops1:svc%40corp.com@srv1', ops1({ account: 'svc@corp.com', device: 'srv1' })],
    ['ops1:a%2540b@srv1', ops1({ account: 'a%40b', device: 'srv1' })],
    ['o%3ax%2B:srv1', { user: 'o:x+', target: { device: 'srv1' } }],
    ['CORP\\ops1:srv1', { user: 'CORP\\ops1', target: { device: 'srv1' } }],
    ['zoe\u0308:srv1', { user: 'zoë', target: { device: 'srv1' } }],
    ['zo%C3%AB:srv1', { user: 'zoë', target: { device: 'srv1' } }],
    ['José Müller', { user: 'José Müller' }],
  ])('%s is read', (text, login) => {
    expect(parseLogin(text)).toEqual(login)
  })

  it.each([
    '',
    ':',
    '+',
    ':srv1',
    'ops1:',
    'ops1::srv1',
    'ops1:srv1:',
    'ops1:a:b:c:d',
    'ops1:@',
    'ops1:@@srv1',
    'ops1:root@@srv1',
    'ops1:@local@srv1',
    'ops1:root@',
    'ops1:root@local@',
    'ops1:a@b@c@d',
    'ops1:root@local@srv1:ssh:x',
    'ops1:@local:srv1:ssh',
    'ops1:root@:srv1:ssh',
    'ops1:root@local:srv1@ssh:x',
    'ops1:root:srv1@x',
    'ops1:ro+ot@srv1',
    'ops1+root@local:srv1:ssh',
    'ops1+root@srv1:ssh',
    'ops1:%',
    'ops1:%4@srv1',
    'ops1:%zz',
    'ops%1',
    'ops1%',
    'ops1%00',
    'ops1:root%0a@srv1',
    'ops1:root%ff@srv1',
    'ops1:root%ed%a0%80@srv1',
    'ops1%C0%80',
    'op\u0000s1',
    'ops1\n',
    'ops1:root@srv1\r',
    'ops1\u001b[2J',
    'ops1\u009b',
    'ops1\u202e',
    'ops1\ufffd',
    'ops1\ud800',
    'ops1%EF%BF%BD',
    'x'.repeat(MAX_LOGIN_BYTES + 1),
    'é'.repeat(MAX_LOGIN_BYTES / 2 + 1),
    'x'.repeat(65_536),
  ])('%j is refused with the syntax', (text) => {
    const answer = parseLogin(text)
    expect(answer).toHaveProperty('malformed')
    expect(JSON.stringify(answer)).toContain('ops1:root@srv1')
  })

  it('is not repeated by the refusal', () => {
    expect(JSON.stringify(parseLogin('hunter2:%'))).not.toContain('hunter2')
  })

  it('may have 256 bytes', () => {
    expect(parseLogin('é'.repeat(MAX_LOGIN_BYTES / 2))).toEqual({ user: 'é'.repeat(MAX_LOGIN_BYTES / 2) })
  })
})

const name = fc
  .oneof(
    fc.string({ unit: fc.constantFrom(...'abA1@%+\\. é~40\u0308'), minLength: 1, maxLength: 12 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  )
  .map((text) => text.normalize('NFC'))
const user = name.filter((text) => userNameError(text) === undefined)
const account = name.filter((text) => accountNameError(text) === undefined)
const object = fc
  .stringMatching(/^[A-Za-z0-9._-]{1,12}$/)
  .filter((text) => objectNameError(text) === undefined)
const login: fc.Arbitrary<Login> = fc
  .record({
    user,
    target: fc.option(
      fc.record({
        owner: fc.option(fc.record({ account, domain: fc.option(object, { nil: undefined }) }), {
          nil: undefined,
        }),
        device: object,
        service: fc.option(object, { nil: undefined }),
      }),
      { nil: undefined },
    ),
  })
  .map(({ user, target }) => {
    if (!target) return { user }
    const { owner, device, service } = target
    return {
      user,
      target: {
        ...(owner && { account: owner.account }),
        ...(owner?.domain !== undefined && { domain: owner.domain }),
        device,
        ...(service !== undefined && { service }),
      },
    }
  })
const separator = fc.constantFrom<':' | '+'>(':', '+')

describe('login strings', () => {
  it('are read as what they were written from', () => {
    fc.assert(
      fc.property(login, separator, (login, separator) => {
        const text = formatLogin(login, separator)
        fc.pre(Buffer.byteLength(text) <= MAX_LOGIN_BYTES)
        expect(parseLogin(text)).toEqual(login)
      }),
    )
  })

  it('never make the parser throw, and what is read is written and read again as the same', () => {
    const noise = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'aB1:+@%4025\\é\n'), maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 300 }),
    )
    fc.assert(
      fc.property(noise, separator, (text, separator) => {
        const read = parseLogin(text)
        if ('malformed' in read) return
        const again = formatLogin(read, separator)
        fc.pre(Buffer.byteLength(again) <= MAX_LOGIN_BYTES)
        expect(parseLogin(again)).toEqual(read)
      }),
      { numRuns: 1000 },
    )
  })

  it('name the person before the first separator and nobody else', () => {
    const noise = fc.string({ unit: fc.constantFrom(...'aB1:+@%4025\\'), maxLength: 20 })
    fc.assert(
      fc.property(noise, (text) => {
        const read = parseLogin(text)
        if ('malformed' in read) return
        const [person = ''] = text.split(/[:+]/)
        expect(read.user).toBe(decodeURIComponent(person).normalize('NFC'))
      }),
      { numRuns: 2000 },
    )
  })

  it('do not mean another person whatever target is written behind the user', () => {
    fc.assert(
      fc.property(user, fc.string({ unit: 'binary', maxLength: 40 }), separator, (user, rest, separator) => {
        const read = parseLogin(formatLogin({ user }) + separator + rest)
        if ('malformed' in read) return
        expect(read.user).toBe(user)
      }),
    )
  })
})

describe('a canonical name', () => {
  it('is read as what it was written from, also behind a user', () => {
    fc.assert(
      fc.property(account, object, object, object, (account, domain, device, service) => {
        const target = { account, domain, device, service }
        const text = formatCanonical(target)
        expect(parseCanonical(text)).toEqual(target)
        expect(parseLogin(`ops1:${text}`)).toEqual({ user: 'ops1', target })
      }),
    )
  })

  it('may leave the "@" of an account as it is', () => {
    expect(parseCanonical('svc@corp.com@ad:web1:ssh')).toEqual({
      account: 'svc@corp.com',
      domain: 'ad',
      device: 'web1',
      service: 'ssh',
    })
  })

  it.each([
    '',
    'root',
    'root@local',
    'root@local:srv1',
    'root:srv1:ssh',
    '@local:srv1:ssh',
    'a@b:c:d:e',
    'a@b::d',
    'a@b:%:d',
    'a@b:c%00:d',
  ])('%j is none', (text) => {
    expect(parseCanonical(text)).toBeUndefined()
  })
})

describe('names', () => {
  it.each(['srv1', 'a.b_c-D', '1', '...'])('%s is a name of a device', (text) => {
    expect(objectNameError(text)).toBeUndefined()
  })

  it.each([
    '',
    'a b',
    'a:b',
    'a@b',
    'é',
    'a/b',
    '..',
    '.',
    'a\n',
    'x'.repeat(129),
    '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    '01arz3ndektsv4rrffq69g5fav',
  ])('%j is no name of a device', (text) => {
    expect(objectNameError(text)).toBeTypeOf('string')
  })

  it.each(['ops1', 'ops1@corp.com', 'José Müller', 'a+b', '名前'])('%s is a name of a user', (text) => {
    expect(userNameError(text)).toBeUndefined()
  })

  it.each([
    '',
    ' a',
    'a:b',
    'a/b',
    'a\\b',
    'a\u0000',
    'a\u202eb',
    'a\u200bb',
    '\ud800',
    'é'.repeat(65),
    '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  ])('%j is no name of a user', (text) => {
    expect(userNameError(text)).toBeTypeOf('string')
  })

  it('are the same without regard to case and composition', () => {
    expect(nameKey('ZOE\u0308')).toBe(nameKey('zoë'))
    expect(nameKey('STRASSE')).toBe(nameKey('straße'))
    expect(nameKey('ΟΔΟΣ')).toBe(nameKey('οδος'))
    expect(nameKey('a')).not.toBe(nameKey('а')) // the second is Cyrillic
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const key = nameKey(text)
        expect(nameKey(key)).toBe(key)
        expect(nameKey(text.normalize('NFD'))).toBe(key)
      }),
    )
  })
})

describe('the name of a target without a stored account', () => {
  it.each([
    [{ account: 'ops1', domain: '', device: 'srv1', service: 'ssh' }, 'ops1@srv1:ssh'],
    [{ account: '', domain: '', device: 'srv1', service: 'ssh' }, '@srv1:ssh'],
    [{ account: 'a@b:c+d%', domain: '', device: 'srv1', service: 'ssh' }, 'a%40b%3Ac%2Bd%25@srv1:ssh'],
  ])('%j is %s, and is read back', (target, name) => {
    expect(formatCanonical(target)).toBe(name)
    expect(parseTargetName(name)).toEqual(target)
    const { account, device, service } = target
    expect(parseLogin(`ops1:${name}`)).toEqual({
      user: 'ops1',
      target: { ...(account !== '' && { account }), device, service },
    })
  })

  it('is told from one with a domain', () => {
    expect(parseTargetName('root@local:srv1:ssh')).toMatchObject({ domain: 'local' })
    for (const text of ['srv1:ssh', 'root@local@srv1:ssh', '@srv1', 'root@srv1', '@@srv1:ssh', '@srv1:'])
      expect(parseTargetName(text)).toBeUndefined()
  })
})
