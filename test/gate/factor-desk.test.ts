/** Second factors that authorizations require, at the gate: asked once per connection, and by nothing skipped. Attack case 8. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AuthenticateAnswer, GateNotice, OpenAnswer } from '../../src/contract/gate.ts'
import type { TicketRequest } from '../../src/gate/ticket-office.ts'
import { codeOf, STEP_MS, stepAt } from '../../src/identity/second-factor/totp.ts'
import { NO_CONDITIONS } from '../../src/model/conditions.ts'
import type { Conditions } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import type { Store } from '../../src/store/store.ts'
import { SOURCE, type VncWorld, vncWorld } from './desktop-world.ts'

const TARGET = 'root@local:srv1:vnc'
let world: VncWorld
let store: Store
let secret: Buffer
let notices: GateNotice[]

beforeEach(async () => {
  world = await vncWorld()
  store = world.temporary.store
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
  const { user } = world.estate
  await conditions({ secondFactor: 'required' })
  const begun = await world.factors.begin(user)
  secret = bytesOf(begun!.secret)
  await world.factors.confirm(user.id, Secret.of(code()), '192.0.2.1', async () => undefined)
  next()
})
afterEach(() => world.temporary.remove())

async function conditions(change: Partial<Conditions>): Promise<void> {
  const { id } = world.estate.authorization
  const old = (await store.authorizations.find(id))?.conditions ?? NO_CONDITIONS
  await store.authorizations.update(id, { conditions: { ...old, ...change } })
}
function bytesOf(base32: string): Buffer {
  const bits = [...base32].map((one) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(one))
  const text = bits.map((one) => one.toString(2).padStart(5, '0')).join('')
  return Buffer.from(text.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)))
}
const code = () => codeOf(secret, stepAt(world.clock.now))
const next = () => {
  world.clock.now += STEP_MS
}
const events = async (name: string) =>
  (await world.events()).filter(([one]) => one === name).map(([, fields]) => fields)
/** Signs in without a code: one is asked for of enrolled users, unless it is remembered. */
const authenticate = (login: string, proof: object, port = SOURCE.port) =>
  world.gate.authenticate({
    protocol: 'VNC',
    source: { ...SOURCE, port },
    login,
    proof: proof as { method: 'password'; password: string },
  })
const byPassword = (login: string) => authenticate(login, { method: 'password', password: 'ops1 password' })
const answer = (login: string, challenge: string, text: string) =>
  authenticate(login, { method: 'keyboard-interactive', challenge, answers: [text] })
const challengeOf = (asked: AuthenticateAnswer | OpenAnswer): string => {
  if (!('challenge' in asked)) throw new Error(JSON.stringify(asked))
  return asked.challenge.id
}
const tokenOf = (accepted: AuthenticateAnswer): string => {
  if (accepted.result !== 'accepted') throw new Error(JSON.stringify(accepted))
  return accepted.identity.token
}
/** A connection by a ticket, whose request came with or without a second factor. */
async function byTicket(more: Partial<TicketRequest> = {}): Promise<string> {
  const issued = await world.gate.tickets.issue({
    user: world.estate.user,
    basis: world.basis(),
    target: TARGET,
    protocol: 'VNC',
    address: SOURCE.address,
    ...more,
  })
  if (issued.result !== 'issued') throw new Error(issued.result)
  const password = issued.password.revealText()
  return tokenOf(await authenticate('ops1', { method: 'password', password }))
}
const open = (identity: string, more: object = {}) => world.open({ identity, ...more })
const factor = (challenge: string, ...answers: string[]) => ({ factor: { challenge, answers } })

test('a ticket of a sign-in without one is asked, in place, and opens nothing before the right code', async () => {
  const identity = await byTicket()
  const asked = await open(identity)
  expect(asked).toMatchObject({
    result: 'factor_needed',
    target: TARGET,
    challenge: { prompts: [{ text: 'One-time code (or a recovery code): ', echo: false }] },
  })
  expect([world.gate.running, await events('session.open')]).toEqual([0, []])
  const wrong = await open(identity, factor(challengeOf(asked), '000000'))
  expect(wrong).toEqual({ result: 'denied', message: 'the second factor was not accepted' })
  expect(await events('auth.failure')).toMatchObject([
    { user: 'ops1', method: 'second_factor', reason: 'wrong_code' },
  ])
  // The answered round has ended: it is asked anew.
  const again = await open(identity, factor(challengeOf(asked), code()))
  const opened = await open(identity, factor(challengeOf(again), code()))
  expect(opened.result).toBe('opened')
  expect(await events('factor.proved')).toMatchObject([{ user: 'ops1', protocol: 'VNC' }])
})

test('a ticket of a sign-in with one is not asked', async () => {
  expect((await open(await byTicket({ hasFactor: true }))).result).toBe('opened')
})

