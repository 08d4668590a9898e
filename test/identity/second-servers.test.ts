/** Second factors of local users at servers that follow a script. */
import { expect, test } from 'vitest'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import {
  AWAY,
  accepted,
  answer,
  brief,
  challengeOf,
  challenging,
  identities,
  knows,
  local,
  scripts,
  seen,
  signIn,
  temp,
  WRONG,
} from './scripted-servers.ts'

const change = async (name: string, more: Parameters<typeof temp.store.users.update>[1]): Promise<void> => {
  await temp.store.users.update((await temp.store.users.find(name))!.id, more)
}

async function withSecond(name: string, first: string[], second: string[]): Promise<void> {
  await local(name, first)
  await change(name, { secondaryAuths: second })
}

test('each is asked once the password is right, with all of its rounds', async () => {
  scripts.set('second', { prove: knows('123') })
  scripts.set(
    'code',
    challenging(([code]) => (code === '456' ? accepted('olga') : WRONG)),
  )
  await withSecond('olga', ['local_password'], ['second', 'code'])
  expect([brief(await signIn('olga', 'wrong')), seen.asked]).toEqual(['wrong_password', []])
  const two = challengeOf(await answer(challengeOf(await signIn('olga', 'local')), ['123']))
  const three = challengeOf(await answer(two, ['']))
  expect(await answer(three, ['456'])).toMatchObject({ result: 'accepted', second: ['second', 'code'] })
  const again = challengeOf(await answer(challengeOf(await signIn('olga', 'local')), ['123']))
  expect(brief(await answer(challengeOf(await answer(again, [''])), ['455']))).toBe('wrong_password')
  expect(seen.asked).toEqual(Array(2).fill(['second olga', 'code olga']).flat())
})

test('follows a first factor at a server, too, and both are named', async () => {
  scripts.set('first', { prove: knows('theirs') })
  scripts.set('code', { prove: knows('456') })
  await withSecond('olga', ['first'], ['code'])
  expect(await answer(challengeOf(await signIn('olga', 'theirs')), ['456'])).toMatchObject({
    result: 'accepted',
    by: ['first'],
    second: ['code'],
  })
})

test('one that is away lets nobody in, and is no failure; it is said, since the password was right', async () => {
  scripts.set('code', { prove: () => AWAY })
  await withSecond('olga', ['local_password'], ['code'])
  for (let i = 0; i <= LOCKOUT_LIMITS.pairFailures; i++)
    expect(await answer(challengeOf(await signIn('olga', 'local')), ['456'])).toEqual({
      result: 'unavailable',
      server: 'code',
      reason: 'no route',
      isHidden: false,
    })
  scripts.set('code', { prove: knows('456') })
  expect(brief(await answer(challengeOf(await signIn('olga', 'local')), ['456']))).toMatch(/^accepted/)
})

test('wrong codes lock the name as wrong passwords do', async () => {
  scripts.set('code', { prove: knows('456') })
  await withSecond('olga', ['local_password'], ['code'])
  for (let i = 0; i < LOCKOUT_LIMITS.pairFailures; i++)
    expect(brief(await answer(challengeOf(await signIn('olga', 'local')), ['1']))).toBe('wrong_password')
  seen.asked = []
  expect([brief(await signIn('olga', 'local')), seen.asked]).toEqual(['locked', []])
})

test('what has changed while they typed counts: the servers, the password, the user', async () => {
  scripts.set('second', { prove: knows('123') })
  scripts.set('code', { prove: knows('456') })
  await withSecond('olga', ['local_password'], ['code'])
  const begun = async () => challengeOf(await signIn('olga', 'local'))
  const { id } = (await temp.store.users.find('olga'))!
  const waiting = [await begun(), await begun(), await begun()]
  await change('olga', { secondaryAuths: ['code', 'second'] })
  expect(brief(await answer(waiting.pop()!, ['456']))).toBe('method_not_allowed')
  await change('olga', { secondaryAuths: ['code'], isDisabled: true })
  expect(brief(await answer(waiting.pop()!, ['456']))).toBe('disabled')
  await change('olga', { isDisabled: false })
  await temp.store.users.setPasswordHash(id, new Uint8Array(8))
  expect(brief(await answer(waiting.pop()!, ['456']))).toBe('method_not_allowed')
  expect(await identities.isLocked({ user: 'olga', source: '192.0.2.1' })).toBe(false)
})

test('a server that is named as one keeps its name, and stays', async () => {
  await withSecond('olga', ['local_password'], ['code'])
  const { id } = (await temp.store.externalAuths.find('code'))!
  await temp.store.externalAuths.update(id, { authenticationName: 'codes' })
  expect((await temp.store.users.find('olga'))?.secondaryAuths).toEqual(['codes'])
  await expect(temp.store.externalAuths.remove(id)).rejects.toThrow(/olga/)
})
