/** Sign-in by real directories: slapd with ppolicy and memberof, and Samba as Active Directory; and by servers that lie. */
import { createServer, type Server, type Socket } from 'node:net'
import { Client } from 'ldapts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { MAX_ANSWER } from '../../../src/identity/methods/ldap/connection.ts'
import { userFilterFlaw } from '../../../src/identity/methods/ldap/filter.ts'
import { LdapMethod } from '../../../src/identity/methods/ldap/method.ts'
import type { MethodAnswer } from '../../../src/identity/methods/method.ts'
import type { AuthDomainAttributes, ExternalServer, LdapOptions } from '../../../src/model/external-auths.ts'
import { Secret } from '../../../src/model/secret.ts'
import {
  AD_ADMIN,
  type DomainController,
  LDAP_ADMIN,
  REALM,
  type Slapd,
  SUFFIX,
  startDomainController,
  startSlapd,
} from '../../peers/directory.ts'
import { freePort } from '../../peers/process.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'

const PEOPLE = `ou=people,${SUFFIX}`
const GROUPS = `ou=groups,${SUFFIX}`
const FILTERS = [
  '(uid=alice)',
  '(&(objectClass=person)(!(employeeType=guest)))',
  '(|(cn=a*b*c)(cn=*)(cn>=a)(cn<=b)(cn~=c))',
  '(cn=\\28x\\29\\2a)',
  '(cn:caseExactMatch:=Fred)',
  '(ou:dn:2.5.13.5:=x)',
  '(memberOf:1.2.840.113556.1.4.1941:=cn=x,dc=y)',
  '(:2.5.13.5:=x)',
  '(cn=)',
]
const NO_FILTERS = [
  '(&(a=b)',
  '(:=x)',
  '(&)',
  '(a=b))',
  '(a=b)(c=d)',
  '(&T(a=b))',
  '((a=b))',
  '(!(a=b)(c=d))',
  '(a)',
  '(=x)',
  '(a b=c)',
  '(cn=\\zz)',
  '(cn=a\\)',
  '(cn>=a*)',
  '(cn=a(b)',
  '(cn=\0)',
  '(!a=b)',
]
const FAR = AbortSignal.timeout(120_000)

let certificate: CertificateFiles
let stranger: CertificateFiles
const methods: LdapMethod[] = []
const failures: string[] = []

beforeAll(async () => {
  certificate = await certificateFiles()
  stranger = await certificateFiles()
})
afterAll(() => {
  certificate.remove()
  stranger.remove()
})
afterEach(async () => {
  for (const method of methods.splice(0)) await method.close()
  failures.length = 0
})

const GENERIC: LdapOptions = {
  security: 'ldaps',
  bindDn: LDAP_ADMIN.login,
  baseDn: SUFFIX,
  directory: 'generic',
  loginAttribute: 'uid',
  nestedGroups: false,
}

function methodAt(
  servers: ExternalServer[],
  options: Partial<LdapOptions> = {},
  {
    attributes = {},
    bindPassword = LDAP_ADMIN.password,
    timeoutMs = 5000,
  }: {
    attributes?: AuthDomainAttributes
    bindPassword?: string
    timeoutMs?: number
  } = {},
): LdapMethod {
  const method = new LdapMethod({
    auth: {
      id: '0',
      type: 'LDAP',
      authenticationName: 'directory',
      description: '',
      servers,
      timeoutMs,
      secretNames: [],
      secretRevision: 0,
      options: { ...GENERIC, caCertificates: certificate.pem.cert, ...options },
    },
    attributes,
    secrets: { bindPassword: Secret.of(bindPassword) },
    now: Date.now,
    onFailure: (_server, error) => failures.push(error.message),
  })
  methods.push(method)
  return method
}

const attempt = (userName: string) => ({ userName, source: '192.0.2.1', attempt: '1' })

async function prove(
  method: LdapMethod,
  userName: string,
  password: string,
  signal = FAR,
): Promise<MethodAnswer> {
  return await method.prove(attempt(userName), Secret.of(password), signal)
}

/** `accepted`, `challenge`, `unavailable`, or the reason of the refusal. */
async function outcome(method: LdapMethod, userName: string, password: string): Promise<string> {
  const answer = await prove(method, userName, password)
  if (answer.result === 'challenge') answer.state.close()
  return answer.result === 'rejected' ? answer.reason : answer.result
}

