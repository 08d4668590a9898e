/** One-time codes at the API: enrolment, sign-in, recovery, reset. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ENROLMENT_MS, TRIES } from '../../src/identity/second-factor/second-factors.ts'
import { codeOf, STEP_MS, stepAt } from '../../src/identity/second-factor/totp.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

const [NAME, PASSWORD] = ['u-user', 'u-user password']
const OTHERS = 'u-other password'
let h: Harness
let cookie: string
let admin: string

beforeEach(async () => {
  h = await startHarness()
  await h.addUser(NAME, 'user')
  await h.addUser('u-other', 'user')
  cookie = await h.signIn(NAME, PASSWORD)
  admin = await h.signIn()
})
afterEach(() => h.close())

const totp = (method: string, path = '', body?: object, as = cookie, user = NAME) =>
  h.call(method, `/users/${user}/totp${path}`, { cookie: as, ...(body && { body }) })

function bytesOf(base32: string): Buffer {
  const bits = [...base32].map((one) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(one).toString(2).padStart(5, '0'),
  )
  return Buffer.from(
    bits
      .join('')
      .match(/.{8}/g)!
      .map((byte) => Number.parseInt(byte, 2)),
  )
}
const codeNow = (secret: string, steps = 0) => codeOf(bytesOf(secret), stepAt(h.clock.now) + steps)

async function enrolled(): Promise<{ secret: string; codes: string[] }> {
  const { secret } = (await totp('POST', '', { password: PASSWORD })).body
  const confirmed = await totp('POST', '/confirm', { code: codeNow(secret) })
  expect(confirmed.status).toBe(200)
  h.clock.now += STEP_MS
  return { secret, codes: confirmed.body.recovery_codes }
}

const begin = (password = PASSWORD) => h.call('POST', '/session', { body: { user: NAME, password } })
async function signIn(code: string): Promise<Answer> {
  const asked = await begin()
  expect([asked.status, asked.body.error]).toEqual([401, 'second_factor_required'])
  return await answerTo(asked, code)
}
const answerTo = (asked: Answer, code: string) =>
  h.call('POST', '/session', { body: { challenge: asked.body.challenge.id, answers: [code] } })
const failures = async () => (await h.events('auth.failure')).map(({ reason }) => reason)

it('is enrolled by the password and a first code, and asked for from then on', async () => {
  expect((await totp('GET')).body).toEqual({
    is_enrolled: false,
    enrolled_at: null,
    recovery_codes: 0,
    security_keys: 0,
    held_until: null,
  })
  const begun = await totp('POST', '', { password: PASSWORD })
  expect([begun.status, begun.body.uri]).toEqual([
    201,
    `otpauth://totp/Sallyport:${NAME}?secret=${begun.body.secret}&issuer=Sallyport`,
  ])
  expect((await begin()).status).toBe(200)
  expect((await totp('POST', '/confirm', { code: '000000' })).body.error).toBe('invalid_field')
  const confirmed = await totp('POST', '/confirm', { code: codeNow(begun.body.secret) })
  expect(confirmed.body.recovery_codes).toHaveLength(10)
  expect(await h.events('factor.enrol')).toMatchObject([{ user: NAME, object: NAME }])
  expect((await totp('GET', '', undefined, admin)).body).toMatchObject({
    is_enrolled: true,
    recovery_codes: 10,
  })
  // The code of the enrolment does not sign in.
  expect((await signIn(codeNow(begun.body.secret))).body.error).toBe('invalid_credentials')
  h.clock.now += STEP_MS
  expect((await signIn(codeNow(begun.body.secret))).status).toBe(200)
  expect(await failures()).toEqual(['used_code'])
  expect((await totp('POST', '', { password: PASSWORD })).body.error).toBe('duplicate')
  expect(JSON.stringify([await h.events(), h.log])).not.toContain(begun.body.secret)
})

it('is not asked for after a wrong password, and a wrong code gets the words of a wrong password', async () => {
  await enrolled()
  const [wrongPassword, wrongCode] = [await begin('wrong'), await signIn('123')]
  expect(wrongCode.text).toBe(wrongPassword.text)
  expect(await failures()).toEqual(['wrong_password', 'wrong_code'])
})

it('a code signs in once, from however many connections it comes at the same time', async () => {
  const { secret } = await enrolled()
  const asked = [await begin(), await begin(), await begin()]
  const answers = await Promise.all(asked.map((one) => answerTo(one, codeNow(secret))))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
  // Nor the one of the step before.
  h.clock.now += STEP_MS
  expect((await signIn(codeNow(secret, -1))).status).toBe(401)
  // A clock that jumps back makes no code good again.
  h.clock.now -= 4 * STEP_MS
  expect((await signIn(codeNow(secret, 1))).status).toBe(401)
})

it('recovery codes sign in once each, also two at a time, and are renewed by a code', async () => {
  const { secret, codes } = await enrolled()
  const asked = [await begin(), await begin()]
  const answers = await Promise.all(asked.map((one) => answerTo(one, codes[0]!.toUpperCase())))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
  expect(await h.events('factor.recovery')).toMatchObject([{ user: NAME, count: 9 }])
  expect((await totp('GET')).body.recovery_codes).toBe(9)
  expect((await totp('POST', '/recoverycodes', { code: codes[1]!.slice(0, 16) })).status).toBe(400)
  const renewed = await totp('POST', '/recoverycodes', { code: codeNow(secret) })
  expect(renewed.body.recovery_codes).toHaveLength(10)
  expect((await signIn(codes[1]!)).status).toBe(401)
  expect((await signIn(renewed.body.recovery_codes[0])).status).toBe(200)
  expect(await h.events('factor.renew')).toMatchObject([{ user: NAME, object: NAME }])
})

it('of another user does not count', async () => {
  const { codes } = await enrolled()
  const other = await h.signIn('u-other', OTHERS)
  const { secret } = (await totp('POST', '', { password: OTHERS }, other, 'u-other')).body
  await totp('POST', '/confirm', { code: codeNow(secret) }, other, 'u-other')
  h.clock.now += STEP_MS
  expect((await signIn(codeNow(secret))).status).toBe(401)
  const asked = await h.call('POST', '/session', { body: { user: 'u-other', password: OTHERS } })
  expect((await answerTo(asked, codes[0]!)).status).toBe(401)
})

/** Sends wrong codes until further ones are held up. */
async function holdUp(): Promise<void> {
  const user = (await h.store.users.find(NAME))!
  // Simultaneous ones included.
  const tries = Array.from({ length: TRIES.most + 4 }, () =>
    h.store.secondFactors.countTry(user.id, h.clock.now, { ...TRIES, most: TRIES.most - 1 }),
  )
  expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(TRIES.most - 1)
  expect((await signIn('123')).status).toBe(401)
}

