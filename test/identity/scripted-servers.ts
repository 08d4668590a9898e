/** The chain of sign-in beside servers that follow a script, for cases that no real server makes on request. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach } from 'vitest'
import { Identities } from '../../src/identity/chain.ts'
import { External } from '../../src/identity/external.ts'
import type { HashSeal } from '../../src/identity/hashes.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import type { MethodAnswer, SignInMethod } from '../../src/identity/methods/method.ts'
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

export interface Script {
  prove: (userName: string, password: string) => MethodAnswer | Promise<MethodAnswer>
  answer?: (answers: string[]) => MethodAnswer
}

export let temp: TemporaryStore
export let identities: Identities
/** Hashes computed, and servers asked, of this test. */
export const seen = { verified: 0, asked: [] as string[] }
export const scripts = new Map<string, Script>()

class CountingHasher extends PasswordHasher {
  override verify(...question: Parameters<PasswordHasher['verify']>): Promise<boolean> {
    seen.verified++
    return super.verify(...question)
  }
}

function methodOf({ authenticationName: name }: ExternalAuth): SignInMethod {
  return {
    prove: async ({ userName }, password) => {
      seen.asked.push(`${name} ${userName}`)
      return await scripts.get(name)!.prove(userName, password.revealText())
    },
    answer: async (_attempt, _state, answers) =>
      scripts.get(name)!.answer!(answers.map((answer) => answer.revealText())),
    test: async () => [],
    close: async () => undefined,
  }
}

export const accepted = (userName: string, groups = ['staff']): MethodAnswer => ({
  result: 'accepted',
  person: { userName, groups },
})
export const WRONG: MethodAnswer = { result: 'rejected', reason: 'wrong_password' }
export const AWAY: MethodAnswer = { result: 'unavailable', reason: 'no route' }
export const knows =
  (right: string): Script['prove'] =>
  (userName, password) =>
    password === right ? accepted(userName) : WRONG

beforeEach(async () => {
  temp = await temporaryStore()
  seen.verified = 0
  seen.asked = []
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

export async function idsOf(names: string[]): Promise<string[]> {
  return await Promise.all(names.map(async (name) => (await temp.store.externalAuths.find(name))!.id))
}

export async function domain(
  domainName: string,
  first: string[],
  more: Partial<AuthDomain> = {},
): Promise<void> {
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

export async function change(more: Partial<AuthDomain>): Promise<void> {
  await temp.store.authDomains.update((await temp.store.authDomains.find('CORP'))!.id, more)
}

export const signIn = (user: string, password: string, owner = 'here') =>
  identities.authenticate({
    user,
    login: user,
    source: SOURCE,
    owner,
    proof: { method: 'password', password },
  })
export const answer = async (challenge: string, answers: string[], owner = 'here') =>
  (
    await identities.answer(
      challenge,
      owner,
      answers.map((text) => Secret.of(text)),
    )
  ).outcome
export const brief = (outcome: Outcome) =>
  outcome.result === 'accepted'
    ? `accepted ${outcome.user.userName} by ${outcome.by?.join('+') ?? 'itself'}`
    : outcome.result === 'rejected'
      ? outcome.reason
      : outcome.result
export const challengeOf = (outcome: Outcome): string => {
  if (outcome.result !== 'challenge') throw new Error(JSON.stringify(outcome))
  return outcome.challenge
}
export const challenging = (answers: Script['answer'], closed: () => void = () => undefined): Script => ({
  prove: () => ({
    result: 'challenge',
    message: 'Token',
    prompts: [{ text: 'Code: ', echo: false }],
    state: { close: closed },
  }),
  ...(answers && { answer: answers }),
})

export async function local(name: string, auths: string[], password = 'local'): Promise<void> {
  const user = await temp.store.users.create(newUser(name, { userAuths: auths as UserAuth[] }))
  await identities.setPassword(user.id, Secret.of(password))
}
