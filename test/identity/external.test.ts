/** Sign-ins by the chain at servers that follow a script, for cases that no real server makes on request. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Identities } from '../../src/identity/chain.ts'
import { MAX_OF_NAME } from '../../src/identity/dialogues.ts'
import { External } from '../../src/identity/external.ts'
import type { HashSeal } from '../../src/identity/hashes.ts'
import { LOCKOUT_LIMITS, Lockout } from '../../src/identity/lockout.ts'
import type { MethodAnswer, MethodState, SignInMethod } from '../../src/identity/methods/method.ts'
import { MAX_ASKING_OF_NETWORK } from '../../src/identity/methods/turns.ts'
import { PasswordHasher } from '../../src/identity/password.ts'
import type { Outcome } from '../../src/identity/sign-in.ts'
import type { AuthDomain, ExternalAuth } from '../../src/model/external-auths.ts'
import type { UserAuth } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../src/vault/seal.ts'
import { newUser } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const SOURCE = '192.0.2.1'
const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
const SEAL: HashSeal = {
  seal: (place, secret) => seal(dataKey, place, secret),
  open: (place, sealed) => open(dataKey, place, sealed),
}

interface Script {
  prove: (userName: string, password: string) => MethodAnswer | Promise<MethodAnswer>
  answer?: (answers: string[]) => MethodAnswer
}

let temp: TemporaryStore
let identities: Identities
let verified: number
let asked: string[]
const scripts = new Map<string, Script>()

class CountingHasher extends PasswordHasher {
  override verify(...question: Parameters<PasswordHasher['verify']>): Promise<boolean> {
    verified++
    return super.verify(...question)
  }
}

function methodOf({ authenticationName: name }: ExternalAuth): SignInMethod {
  return {
    prove: async ({ userName }, password) => {
      asked.push(`${name} ${userName}`)
      return await scripts.get(name)!.prove(userName, password.revealText())
    },
    answer: async (_attempt, _state, answers) =>
      scripts.get(name)!.answer!(answers.map((answer) => answer.revealText())),
    test: async () => [],
    close: async () => undefined,
  }
}

const accepted = (userName: string, groups = ['staff']): MethodAnswer => ({
  result: 'accepted',
  person: { userName, groups },
})
const WRONG: MethodAnswer = { result: 'rejected', reason: 'wrong_password' }
const AWAY: MethodAnswer = { result: 'unavailable', reason: 'no route' }
const knows =
  (right: string): Script['prove'] =>
  (userName, password) =>
    password === right ? accepted(userName) : WRONG

beforeEach(async () => {
  temp = await temporaryStore()
  verified = 0
  asked = []
  scripts.clear()
  const { store } = temp
  identities = new Identities(
    store.users,
    new CountingHasher({ memory: 256, passes: 1 }),
    new Lockout(),
    Date.now,
    SEAL,
    new External({ store, registry: { of: async (auth) => methodOf(auth) } }),
  )
  const group = await store.userGroups.create({
    groupName: 'staff',
    description: '',
    userIds: [],
    timeframeIds: [],
  } as never)
  for (const name of ['first', 'second', 'code']) {
    const options = {
      security: 'none',
      bindDn: '',
      baseDn: 'dc=lab',
      directory: 'generic',
      loginAttribute: 'uid',
      nestedGroups: false,
    }
    await store.externalAuths.create({
      authenticationName: name,
      description: '',
      type: 'LDAP',
      servers: [{ host: '192.0.2.9' }],
      timeoutMs: 1000,
      options,
    } as never)
  }
  await domain('CORP', ['first', 'second'])
  const { id } = (await store.authDomains.find('CORP'))!
  await store.authDomainMappings.create({
    authDomainId: id,
    userGroupId: group.id,
    externalGroup: 'staff',
    profile: 'user',
  })
})
afterEach(() => temp.remove())

async function idsOf(names: string[]): Promise<string[]> {
  return await Promise.all(names.map(async (name) => (await temp.store.externalAuths.find(name))!.id))
}

async function domain(domainName: string, first: string[], more: Partial<AuthDomain> = {}): Promise<void> {
  await temp.store.authDomains.create({
    domainName,
    description: '',
    type: 'LDAP',
    isDefault: false,
    externalAuthIds: await idsOf(first),
    secondaryAuthIds: [],
    attributes: {},
    defaultLanguage: 'en',
    ...more,
  })
}

async function change(more: Partial<AuthDomain>): Promise<void> {
  await temp.store.authDomains.update((await temp.store.authDomains.find('CORP'))!.id, more)
}

const signIn = (user: string, password: string, owner = 'here') =>
  identities.authenticate({
    user,
    login: user,
    source: SOURCE,
    owner,
    proof: { method: 'password', password },
  })
const answer = async (challenge: string, answers: string[], owner = 'here') =>
  (
    await identities.answer(
      challenge,
      owner,
      answers.map((text) => Secret.of(text)),
    )
  ).outcome
const brief = (outcome: Outcome) =>
  outcome.result === 'accepted'
    ? `accepted ${outcome.user.userName} by ${outcome.by?.join('+') ?? 'itself'}`
    : outcome.result === 'rejected'
      ? outcome.reason
      : outcome.result
const challengeOf = (outcome: Outcome): string => {
  if (outcome.result !== 'challenge') throw new Error(JSON.stringify(outcome))
  return outcome.challenge
}
const challenging = (answers: Script['answer'], closed: () => void = () => undefined): Script => ({
  prove: () => ({
    result: 'challenge',
    message: 'Token',
    prompts: [{ text: 'Code: ', echo: false }],
    state: { close: closed },
  }),
  ...(answers && { answer: answers }),
})

async function local(name: string, auths: string[], password = 'local'): Promise<void> {
  const user = await temp.store.users.create(newUser(name, { userAuths: auths as UserAuth[] }))
  await identities.setPassword(user.id, Secret.of(password))
}

test('a name selects its domain in every form, and the local user comes first', async () => {
  scripts.set('first', { prove: knows('right') })
  for (const name of ['fritz@CORP', 'CORP\\fritz', 'fritz@corp', 'corp\\FRITZ'])
    expect([name, brief(await signIn(name, 'right'))]).toEqual([
      name,
      expect.stringMatching(/^accepted fritz@CORP by first$/i),
    ])
  expect(brief(await signIn('fritz', 'right'))).toBe('unknown_user')
  await change({ isDefault: true })
  expect(brief(await signIn('hans', 'right'))).toBe('accepted hans@CORP by first')
  await local('fritz', ['local_password'])
  expect(brief(await signIn('fritz', 'right'))).toBe('wrong_password')
  expect(brief(await signIn('fritz', 'local'))).toBe('accepted fritz by itself')
  expect(brief(await signIn('PC7\\fritz', 'local'))).toBe('accepted fritz by itself')
})

test('a person of one domain is not that of another', async () => {
  scripts.set('first', { prove: knows('right') })
  scripts.set('code', { prove: knows('other') })
  await domain('LAB', ['code'])
  const { id } = (await temp.store.authDomains.find('LAB'))!
  const [group] = (await temp.store.userGroups.list()).items
  await temp.store.authDomainMappings.create({
    authDomainId: id,
    userGroupId: group!.id,
    externalGroup: '*',
    profile: 'user',
  })
  expect(brief(await signIn('fritz@LAB', 'right'))).toBe('wrong_password')
  const [one, other] = [await signIn('fritz@CORP', 'right'), await signIn('fritz@LAB', 'other')]
  if (one.result !== 'accepted' || other.result !== 'accepted') throw new Error('both should be in')
  expect(one.user.id).not.toBe(other.user.id)
})

test('the next server is asked only if one is unavailable, and that counts as no failure', async () => {
  scripts.set('first', { prove: () => WRONG })
  scripts.set('second', { prove: knows('right') })
  expect(brief(await signIn('fritz@CORP', 'right'))).toBe('wrong_password')
  scripts.set('first', { prove: () => AWAY })
  expect(brief(await signIn('fritz@CORP', 'right'))).toBe('accepted fritz@CORP by second')
  scripts.set('second', { prove: () => Promise.reject(new Error('broken')) })
  for (let i = 0; i <= LOCKOUT_LIMITS.pairFailures; i++)
    expect(await signIn('fritz@CORP', 'right')).toEqual({
      result: 'unavailable',
      server: 'first, second',
      reason: 'no route; broken',
      isHidden: false,
    })
  scripts.set('second', { prove: knows('right') })
  expect(brief(await signIn('fritz@CORP', 'right'))).toBe('accepted fritz@CORP by second')
})

test('every refusal costs one hash, and no server is asked once the name is locked in whatever spelling', async () => {
  scripts.set('first', { prove: knows('right') })
  await local('olga', ['local_password'])
  await local('gone', ['local_password', 'first'])
  await temp.store.users.update((await temp.store.users.find('gone'))!.id, { isDisabled: true })
  for (const name of ['olga', 'gone', 'nobody', 'nobody@nowhere', 'fritz@CORP', ' fritz@CORP', 'x  y@CORP']) {
    verified = 0
    expect([name, (await signIn(name, 'wrong')).result, verified]).toEqual([name, 'rejected', 1])
  }
  for (let i = 1; i < LOCKOUT_LIMITS.pairFailures; i++)
    await signIn(i % 2 ? 'CORP\\fritz' : 'FRITZ@corp', 'wrong')
  asked = []
  expect([brief(await signIn('fritz@CORP', 'right')), asked]).toEqual(['locked', []])
})

test('a person without a mapping is rejected like a wrong password, and leaves no user', async () => {
  scripts.set('first', { prove: (name) => accepted(name, ['others']) })
  expect(await signIn('fritz@CORP', 'right')).toEqual({
    result: 'rejected',
    reason: 'unmapped',
    locks: false,
  })
  expect(await temp.store.users.find('fritz@CORP')).toBeUndefined()
})

test('all second factors are asked, one after the other', async () => {
  scripts.set('first', { prove: knows('right') })
  scripts.set('second', { prove: knows('123') })
  scripts.set(
    'code',
    challenging(([code]) => (code === '456' ? accepted('fritz') : WRONG)),
  )
  await change({ externalAuthIds: await idsOf(['first']), secondaryAuthIds: await idsOf(['second', 'code']) })
  const one = challengeOf(await signIn('fritz@CORP', 'right'))
  const two = challengeOf(await answer(one, ['123']))
  const three = challengeOf(await answer(two, ['']))
  expect(brief(await answer(three, ['456']))).toBe('accepted fritz@CORP by first+second+code')
  const again = challengeOf(await signIn('fritz@CORP', 'right'))
  expect(brief(await answer(again, ['124']))).toBe('wrong_password')
})

test('a dialogue belongs to its owner, and takes one answer', async () => {
  scripts.set(
    'first',
    challenging(([code]) => (code === '456' ? accepted('fritz') : WRONG)),
  )
  const challenge = challengeOf(await signIn('fritz@CORP', 'x'))
  expect(brief(await answer(challenge, ['456'], 'elsewhere'))).toBe('no_challenge')
  expect(brief(await answer(challenge, ['456']))).toBe('accepted fritz@CORP by first')
  expect(brief(await answer(challenge, ['456']))).toBe('no_challenge')
})

test('parallel dialogues guess no more than the lock-out allows', async () => {
  let closed = 0
  scripts.set(
    'first',
    challenging(
      () => WRONG,
      () => {
        closed++
      },
    ),
  )
  const open: string[] = []
  for (let i = 0; i < MAX_OF_NAME + 3; i++) open.push(challengeOf(await signIn('fritz@CORP', 'x', `c${i}`)))
  expect(closed).toBe(3)
  const alive = open.map((id, i) => answer(id, ['1'], `c${i}`))
  expect((await Promise.all(alive)).map(brief).filter((said) => said === 'wrong_password')).toHaveLength(
    MAX_OF_NAME,
  )
  for (let i = MAX_OF_NAME; i < LOCKOUT_LIMITS.pairFailures; i++)
    await answer(challengeOf(await signIn('fritz@CORP', 'x')), ['1'])
  expect(brief(await signIn('fritz@CORP', 'x'))).toBe('locked')
})

test('a dialogue left after an answer counts as a failure, one left before as nothing', async () => {
  const more: MethodAnswer = {
    result: 'challenge',
    message: 'again',
    prompts: [{ text: 'Code: ', echo: false }],
    state: { close: () => undefined } satisfies MethodState,
  }
  scripts.set(
    'first',
    challenging(() => more),
  )
  for (let i = 0; i <= LOCKOUT_LIMITS.pairFailures; i++)
    identities.abandon(challengeOf(await signIn('fritz@CORP', 'x')))
  for (let i = 0; i < LOCKOUT_LIMITS.pairFailures; i++) {
    const challenge = challengeOf(await answer(challengeOf(await signIn('fritz@CORP', 'x')), ['1']))
    identities.abandon(challenge)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(brief(await signIn('fritz@CORP', 'x'))).toBe('locked')
})

test('a directory that hangs delays no local user, and holds a bounded number of sign-ins', async () => {
  const { promise, resolve } = Promise.withResolvers<MethodAnswer>()
  scripts.set('first', { prove: () => promise })
  scripts.set('second', { prove: () => AWAY })
  await local('olga', ['local_password'])
  const hanging = Array.from({ length: MAX_ASKING_OF_NETWORK }, (_, i) => signIn(`p${i}@CORP`, 'x'))
  while (asked.length < MAX_ASKING_OF_NETWORK) await new Promise((next) => setImmediate(next))
  expect(brief(await signIn('olga', 'local'))).toBe('accepted olga by itself')
  expect(await signIn('late@CORP', 'x')).toMatchObject({
    reason: 'too many sign-ins wait for its servers; no route',
  })
  resolve(WRONG)
  expect((await Promise.all(hanging)).map(brief)).toEqual(hanging.map(() => 'wrong_password'))
})

test('a local user may have both; the server away stays hidden behind the one answer', async () => {
  scripts.set('first', { prove: knows('theirs') })
  await local('both', ['local_password', 'first'])
  expect(brief(await signIn('both', 'local'))).toBe('accepted both by itself')
  expect(brief(await signIn('both', 'theirs'))).toBe('accepted both by first')
  expect(asked).toEqual(['first both'])
  await temp.store.users.update((await temp.store.users.find('both'))!.id, { userAuths: ['first'] as never })
  expect(brief(await signIn('both', 'local'))).toBe('wrong_password')
  scripts.set('first', { prove: () => AWAY })
  expect(await signIn('both', 'theirs')).toMatchObject({ result: 'unavailable', isHidden: true })
})

test('servers are asked about a local user by the name of the user, not by what was typed', async () => {
  scripts.set('first', { prove: knows('theirs') })
  await local('strasse', ['first'])
  for (const typed of ['straße', 'STRASSE', 'ſtrasse'])
    expect(brief(await signIn(typed, 'theirs'))).toBe('accepted strasse by first')
  expect(asked).toEqual(Array(3).fill('first strasse'))
})

test('what has changed while they typed counts: servers, methods, and the user', async () => {
  const code = challenging(([text]) => (text === '456' ? accepted('fritz') : WRONG))
  scripts.set('first', code)
  const begun = async (name: string) => challengeOf(await signIn(name, 'x'))
  await change({ externalAuthIds: await idsOf(['first']) })
  const [removed, back] = [await begun('fritz@CORP'), await begun('fritz@CORP')]
  await change({ externalAuthIds: await idsOf(['second']) })
  expect(brief(await answer(removed, ['456']))).toBe('method_not_allowed')
  await change({ externalAuthIds: await idsOf(['first']) })
  expect(brief(await answer(back, ['456']))).toBe('accepted fritz@CORP by first')
  const late = await begun('fritz@CORP')
  await change({ secondaryAuthIds: await idsOf(['code']) })
  expect(brief(await answer(late, ['456']))).toBe('method_not_allowed')

  await local('olga', ['first'])
  const { id } = (await temp.store.users.find('olga'))!
  const [disabled, without] = [await begun('olga'), await begun('olga')]
  await temp.store.users.update(id, { isDisabled: true })
  expect(brief(await answer(disabled, ['456']))).toBe('disabled')
  await temp.store.users.update(id, { isDisabled: false, userAuths: ['local_password'] })
  expect(brief(await answer(without, ['456']))).toBe('method_not_allowed')
})