it('codes in a row that are wrong hold up further ones, from any address', async () => {
  const { secret } = await enrolled()
  await holdUp()
  const held = { object: NAME, duration: TRIES.holdMs, client_ip: '127.0.0.1' }
  expect(await h.events('factor.held')).toMatchObject([held])
  const end = new Date(h.clock.now + TRIES.holdMs).toISOString()
  expect((await totp('GET')).body.held_until).toBe(end)
  expect((await signIn(codeNow(secret))).status).toBe(401)
  expect(await failures()).toEqual(['wrong_code', 'too_many_codes'])
  h.clock.now += TRIES.holdMs
  expect((await signIn(codeNow(secret))).status).toBe(200)
})

it('a hold is ended by an administrator, but not by the user, and the factor stays', async () => {
  const { secret } = await enrolled()
  await holdUp()
  expect((await totp('DELETE', '/hold', undefined, cookie)).status).toBe(403)
  expect((await totp('DELETE', '/hold', undefined, admin, 'admin')).body.error).toBe('forbidden')
  expect((await signIn(codeNow(secret))).status).toBe(401)
  expect((await totp('DELETE', '/hold', undefined, admin)).status).toBe(204)
  expect(await h.events('factor.release')).toMatchObject([{ user: 'admin', object: NAME }])
  expect((await totp('GET')).body).toMatchObject({ is_enrolled: true, recovery_codes: 10, held_until: null })
  expect((await begin()).body.error).toBe('second_factor_required')
  expect((await signIn(codeNow(secret))).status).toBe(200)
})