async function groupsOf(method: LdapMethod, userName: string, password: string): Promise<string[]> {
  const answer = await prove(method, userName, password)
  if (answer.result !== 'accepted') throw new Error(JSON.stringify(answer))
  return answer.person.groups.toSorted()
}

describeWithPeers('slapd', ['slapd'], () => {
  let server: Slapd
  const at = (options: Partial<LdapOptions> = {}, more: Parameters<typeof methodAt>[2] = {}) =>
    methodAt(
      [{ host: '127.0.0.1', port: (options.security ?? 'ldaps') === 'ldaps' ? server.ldaps : server.ldap }],
      options,
      more,
    )
  const group = (name: string) => `cn=${name},${GROUPS}`

  beforeAll(async () => {
    const names = ['alice', 'bob', 'carol', 'dave', 'erin', 'a*b', '(x)', 'zoë']
    server = await startSlapd(Object.fromEntries(names.map((name) => [name, `Pass-of-${name}`])), certificate)
    const client = new Client({ url: `ldap://127.0.0.1:${server.ldap}`, strictDN: false })
    await client.bind(LDAP_ADMIN.login, LDAP_ADMIN.password)
    await client.add(GROUPS, { objectClass: 'organizationalUnit', ou: 'groups' })
    const add = (cn: string, member: string[]) =>
      client.add(`cn=${cn.replaceAll(',', '\\,')},${GROUPS}`, { objectClass: 'groupOfNames', cn, member })
    const person = (uid: string) => `uid=${uid},${PEOPLE}`
    await add('admins', [person('alice')])
    await add('ops, night', [person('alice')])
    await add('outer', [group('admins')])
    // A circle.
    await add('ring1', [group('outer'), group('ring2')])
    await add('ring2', [group('ring1')])
    await client.add(`ou=other,${SUFFIX}`, { objectClass: 'organizationalUnit', ou: 'other' })
    for (const ou of ['people', 'other']) {
      const dn = `cn=double,ou=${ou},${SUFFIX}`
      const attributes = { objectClass: 'inetOrgPerson', cn: 'double', sn: 'double', uid: 'double' }
      await client.add(dn, { ...attributes, userPassword: 'Pass-of-double' })
    }
    await client.unbind()
  })
  afterAll(() => server?.stop())

  test.each(['ldaps', 'starttls', 'none'] as const)('proves passwords: %s', async (security) => {
    const method = at({ security })
    expect(await outcome(method, 'alice', 'Pass-of-alice')).toBe('accepted')
    expect(await outcome(method, 'alice', 'Pass-of-bob')).toBe('wrong_password')
    expect(await outcome(method, 'nobody', 'Pass-of-bob')).toBe('unknown_user')
    expect(await outcome(method, 'double', 'Pass-of-double')).toBe('unknown_user')
    expect(await outcome(method, 'alice', 'Pass-of-alice')).toBe('accepted')
    expect(failures).toEqual([])
  })

  test('an empty password is refused before it is sent', async () => {
    const before = server.log()
    expect(await outcome(at(), 'alice', '')).toBe('wrong_password')
    expect(server.log()).toBe(before)
  })

  test.each(['*', 'alice*', 'alice)(uid=*', '*)(|(uid=*', '\\61lice', 'alice\0'])(
    'a name is a value, not a filter: %j',
    async (name) => {
      expect(await outcome(at(), name, 'Pass-of-alice')).toBe('unknown_user')
    },
  )

  test.each(['a*b', '(x)', 'zoë'])('names with characters of filters are found: %s', async (name) => {
    expect(await outcome(at(), name, `Pass-of-${name}`)).toBe('accepted')
  })

  test('groups are those of memberOf, of groups in groups where wanted, and of a base', async () => {
    const direct = [group('admins'), group('ops\\2C night')]
    const all = [...direct, group('outer'), group('ring1'), group('ring2')].toSorted()
    expect(await groupsOf(at(), 'alice', 'Pass-of-alice')).toEqual(direct)
    expect(await groupsOf(at({ nestedGroups: true }), 'alice', 'Pass-of-alice')).toEqual(all)
    expect(await groupsOf(at({ groupBaseDn: GROUPS }), 'alice', 'Pass-of-alice')).toEqual(direct)
    expect(await groupsOf(at({ groupBaseDn: GROUPS, nestedGroups: true }), 'alice', 'Pass-of-alice')).toEqual(
      all,
    )
    expect(await groupsOf(at({ groupBaseDn: PEOPLE }), 'alice', 'Pass-of-alice')).toEqual([])
    expect(await groupsOf(at(), 'bob', 'Pass-of-bob')).toEqual([])
  })

  test('what is taken for a filter is one for slapd, too', async () => {
    for (const text of [...FILTERS, ...NO_FILTERS]) {
      const flaw = userFilterFlaw(text)
      expect([text, flaw === undefined]).toEqual([text, FILTERS.includes(text)])
      // slapd reads some that are none: `(&)` is always true for it.
      if (!flaw) expect([text, await server.readsFilter(text)]).toEqual([text, true])
    }
    expect(await server.readsFilter('(&(a=b)')).toBe(false)
  })

  test('a filter narrows the persons down', async () => {
    const method = at({ userFilter: `(memberOf=${group('admins')})` })
    expect(await outcome(method, 'alice', 'Pass-of-alice')).toBe('accepted')
    expect(await outcome(method, 'bob', 'Pass-of-bob')).toBe('unknown_user')
  })

  test('three wrong passwords lock the account, which is told apart', async () => {
    const method = at()
    for (let n = 0; n < 3; n++) expect(await outcome(method, 'bob', 'wrong')).toBe('wrong_password')
    expect(await outcome(method, 'bob', 'Pass-of-bob')).toBe('account_locked')
  })

  test('a password that was reset is changed at the sign-in', async () => {
    const client = new Client({ url: `ldap://127.0.0.1:${server.ldap}`, strictDN: false })
    await client.bind(LDAP_ADMIN.login, LDAP_ADMIN.password)
    const { Change, Attribute } = await import('ldapts')
    await client.modify(
      `uid=carol,${PEOPLE}`,
      new Change({
        operation: 'replace',
        modification: new Attribute({ type: 'pwdReset', values: ['TRUE'] }),
      }),
    )
    await client.unbind()
    const method = at()
    const first = await prove(method, 'carol', 'Pass-of-carol')
    if (first.result !== 'challenge') throw new Error(first.result)
    expect(first.prompts.map(({ echo }) => echo)).toEqual([false, false])
    const say = (state: typeof first.state, next: string, again: string) =>
      method.answer(attempt('carol'), state, [Secret.of(next), Secret.of(again)], FAR)
    const second = await say(first.state, 'A-new-Pass', 'Another-Pass')
    if (second.result !== 'challenge') throw new Error(second.result)
    expect(second.message).toBe('Not changed: the two are not the same.')
    const third = await say(second.state, 'short', 'short')
    if (third.result !== 'challenge') throw new Error(third.result)
    expect(third.message).toContain('the directory refuses it')
    expect(await say(third.state, 'A-new-Pass', 'A-new-Pass')).toMatchObject({
      result: 'accepted',
      person: { userName: 'carol' },
    })
    expect(await outcome(method, 'carol', 'A-new-Pass')).toBe('accepted')
    expect(await outcome(method, 'carol', 'Pass-of-carol')).toBe('wrong_password')
  })

  test('a person is looked up without a password', async () => {
    const method = at({}, { attributes: { displayName: 'cn' } })
    expect(await method.look('alice', FAR)).toMatchObject({
      result: 'present',
      person: {
        userName: 'alice',
        displayName: 'alice',
        stableId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
    })
    expect(await method.look('nobody', FAR)).toEqual({ result: 'absent', reason: 'unknown_user' })
  })

  test('a certificate of a stranger, or for another name, is refused', async () => {
    const strange = at({ caCertificates: stranger.pem.cert })
    expect(await prove(strange, 'alice', 'Pass-of-alice')).toMatchObject({
      result: 'unavailable',
      reason: expect.stringContaining('is not trusted'),
    })
    expect(await outcome(at({ serverName: 'other.test' }), 'alice', 'Pass-of-alice')).toBe('unavailable')
    expect(await outcome(at({ serverName: 'localhost' }), 'alice', 'Pass-of-alice')).toBe('accepted')
  })

  test('a wrong account of the service is no wrong password of the user', async () => {
    expect(await prove(at({}, { bindPassword: 'wrong' }), 'alice', 'Pass-of-alice')).toMatchObject({
      result: 'unavailable',
      reason: expect.stringContaining("refuses the service's account"),
    })
  })

  test('the next server is asked when one is down', async () => {
    const servers = [
      { host: '127.0.0.1', port: await freePort() },
      { host: '127.0.0.1', port: server.ldaps },
    ]
    const method = methodAt(servers)
    expect(await outcome(method, 'alice', 'Pass-of-alice')).toBe('accepted')
    expect(failures).toEqual([expect.stringContaining('ECONNREFUSED')])
    expect(await outcome(method, 'alice', 'Pass-of-alice')).toBe('accepted')
    expect(failures).toHaveLength(1)
  })

  test('a hundred sign-ins at once share a few connections', async () => {
    const method = at()
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        outcome(method, n % 2 ? 'erin' : 'dave', n % 2 ? 'Pass-of-erin' : 'Pass-of-dave'),
      ),
    )
    expect(new Set(answers)).toEqual(new Set(['accepted']))
  })

  test('is tried step by step', async () => {
    const steps = async (method: LdapMethod, userName?: string, password?: string) => {
      const request = { ...(userName && { userName }), ...(password && { password: Secret.of(password) }) }
      return (await method.test(request, FAR)).map(({ step, ok }) => (ok ? step : `not ${step}`))
    }
    expect(await steps(at(), 'alice', 'Pass-of-alice')).toEqual([
      'reached',
      'tls',
      'bound',
      'user_found',
      'groups',
      'signed_in',
    ])
    expect(await steps(at(), 'alice', 'wrong')).toEqual([
      'reached',
      'tls',
      'bound',
      'user_found',
      'groups',
      'not signed_in',
    ])
    expect(await steps(at(), 'nobody')).toEqual(['reached', 'tls', 'bound', 'not user_found'])
    expect(await steps(at({}, { bindPassword: 'wrong' }))).toEqual(['reached', 'tls', 'not bound'])
    expect(await steps(at({ caCertificates: stranger.pem.cert }))).toEqual(['not reached'])
  })
})

