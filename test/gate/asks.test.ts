/** Held command lines: how many approvers have to agree, and the ticket that their request carries. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AskCommandAnswer, GateNotice } from '../../src/contract/gate.ts'
import { NO_CONDITIONS } from '../../src/model/conditions.ts'
import type { Conditions, User } from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'
import { newUser } from '../store/fixture.ts'
import { until } from '../until.ts'
import { type VncWorld, vncWorld } from './desktop-world.ts'

let world: VncWorld
let store: Store
let chiefs: User[]
let group: string
let notices: GateNotice[]
beforeEach(async () => {
  world = await vncWorld()
  store = world.temporary.store
  group = (await store.userGroups.create({ groupName: 'chiefs', description: '', userIds: [] })).id
  const approver = (name: string) =>
    store.users.create(newUser(name, { profile: 'approver', groupIds: [group] }))
  chiefs = [await approver('chief1'), await approver('chief2')]
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
})
afterEach(() => world.temporary.remove())

const conditions = (change: Partial<Conditions>) =>
  store.authorizations.update(world.estate.authorization.id, {
    conditions: { ...NO_CONDITIONS, approverGroupIds: [group], ...change },
  })

async function opened(reason?: { comment: string; ticket: string }): Promise<string> {
  const identity = await world.signIn()
  const answer = await world.open({ identity, ...(reason && { reason }) })
  if (answer.result !== 'opened') throw new Error(JSON.stringify(answer))
  return answer.session.id
}

/** Asks about a command. Returns its request, and the answer to come. */
async function ask(session: string) {
  const request = { session, ask: 1, line: 'reboot', rule: 'ask ^reboot', screen: ['# reboot'] }
  const answer: Promise<AskCommandAnswer> = world.gate.askCommand(request)
  const asked = await until('the request', async () => {
    const { items } = await store.approvals.list({ status: 'pending' })
    return items[0]
  })
  return { id: asked.id, asked, answer }
}

const accept = (id: string, chief: User | undefined) =>
  world.gate.approvals.answer(
    id,
    { userId: chief!.id, name: chief!.userName, fields: {} },
    { approved: true, comment: '', apiKey: '' },
  )

test('as many approvers have to agree as for a session', async () => {
  await conditions({ activeQuorum: 2 })
  const { id, asked, answer } = await ask(await opened())
  expect(asked).toMatchObject({ kind: 'command', quorum: 2, ticket: '' })
  await until('the notice', () =>
    notices.find((one) => one.type === 'tell' && /2 have to agree/.test(one.text)),
  )
  await accept(id, chiefs[0])
  await world.gate.review()
  expect(await store.approvals.find(id)).toMatchObject({ state: 'pending' })
  await accept(id, chiefs[1])
  await world.gate.review()
  expect(await answer).toEqual({ result: 'accepted', message: 'accepted by chief1, chief2' })
})

test('the screen in view is stored sealed, and gone with the answer', async () => {
  await conditions({})
  const { id, asked, answer } = await ask(await opened())
  expect(asked.detail).toBe('reboot')
  expect(Buffer.from(asked.screen ?? []).includes('# reboot')).toBe(false)
  expect(world.gate.approvals.screenOf(asked)).toBe('rule: ask ^reboot\n\n# reboot')
  expect(world.gate.approvals.screenOf({ ...asked, id: 'another' })).toBe('')
  await accept(id, chiefs[0])
  await world.gate.review()
  await answer
  expect((await store.approvals.find(id))?.screen).toBeUndefined()
})

test.each([
  [2, 2],
  [0, 1],
])('outside of the timeframes, where the quorum is %i, %i', async (inactiveQuorum, quorum) => {
  // Holds in no second that a test has.
  const never = { startDate: '2000-01-01', endDate: '2000-01-02', startTime: '00:00', endTime: '24:00' }
  await conditions({ inactiveQuorum })
  const session = await opened()
  const { id } = await store.timeframes.create({
    timeframeName: 'never',
    description: '',
    isOvertimable: true,
    timeZone: 'UTC',
    periods: [{ ...never, weekDays: [] }],
    isFactory: false,
  })
  await store.userGroups.update(world.estate.userGroup.id, { timeframeIds: [id] })
  const { asked, answer } = await ask(session)
  expect(asked.quorum).toBe(quorum)
  await world.gate.giveUpCommand({ session, ask: 1 })
  expect(await answer).toMatchObject({ result: 'refused' })
})

test('the ticket of the session is in the request, and in the events of request and answer', async () => {
  await conditions({ hasTicket: true, mandatoryTicket: true })
  const { id, asked, answer } = await ask(await opened({ comment: '', ticket: 'CHG-7' }))
  expect(asked.ticket).toBe('CHG-7')
  await accept(id, chiefs[0])
  await world.gate.review()
  expect(await answer).toMatchObject({ result: 'accepted' })
  const events = (await world.events()).filter(([code]) => code.startsWith('approval.'))
  expect(events).toMatchObject([
    ['approval.request', { ticket: 'CHG-7', count: 1 }],
    ['approval.answer', { ticket: 'CHG-7', user: 'chief1', result: 'accepted' }],
  ])
})