it('a stolen session does not enrol, and guesses of the password are counted', async () => {
  for (let at = 0; at < 10; at++) {
    const answer = await totp('POST', '', { password: `wrong ${at}` })
    expect(answer.body.details).toMatchObject([{ field: 'password' }])
  }
  expect((await totp('POST', '', { password: PASSWORD })).status).toBe(400)
  expect(await h.events('auth.locked')).toHaveLength(1)
  expect((await totp('GET')).body.is_enrolled).toBe(false)
})

it("others' are neither seen nor enrolled without the right, and keys have none", async () => {
  const other = await h.signIn('u-other', OTHERS)
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['POST', '', { password: PASSWORD }],
    ['POST', '/confirm', { code: '123456' }],
  ] as const) {
    expect((await totp(method, path, body, other)).body.error).toBe('not_found')
  }
  expect((await totp('POST', '', { password: PASSWORD }, admin)).body.error).toBe('not_found')
  const key = await h.call('POST', '/apikeys', { cookie: admin, body: { key_name: 'k', profile: 'user' } })
  const headers = { 'x-auth-key': key.body.api_key, 'x-auth-user': NAME }
  const body = { password: PASSWORD }
  expect((await h.call('POST', `/users/${NAME}/totp`, { headers, body })).body.error).toBe('forbidden')
})

it('an enrolment that is not confirmed in time ends, and a newer one takes its place', async () => {
  const first = (await totp('POST', '', { password: PASSWORD })).body.secret
  const second = (await totp('POST', '', { password: PASSWORD })).body.secret
  expect((await totp('POST', '/confirm', { code: codeNow(first) })).status).toBe(400)
  h.clock.now += ENROLMENT_MS
  cookie = await h.signIn(NAME, PASSWORD)
  expect((await totp('POST', '/confirm', { code: codeNow(second) })).status).toBe(400)
  expect((await begin()).status).toBe(200)
})

it('is reset by an administrator, but not by themselves', async () => {
  await enrolled()
  expect((await totp('DELETE', '', undefined, cookie)).status).toBe(403)
  expect((await totp('DELETE', '', undefined, admin, 'admin')).body.error).toBe('forbidden')
  expect((await totp('DELETE', '', undefined, admin)).status).toBe(204)
  expect(await h.events('factor.reset')).toMatchObject([{ user: 'admin', object: NAME }])
  expect((await begin()).status).toBe(200)
  expect((await totp('GET')).body).toEqual({
    is_enrolled: false,
    enrolled_at: null,
    recovery_codes: 0,
    security_keys: 0,
    held_until: null,
  })
})

it('a password that is replaced, or a user who is disabled, while the code is typed ends the sign-in', async () => {
  const { secret } = await enrolled()
  for (const [body, reason] of [
    [{ password: 'a quite different pass phrase' }, 'wrong_password'],
    [{ is_disabled: true }, 'disabled'],
  ] as const) {
    const asked = await h.call('POST', '/session', {
      body: { user: NAME, password: reason === 'disabled' ? 'a quite different pass phrase' : PASSWORD },
    })
    await h.call('PUT', `/users/${NAME}`, { cookie: admin, body })
    h.clock.now += STEP_MS
    expect((await answerTo(asked, codeNow(secret))).body.error).toBe('invalid_credentials')
    expect((await failures()).at(-1)).toBe(reason)
  }
})