describeWithPeers('Active Directory', ['samba', 'samba-tool'], () => {
  let controller: DomainController
  const base = `DC=${REALM.replaceAll('.', ',DC=')}`
  const at = (options: Partial<LdapOptions> = {}) =>
    methodAt(
      [{ host: controller.host, port: controller.port }],
      {
        directory: 'active_directory',
        loginAttribute: 'sAMAccountName',
        baseDn: base,
        bindDn: `${AD_ADMIN.login}@${REALM}`,
        serverName: 'localhost',
        ...options,
      },
      { bindPassword: AD_ADMIN.password },
    )

  beforeAll(async () => {
    controller = await startDomainController(certificate)
    const { tool } = controller
    await tool('domain', 'passwordsettings', 'set', '--min-pwd-age=0', '--account-lockout-threshold=3')
    for (const name of ['ann', 'ben', 'off', 'new']) await tool('user', 'create', name, `Pass-of-1-${name}`)
    await tool('user', 'disable', 'off')
    await tool('user', 'setpassword', 'new', '--newpassword=Pass-of-1-new', '--must-change-at-next-login')
    for (const name of ['inner', 'outer']) await tool('group', 'add', name)
    await tool('group', 'addmembers', 'inner', 'ann')
    await tool('group', 'addmembers', 'outer', 'inner')
  })
  afterAll(() => controller?.stop())

  test('tells locked, disabled and wrong apart', async () => {
    const method = at()
    expect(await outcome(method, 'ann', 'Pass-of-1-ann')).toBe('accepted')
    expect(await outcome(method, 'ANN', 'Pass-of-1-ann')).toBe('accepted')
    expect(await outcome(method, 'off', 'Pass-of-1-off')).toBe('account_disabled')
    for (let n = 0; n < 3; n++) expect(await outcome(method, 'ben', 'wrong')).toBe('wrong_password')
    expect(await outcome(method, 'ben', 'Pass-of-1-ben')).toBe('account_locked')
    expect(await method.look('off', FAR)).toEqual({ result: 'absent', reason: 'account_disabled' })
  })

  test('signs in by the name of the principal', async () => {
    const method = at({ loginAttribute: 'userPrincipalName' })
    expect(await outcome(method, `ann@${REALM}`, 'Pass-of-1-ann')).toBe('accepted')
  })

  test('finds groups in groups by its own rule', async () => {
    const names = async (nestedGroups: boolean) => {
      const groups = await groupsOf(at({ nestedGroups }), 'ann', 'Pass-of-1-ann')
      return groups.map((dn) => dn.split(',')[0])
    }
    // The primary group, Domain Users, is in no memberOf; it is in Users.
    expect(await names(false)).toEqual(['CN=Domain Users', 'CN=inner'])
    expect(await names(true)).toEqual(['CN=Domain Users', 'CN=Users', 'CN=inner', 'CN=outer'])
  })

  test('a password that has to be changed is changed', async () => {
    const method = at()
    const first = await prove(method, 'new', 'Pass-of-1-new')
    if (first.result !== 'challenge') throw new Error(JSON.stringify(first))
    const next = 'Pass-of-2-new'
    const second = await method.answer(attempt('new'), first.state, [Secret.of(next), Secret.of(next)], FAR)
    expect(second).toMatchObject({ result: 'accepted', person: { userName: 'new' } })
    expect(await outcome(method, 'new', next)).toBe('accepted')
  })
})

