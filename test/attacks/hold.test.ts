/** One person tries to delete a recording on legal hold, although ending the hold needs two. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { searchEstate } from '../api/estate.ts'
import { type CallOptions, type Harness, startHarness } from '../api/harness.ts'

/** A closed session with a recording (searchEstate). */
const SESSION = '01K9T5RZ8Q4W6X2C3V1B0N7M50'
const HOUR = 3_600_000

let h: Harness
/** A key that acts for any user that it names, and one that belongs to none. */
let key: string
beforeAll(async () => {
  h = await startHarness()
  const cookie = await h.signIn()
  for (const name of ['mallory', 'olga', 'boris']) await h.addUser(name, 'auditor')
  await h.addUser('eve', 'operator')
  const made = await h.call('POST', '/apikeys', {
    cookie,
    body: { key_name: 'all', profile: 'product_administrator' },
  })
  key = made.body.api_key
  h.deletion.holdRelease = 'two'
  await searchEstate(h, cookie)
})
afterAll(() => h.close())

type As = Pick<CallOptions, 'cookie' | 'headers'>
const person = async (name: string): Promise<As> => ({ cookie: await h.signIn(name) })
const byKey = (user?: string): As => ({
  headers: { 'x-auth-key': key, ...(user !== undefined && { 'x-auth-user': user }) },
})
async function ask(verb: 'hold' | 'release', as: As, reason = 'case 7'): Promise<number | string> {
  const { status, body } = await h.call('POST', `/sessions/${SESSION}/${verb}`, { ...as, body: { reason } })
  return body?.error ?? status
}
const hold = async () => (await h.call('GET', `/sessions/${SESSION}`, await person('olga'))).body.legal_hold
const removal = async () => {
  const as = { cookie: await h.signIn() }
  return (await h.call('DELETE', `/sessions/${SESSION}/recording?reason=x`, as)).body.error
}

beforeEach(async () => {
  expect(await ask('hold', await person('olga'))).toBe(204)
  expect(await hold()).toMatchObject({ by: 'olga', reason: 'case 7', release: null })
})

describe('a legal hold', () => {
  const ATTACKS: [string, () => Promise<(number | string)[]>, (number | string)[]][] = [
    [
      'one who asks twice',
      async () => {
        const mallory = await person('mallory')
        return [await ask('release', mallory), await ask('release', mallory)]
      },
      [202, 202],
    ],
    [
      'one who asks, and again from another sign-in',
      async () => [
        await ask('release', await person('mallory')),
        await ask('release', await person('mallory')),
      ],
      [202, 202],
    ],
    [
      'a key in the name of somebody else',
      async () => [await ask('release', await person('mallory')), await ask('release', byKey('boris'))],
      [202, 'person_required'],
    ],
    [
      'a key in two names',
      async () => [await ask('release', byKey('mallory')), await ask('release', byKey('boris'))],
      ['person_required', 'person_required'],
    ],
    [
      'a key that is nobody’s',
      async () => [await ask('release', await person('mallory')), await ask('release', byKey())],
      [202, 'person_required'],
    ],
    [
      'somebody without the right',
      async () => [await ask('release', await person('mallory')), await ask('release', await person('eve'))],
      [202, 'forbidden'],
    ],
    [
      'one who waits a day for somebody else to ask',
      async () => {
        const first = await ask('release', await person('mallory'))
        h.clock.now += 24 * HOUR
        return [first, await ask('release', await person('boris'))]
      },
      [202, 202],
    ],
    [
      'a confirmation after it was put on hold anew',
      async () => [
        await ask('release', await person('mallory')),
        await ask('hold', await person('olga'), 'no'),
        await ask('release', await person('boris')),
      ],
      [202, 204, 202],
    ],
  ]

  it.each(ATTACKS)('is not ended by %s', async (_, attack, answers) => {
    expect(await attack()).toEqual(answers)
    expect(await hold()).toMatchObject({ by: 'olga', reason: 'case 7' })
    expect(await removal()).toBe('on_hold')
    expect(await h.events('recording.release')).toEqual([])
  })

  it('is not ended, nor is it asked for, when the audit cannot be written', async () => {
    const mallory = await person('mallory')
    h.audit.broken = true
    expect(await ask('release', mallory)).toBe('audit_unavailable')
    h.audit.broken = false
    expect(await hold()).toMatchObject({ release: null })
  })

  it('is ended by two, and the audit says who asked and who confirmed', async () => {
    const before = (await h.events('recording.release_request')).length
    expect(await ask('release', await person('mallory'), 'settled')).toBe(202)
    const wish = (await hold()).release
    expect(wish).toMatchObject({ by: 'mallory', reason: 'settled' })
    expect(Date.parse(wish.until) - Date.parse(wish.since)).toBe(24 * HOUR)
    const requests = await h.events('recording.release_request')
    expect(requests.slice(before)).toMatchObject([{ user: 'mallory', session: SESSION, reason: 'settled' }])
    expect(await ask('release', await person('boris'), 'seen')).toBe(204)
    expect(await hold()).toBeNull()
    expect(await h.events('recording.release')).toMatchObject([
      { user: 'boris', object_type: 'user', object: 'mallory', session: SESSION, reason: 'seen' },
    ])
  })
})