it('who has to have one enrols in the dialogue of the next sign-in, and gets in no other way', async () => {
  const body = { group_name: 'careful', users: [NAME], second_factor: 'required' }
  expect((await h.call('POST', '/usergroups', { cookie: admin, body })).body.second_factor).toBe('required')
  const asked = await begin()
  const secret = /^ {2}([A-Z2-7 ]+)$/m.exec(asked.body.challenge.message)![1]!.replaceAll(' ', '')
  expect(new URL(asked.body.challenge.uri).searchParams.get('secret')).toBe(secret)
  const wrong = await answerTo(asked, '000000')
  expect(wrong.body).toMatchObject({ error: 'second_factor_required' })
  const noted = await answerTo(wrong, codeNow(secret))
  const codes = noted.body.challenge.message.match(/[a-z2-7]{8}-[a-z2-7]{8}/g)
  expect(codes).toHaveLength(10)
  // Nothing counts until the codes were seen.
  expect((await totp('GET')).body.is_enrolled).toBe(false)
  expect(await h.events('factor.enrol')).toEqual([])
  expect((await answerTo(noted, '')).status).toBe(200)
  expect(await h.events('factor.enrol')).toMatchObject([{ user: NAME, object: NAME, client_ip: '127.0.0.1' }])
  h.clock.now += STEP_MS
  expect((await signIn(codes[0]!)).status).toBe(200)
  expect((await signIn(codeNow(secret))).status).toBe(200)
})

it('wrong first codes end the dialogue, and the next one has another secret', async () => {
  const body = { second_factor: 'required' }
  expect((await h.call('PUT', '/profiles/user', { cookie: admin, body })).status).toBe(200)
  const first = await begin()
  let asked = first
  for (let at = 0; at < 2; at++) asked = await answerTo(asked, 'wrong')
  expect((await answerTo(asked, 'wrong')).body.error).toBe('invalid_credentials')
  expect(await failures()).toEqual(['wrong_code'])
  expect((await begin()).body.challenge.message).not.toBe(first.body.challenge.message)
  // Of the built-in profiles nothing else changes, and who may not change profiles does not lift it.
  for (const change of [{ description: 'mine' }, { ...body, rights: {} }]) {
    const answer = await h.call('PUT', '/profiles/user', { cookie: admin, body: change })
    expect(answer.body.error).toBe('factory_object')
  }
  await h.addUser('u-operator', 'operator')
  const operator = await h.signIn('u-operator')
  const lifted = { cookie: operator, body: { second_factor: 'none' } }
  expect((await h.call('PUT', '/profiles/user', lifted)).status).toBe(403)
})

it('a right code is remembered for the address, as long as the policy says', async () => {
  const { secret, codes } = await enrolled()
  const body = {
    group_name: 'careful',
    users: [NAME],
    second_factor: 'required',
    second_factor_remember: 600,
  }
  const { body: group } = await h.call('POST', '/usergroups', { cookie: admin, body })
  expect(group.second_factor_remember).toBe(600)
  // A recovery code is for once.
  expect((await signIn(codes[0]!)).status).toBe(200)
  expect((await signIn(codeNow(secret))).status).toBe(200)
  expect(await h.events('factor.remembered')).toEqual([])
  h.clock.now += 599_999
  expect((await begin()).status).toBe(200)
  expect(await h.events('factor.remembered')).toMatchObject([
    { user: NAME, protocol: 'HTTPS', client_ip: '127.0.0.1' },
  ])
  expect((await begin('wrong')).body.error).toBe('invalid_credentials')
  // A sign-in without a code does not prolong it.
  h.clock.now += 1
  expect((await signIn(codeNow(secret))).status).toBe(200)
  expect((await begin()).status).toBe(200)
  await h.call('PUT', `/usergroups/${group.id}`, { cookie: admin, body: { second_factor_remember: 0 } })
  expect((await begin()).body.error).toBe('second_factor_required')
  await h.call('PUT', `/usergroups/${group.id}`, { cookie: admin, body: { second_factor_remember: 600 } })
  expect((await begin()).status).toBe(200)
  await h.call('PUT', `/users/${NAME}`, { cookie: admin, body: { password: PASSWORD } })
  expect((await begin()).body.error).toBe('second_factor_required')
  for (const second_factor_remember of [-1, 1.5, 31 * 86_400 + 1, '600', null]) {
    const change = { cookie: admin, body: { second_factor_remember } }
    expect((await h.call('PUT', '/profiles/user', change)).body.error).toBe('invalid_field')
  }
})
