/** Sign-ins by the chain at servers that follow a script. */
import { expect, test } from 'vitest'
import { MAX_OF_NAME } from '../../src/identity/dialogues.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import type { MethodAnswer, MethodState } from '../../src/identity/methods/method.ts'
import { MAX_ASKING_OF_NETWORK } from '../../src/identity/methods/turns.ts'
import {
  AWAY,
  accepted,
  answer,
  brief,
  challengeOf,
  challenging,
  change,
  domain,
  identities,
  idsOf,
  knows,
  local,
  scripts,
  seen,
  signIn,
  temp,
  WRONG,
} from './scripted-servers.ts'

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
    seen.verified = 0
    expect([name, (await signIn(name, 'wrong')).result, seen.verified]).toEqual([name, 'rejected', 1])
  }
  for (let i = 1; i < LOCKOUT_LIMITS.pairFailures; i++)
    await signIn(i % 2 ? 'CORP\\fritz' : 'FRITZ@corp', 'wrong')
  seen.asked = []
  expect([brief(await signIn('fritz@CORP', 'right')), seen.asked]).toEqual(['locked', []])
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
    message: '',
    prompts: [{ text: 'Next code: ', echo: false }],
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

const asks = (text: string, more: object = {}): MethodAnswer => ({
  result: 'challenge',
  message: '',
  prompts: [{ text, echo: false }],
  state: { close: () => undefined },
  ...more,
})

test.each([
  ['the same words', () => 'Code: '],
  ['a count of what is left', (at: number) => `Code (${16 - at} tries left): `],
  ['other words each time', (at: number) => `Code ${'x'.repeat(at)}: `],
])('a server that asks again with %s locks the name, by failures that are reported', async (_, words) => {
  let at = 0
  scripts.set('first', { prove: () => asks(words(at++)), answer: () => asks(words(at++)) })
  let guesses = 0
  let reported = 0
  let ends = 0
  for (let outcome = await signIn('fritz@CORP', 'x'); brief(outcome) !== 'locked'; ) {
    if (outcome.result === 'challenge' && outcome.failure === 'wrong_password') reported++
    if (outcome.result === 'rejected') ends++
    guesses += outcome.result === 'challenge' ? 1 : 0
    outcome =
      outcome.result === 'challenge'
        ? await answer(outcome.challenge, [`${guesses}`])
        : await signIn('fritz@CORP', 'x')
  }
  expect(reported + ends).toBe(LOCKOUT_LIMITS.pairFailures)
  expect(guesses).toBeLessThanOrEqual(LOCKOUT_LIMITS.pairFailures + 4)
})

test('an answer counts once: by the question that came again, or by leaving', async () => {
  scripts.set(
    'first',
    challenging(() => asks('Code: ')),
  )
  for (let i = 1; i < LOCKOUT_LIMITS.pairFailures; i++) {
    const again = await answer(challengeOf(await signIn('fritz@CORP', 'x')), ['1'])
    expect(again).toMatchObject({ failure: 'wrong_password' })
    identities.abandon(challengeOf(again))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const last = await answer(challengeOf(await signIn('fritz@CORP', 'x')), ['1'])
  expect(last).toEqual({ result: 'rejected', reason: 'wrong_password', locks: true })
})

test('questions of other words, and those for a new password, are no failure; a right answer forgives', async () => {
  const dialogue = async (script: MethodAnswer[]) => {
    const rest = [...script]
    scripts.set('first', { prove: () => rest.shift()!, answer: () => rest.shift()! })
    let outcome = await signIn('fritz@CORP', 'x')
    const failures: (string | undefined)[] = []
    while (outcome.result === 'challenge') {
      failures.push(outcome.failure)
      outcome = await answer(outcome.challenge, ['1'])
    }
    return [...failures, brief(outcome)]
  }
  const isIn = 'accepted fritz@CORP by first'
  const none = undefined
  expect(
    await dialogue([
      asks('Choose a PIN (y/n)? '),
      asks('New PIN: '),
      asks('New PIN again: '),
      asks('Next code: '),
      accepted('fritz'),
    ]),
  ).toEqual([none, none, none, none, isIn])
  const change = asks('New password: ', { setsPassword: true })
  expect(await dialogue([change, change, change, accepted('fritz')])).toEqual([none, none, none, isIn])
  // The first question was the one that the password answered.
  expect(await dialogue([asks('Password: ', { answered: 'password:' }), accepted('fritz')])).toEqual([
    'wrong_password',
    isIn,
  ])
  for (let i = 0; i < LOCKOUT_LIMITS.pairFailures; i++)
    expect(await dialogue([asks('Code: '), asks('Code: '), accepted('fritz')])).toEqual([
      none,
      'wrong_password',
      isIn,
    ])
})

test('a directory that hangs delays no local user, and holds a bounded number of sign-ins', async () => {
  const { promise, resolve } = Promise.withResolvers<MethodAnswer>()
  scripts.set('first', { prove: () => promise })
  scripts.set('second', { prove: () => AWAY })
  await local('olga', ['local_password'])
  const hanging = Array.from({ length: MAX_ASKING_OF_NETWORK }, (_, i) => signIn(`p${i}@CORP`, 'x'))
  while (seen.asked.length < MAX_ASKING_OF_NETWORK) await new Promise((next) => setImmediate(next))
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
  expect(seen.asked).toEqual(['first both'])
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
  expect(seen.asked).toEqual(Array(3).fill('first strasse'))
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