describe('a server that lies', () => {
  let server: Server | undefined
  const sockets = new Set<Socket>()
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    server?.close()
  })

  async function lying(behave: (socket: Socket) => void, timeoutMs = 300): Promise<LdapMethod> {
    const port = await freePort()
    await new Promise<void>((resolve) => {
      server = createServer((socket) => {
        sockets.add(socket)
        socket.on('error', () => undefined)
        behave(socket)
      }).listen(port, '127.0.0.1', resolve)
    })
    return methodAt([{ host: '127.0.0.1', port }], { security: 'none' }, { timeoutMs })
  }
  /** A SearchResultEntry of message 3 with no attributes, and a BindResponse of success to message 2. */
  const ENTRY = Buffer.from('3012020103640d0409636e3d782c636e3d783000', 'hex')
  const BIND_OK = Buffer.from('300c02010261070a010004000400', 'hex')

  test.each<[string, (socket: Socket) => void, string]>([
    ['says nothing', () => undefined, 'did not answer'],
    ['closes', (socket) => socket.destroy(), 'closed'],
    ['speaks another protocol', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), '127.0.0.1'],
    [
      'promises two gigabytes',
      (socket) => socket.write(Buffer.from('30847fffffff020101', 'hex')),
      '127.0.0.1',
    ],
    [
      'drips',
      (socket) => {
        const timer = setInterval(() => socket.write(Buffer.from([0x30])), 20)
        socket.once('close', () => clearInterval(timer))
      },
      '127.0.0.1',
    ],
    [
      'never stops to send entries',
      (socket) => {
        socket.once('data', () => {
          socket.write(BIND_OK)
          const chunk = Buffer.concat(Array.from({ length: 3000 }, () => ENTRY))
          const more = () => {
            while (!socket.destroyed && socket.write(chunk));
          }
          socket.on('drain', more)
          socket.once('data', more)
        })
      },
      String(MAX_ANSWER),
    ],
  ])('that %s is unavailable, in time', async (_what, behave, words) => {
    // A flood has time to reach its limit.
    const method = await lying(behave, words === String(MAX_ANSWER) ? 20_000 : 300)
    expect(await prove(method, 'alice', 'x')).toEqual({
      result: 'unavailable',
      reason: expect.stringContaining(words),
    })
  })

  test('a server that hangs is asked by one sign-in at a time', async () => {
    let connections = 0
    const method = await lying(() => {
      connections += 1
    })
    expect(await outcome(method, 'alice', 'x')).toBe('unavailable')
    const before = connections
    const answers = await Promise.all(Array.from({ length: 20 }, () => outcome(method, 'alice', 'x')))
    expect(new Set(answers)).toEqual(new Set(['unavailable']))
    expect(connections).toBe(before + 1)
  })

  test('a sign-in that is given up ends at once', async () => {
    const method = await lying(() => undefined)
    const signal = AbortSignal.timeout(30)
    expect((await prove(method, 'alice', 'x', signal)).result).toBe('unavailable')
  })
})