test('the round belongs to its connection, and is no sign-in; another one leaves with its connection', async () => {
  const [identity, other] = [await byTicket(), await byTicket()]
  const challenge = challengeOf(await open(identity))
  expect((await answer('ops1', challenge, code())).result).toBe('rejected')
  const theirs = challengeOf(await open(identity))
  expect((await open(other, factor(theirs, code()))).result).toBe('factor_needed')
  await world.gate.leave({ identity })
  expect(world.identities.waitsFor(theirs)).toBe(false)
})

test('one that was proved at the sign-in counts for the connection', async () => {
  const asked = await byPassword('ops1')
  const identity = tokenOf(await answer('ops1', challengeOf(asked), code()))
  expect((await open(identity, { target: TARGET })).result).toBe('opened')
})

test('the target of the login string has it asked in the sign-in, whatever the groups remember', async () => {
  const [groupId = ''] = world.estate.user.groupIds
  await store.userGroups.update(groupId, { secondFactor: 'required', secondFactorRemember: 3600 })
  tokenOf(await answer('ops1', challengeOf(await byPassword('ops1')), code()))
  next()
  const identity = tokenOf(await byPassword('ops1'))
  const named = await byPassword(world.login)
  expect(named).toMatchObject({
    result: 'challenge',
    challenge: { hint: expect.stringMatching(/BatchMode/) },
  })
  // Without a target it is remembered, and asked for by the opening.
  const asked = await open(identity, { target: TARGET })
  expect((await open(identity, { target: TARGET, ...factor(challengeOf(asked), code()) })).result).toBe(
    'opened',
  )
})

test('the authorization remembers for as long as it says, beside the same first factor', async () => {
  await conditions({ secondFactorRemember: 60 })
  tokenOf(await answer(world.login, challengeOf(await byPassword(world.login)), code()))
  next()
  expect((await open(await byTicket())).result).toBe('opened')
  expect(await events('factor.remembered')).toMatchObject([{ user: 'ops1' }])
  next()
  expect((await open(await byTicket())).result).toBe('factor_needed')
})

test('an SSH key whose token has checked its user counts where the authorization says so', async () => {
  const { user } = world.estate
  const proved = { user, isUserVerified: true }
  const where = { source: SOURCE.address, owner: 'x', firstFactor: 'key' }
  const ask = (areKeysEnough: boolean) =>
    world.identities.further(proved, where, { rememberS: 0, areKeysEnough })
  expect([(await ask(true)).result, (await ask(false)).result]).toEqual(['accepted', 'challenge'])
})

test('another authorization that requires none opens with its own rights, and a proved one adds the others', async () => {
  const { estate } = world
  const group = await store.userGroups.create({
    groupName: 'free',
    description: '',
    userIds: [estate.user.id],
  })
  const { id: _, conditions: _c, ...same } = (await store.authorizations.find(estate.authorization.id))!
  await store.authorizations.create({ ...same, userGroupId: group.id, subprotocols: ['VNC'] })
  await store.authorizations.update(estate.authorization.id, { subprotocols: ['VNC', 'VNC_CLIPBOARD_DOWN'] })
  const rightsOf = (opened: OpenAnswer) => opened.result === 'opened' && opened.session.rights
  expect(rightsOf(await open(await byTicket()))).toEqual(['VNC'])
  expect(rightsOf(await open(await byTicket({ hasFactor: true })))).toEqual(['VNC', 'VNC_CLIPBOARD_DOWN'])
})

test('an approval is asked for after it, and a session by an approval has it too', async () => {
  const chiefs = await store.userGroups.create({ groupName: 'chiefs', description: '', userIds: [] })
  await conditions({ approvalRequired: true, approverGroupIds: [chiefs.id] })
  const identity = await byTicket()
  const asked = await open(identity)
  expect(asked.result).toBe('factor_needed')
  expect(await events('approval.request')).toEqual([])
  expect((await open(identity, factor(challengeOf(asked), code()))).result).toBe('approval_pending')
})

test('a session without one ends when the authorization requires one, and one with it goes on', async () => {
  await conditions({ secondFactor: 'none' })
  const without = await open(await byTicket())
  const proved = await open(await byTicket({ hasFactor: true }))
  if (without.result !== 'opened' || proved.result !== 'opened') throw new Error('not opened')
  await conditions({ secondFactor: 'required' })
  await world.gate.review()
  expect(notices).toMatchObject([
    {
      type: 'stop',
      session: without.session.id,
      reason: 'sessions of this target need a second factor from now on',
    },
  ])
})

test('is enrolled in place by one who has none', async () => {
  await world.factors.remove(world.estate.user.id)
  const identity = await byTicket()
  const asked = await open(identity)
  if (asked.result !== 'factor_needed') throw new Error(asked.result)
  secret = bytesOf(new URL(asked.challenge.uri!).searchParams.get('secret')!)
  const noted = await open(identity, factor(asked.challenge.id, code()))
  expect(noted).toMatchObject({
    result: 'factor_needed',
    challenge: { prompts: [{ text: 'Enter goes on: ' }] },
  })
  expect((await open(identity, factor(challengeOf(noted), ''))).result).toBe('opened')
  expect((await world.factors.statusOf(world.estate.user.id)).recoveryCodes).toBe(10)
})
