/** Sign-in by directories: answers that real ones give seldom. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LdapMethod } from '../../../src/identity/methods/ldap/method.ts'
import type { MethodAnswer } from '../../../src/identity/methods/method.ts'
import type { LdapOptions } from '../../../src/model/external-auths.ts'
import { Secret } from '../../../src/model/secret.ts'
import { type FakeDirectory, fakeDirectory, type Reply, type Request } from '../../peers/fake-directory.ts'

const BASE = 'dc=lab,dc=test'
const SERVICE = `cn=service,${BASE}`
const ALICE = `uid=alice,${BASE}`
const FAR = AbortSignal.timeout(120_000)

const servers: FakeDirectory[] = []
const methods: LdapMethod[] = []
const failures: string[] = []
const now = 1_000_000

beforeEach(() => {
  failures.length = 0
})
afterEach(async () => {
  for (const method of methods.splice(0)) await method.close()
  for (const server of servers.splice(0)) await server.stop()
})

async function directory(answer: (request: Request, connection: number) => Reply | undefined) {
  const server = await fakeDirectory(answer)
  servers.push(server)
  return server
}

function methodAt(
  at: readonly FakeDirectory[],
  options: Partial<LdapOptions> = {},
  timeoutMs = 5000,
): LdapMethod {
  const method = new LdapMethod({
    auth: {
      id: '0',
      type: 'LDAP',
      authenticationName: 'directory',
      description: '',
      servers: at.map(({ port }) => ({ host: '127.0.0.1', port })),
      timeoutMs,
      secretNames: [],
      secretRevision: 0,
      options: {
        security: 'none',
        bindDn: SERVICE,
        baseDn: BASE,
        directory: 'generic',
        loginAttribute: 'uid',
        nestedGroups: false,
        ...options,
      },
    },
    attributes: {},
    secrets: { bindPassword: Secret.of('service') },
    now: () => now,
    onFailure: (_server, error) => failures.push(error.message),
  })
  methods.push(method)
  return method
}

const attempt = { userName: 'alice', source: '192.0.2.1', attempt: '1' }
const prove = (method: LdapMethod): Promise<MethodAnswer> => method.prove(attempt, Secret.of('right'), FAR)

/** Finds alice, and accepts all binds, unless `changed` says otherwise. */
function usual(changed: (request: Request) => Reply | undefined = () => undefined) {
  return (request: Request): Reply => {
    const reply = changed(request)
    if (reply) return reply
    if (request.op !== 'search') return {}
    return { entries: [{ dn: ALICE, attributes: { uid: ['alice'] } }] }
  }
}
const onBindOf = (dn: string, reply: Reply) => (request: Request) =>
  request.op === 'bind' && request.dn === dn ? reply : undefined

describe('a directory', () => {
  test.each([
    ['busy', ALICE, 51],
    ['unavailable', ALICE, 52],
    ['referring to another one', ALICE, 10],
    ['busy for its service account', SERVICE, 51],
  ])('that is %s judges nothing, and stays in use for others', async (_what, dn, code) => {
    let isBusy = true
    const first = await directory(
      usual((request) => (isBusy ? onBindOf(dn, { code, words: 'later' })(request) : undefined)),
    )
    const method = methodAt([first, await directory(usual(onBindOf(ALICE, { code: 49 })))])
    expect(await prove(method)).toMatchObject({ result: 'rejected' })
    expect(failures).toEqual([expect.stringContaining('later')])
    isBusy = false
    expect(await prove(method)).toMatchObject({ result: 'accepted' })
  })

  test('that may send one entry only hides no second one', async () => {
    const method = methodAt([
      await directory((request) => ({ ...usual()(request), ...(request.op === 'search' && { code: 4 }) })),
    ])
    expect(await prove(method)).toEqual({ result: 'rejected', reason: 'unknown_user' })
  })

  test('is asked again on a new connection when an idle one was dropped, and no password is sent twice', async () => {
    let dropped = 0
    const server = await directory((request, connection) =>
      connection <= dropped ? undefined : usual()(request),
    )
    const method = methodAt([server], {}, 300)
    expect(await prove(method)).toMatchObject({ result: 'accepted' })
    dropped = server.connections()
    expect(await method.look('alice', FAR)).toMatchObject({ result: 'present' })
    expect(failures).toEqual([])
    const before = server.requests.length
    expect(await prove(method)).toMatchObject({ result: 'unavailable' })
    const binds = server.requests
      .slice(before)
      .filter((request) => request.op === 'bind' && request.dn === ALICE)
    expect(binds).toHaveLength(1)
  })

  test('has no connection left that is a user', async () => {
    const server = await directory(usual())
    expect(await prove(methodAt([server]))).toMatchObject({ result: 'accepted' })
    const binds = server.requests.flatMap((request) => (request.op === 'bind' ? [request.dn] : []))
    expect(binds).toEqual([SERVICE, ALICE, ''])
  })

  test('that answers each question late is left alone in the end', async () => {
    let delayed = 0
    const slow = await directory(() => {
      delayed += 1
      return undefined
    })
    const method = methodAt([slow, await directory(usual())], {}, 100)
    expect(await prove(method)).toMatchObject({ result: 'accepted' })
    expect(await prove(method)).toMatchObject({ result: 'accepted' })
    expect(delayed).toBe(1)
  })
})

describe('Active Directory', () => {
  const SID = Buffer.from('010500000000000515000000010000000200000003000000e8030000', 'hex')
  const group = (n: number) => `CN=g${n},${BASE}`
  const AD: Partial<LdapOptions> = { directory: 'active_directory', loginAttribute: 'sAMAccountName' }

  test.each(['532', '773'])('gets no new password in clear text, for sub-code %s', async (code) => {
    const words = `80090308: LdapErr: DSID-0C0903A9, comment: AcceptSecurityContext error, data ${code}, v1db1`
    const server = await directory(usual(onBindOf(ALICE, { code: 49, words })))
    expect(await prove(methodAt([server], AD))).toEqual({ result: 'rejected', reason: 'password_expired' })
    const offered = await prove(methodAt([server], { ...AD, directory: 'generic' }))
    expect(offered.result).toBe('challenge')
  })

  test('sends many groups in pieces, and long names', async () => {
    const long = `CN=${'x'.repeat(900)},${BASE}`
    const server = await directory((request) => {
      if (request.op !== 'search') return {}
      const { attributes } = request
      const piece = (range: string, values: string[]): Reply => ({
        entries: [{ dn: ALICE, attributes: { sAMAccountName: ['alice'], memberOf: [], [range]: values } }],
      })
      if (attributes.includes('memberOf;range=2-*')) return piece('memberOf;range=2-3', [group(2), long])
      if (attributes.includes('memberOf;range=4-*')) return piece('memberOf;range=4-*', [group(4)])
      return piece('memberOf;range=0-1', [group(0), group(1)])
    })
    const answer = await prove(methodAt([server], AD))
    if (answer.result !== 'accepted') throw new Error(JSON.stringify(answer))
    expect(answer.person.groups).toEqual([group(0), group(1), group(2), long, group(4)])
  })

  test('that never stops to promise more groups is asked a few times', async () => {
    const server = await directory((request) =>
      request.op === 'search'
        ? { entries: [{ dn: ALICE, attributes: { 'memberOf;range=0-1': [group(1)], objectSid: [SID] } }] }
        : {},
    )
    expect(await prove(methodAt([server], AD))).toMatchObject({ result: 'accepted' })
    expect(server.requests.length).toBeLessThan(25)
  })
})
