/** Requests for approval by the API, what they open, and the conditions of authorizations. Attack cases 25, 26 and 31. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
const cookies = new Map<string, string>()
beforeAll(async () => {
  h = await startHarness()
  cookies.set('admin', await h.signIn())
  const people = {
    ops1: 'user',
    ops2: 'user',
    chief1: 'approver',
    chief2: 'approver',
    stranger: 'approver',
    eye: 'auditor',
  }
  for (const [name, profile] of Object.entries(people)) {
    await h.addUser(name, profile as never)
    cookies.set(name, await h.signIn(name))
  }
  await must('/devices', { device_name: 'srv1', host: '192.0.2.1' })
  await must('/devices/srv1/services', { service_name: 'ssh', protocol: 'SSH' })
  const credentials = [{ type: 'password', password: 'canary-7f3a' }]
  for (const account_name of ['root', 'free'])
    await must('/accounts', { account_name, device: 'srv1', credentials })
  await must('/usergroups', { group_name: 'ops', users: ['ops1', 'ops2'] })
  await must('/usergroups', { group_name: 'chiefs', users: ['chief1', 'chief2'] })
  await must('/usergroups', { group_name: 'empty' })
  await must('/targetgroups', { group_name: 'targets', session: { accounts: ['root@local:srv1:ssh'] } })
  await must('/targetgroups', { group_name: 'open', session: { accounts: ['free@local:srv1:ssh'] } })
  const rights = { authorize_sessions: true, authorize_password_retrieval: true, subprotocols: ['SSH_SHELL'] }
  await must('/authorizations', {
    ...rights,
    user_group: 'ops',
    target_group: 'targets',
    approval_required: true,
    approvers: ['chiefs'],
    active_quorum: 1,
    has_comment: true,
    mandatory_comment: true,
  })
  await must('/authorizations', { ...rights, user_group: 'ops', target_group: 'open' })
})
afterAll(() => h.close())

const call = (who: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  h.call(method, path, { cookie: cookies.get(who)!, ...(body !== undefined && { body }) })
async function must(path: string, body: unknown): Promise<Answer> {
  const answer = await call('admin', 'POST', path, body)
  expect(answer.status, answer.text).toBe(201)
  return answer
}
const ask = (body: object = {}, who = 'ops1') =>
  call(who, 'POST', '/approvals', { target: 'root@srv1', comment: 'disk is full', ...body })
async function asked(body: object = {}, who = 'ops1'): Promise<string> {
  const answer = await ask(body, who)
  expect(answer.status, answer.text).toBe(201)
  return answer.body.id
}
const put = (body: object) => call('admin', 'PUT', '/authorizations/ops:targets', body)
const checkout = (who = 'ops1', body: object = {}) => call(who, 'POST', '/accounts/root@local/checkout', body)

describe('a request', () => {
  it('shows what is asked for, and is found by those whom it concerns only', async () => {
    const answer = await ask({ duration: 600, ticket: 'CHG-1' })
    expect(answer.status).toBe(201)
    expect(answer.body).toMatchObject({
      kind: 'session',
      user: 'ops1',
      target: 'root@local:srv1:ssh',
      authorization: 'ops:targets',
      status: 'pending',
      begin: null,
      end: null,
      duration: 600,
      comment: 'disk is full',
      ticket: 'CHG-1',
      quorum: 1,
      answers: [],
      sessions: [],
      checkouts: [],
    })
    const { id } = answer.body
    for (const [who, status] of Object.entries({
      ops1: 200,
      chief1: 200,
      eye: 200,
      ops2: 404,
      stranger: 404,
    })) {
      expect((await call(who, 'GET', `/approvals/${id}`)).status, who).toBe(status)
      const { body } = await call(who, 'GET', '/approvals?status=pending')
      expect(
        body.some((one: { id: string }) => one.id === id),
        who,
      ).toBe(status === 200)
    }
    for (const action of ['accept', 'reject', 'cancel'])
      for (const who of ['ops2', 'stranger', 'eye']) {
        const { status, text } = await call(who, 'POST', `/approvals/${id}/${action}`, {})
        expect([403, 404], `${who} ${action} ${text}`).toContain(status)
      }
    const found = await call('eye', 'GET', '/approvals?q=comment~disk&sort=-creation&fields=id,status')
    expect(found.body[0]).toEqual({ id, status: 'pending' })
    await call('ops1', 'POST', `/approvals/${id}/cancel`, { comment: 'done otherwise' })
    expect((await call('ops1', 'GET', `/approvals/${id}`)).body).toMatchObject({
      status: 'cancelled',
      ended_by: 'ops1',
      ended_comment: 'done otherwise',
    })
  })

  it.each([
    [{ target: 'root@nowhere' }, 'unknown_reference', 'target'],
    [{ target: undefined }, 'invalid_field', 'target'],
    [{ account: 'root@local' }, 'invalid_field', 'target'],
    [{ comment: '' }, 'invalid_field', 'comment'],
    [{ comment: 'a\u001b[2J' }, 'invalid_field', 'comment'],
    [{ comment: 'a\u202eb' }, 'invalid_field', 'comment'],
    [{ ticket: 'two\nlines' }, 'invalid_field', 'ticket'],
    [{ duration: 0 }, 'invalid_field', 'duration'],
    [{ duration: 604_801 }, 'invalid_field', 'duration'],
    [{ begin: '2030-01-01T00:00:00Z' }, 'invalid_field', 'begin'],
    [{ begin: '2039-01-01T00:00:00Z' }, 'invalid_field', 'begin'],
    [{ quorum: 0 }, 'unknown_field', 'quorum'],
  ])('with %j is refused', async (body, error, field) => {
    const answer = await ask(body)
    expect([answer.body.error, answer.body.details?.[0]?.field]).toEqual([error, field])
  })

  it('for what opens without one is refused; a stranger learns nothing of a target', async () => {
    expect((await ask({ target: 'free@srv1' })).body.error).toBe('approval_not_needed')
    const there = await ask({}, 'stranger')
    const nowhere = await ask({ target: 'root@srv9' }, 'stranger')
    expect(there.text.replaceAll('srv1', 'X')).toBe(nowhere.text.replaceAll('srv9', 'X'))
  })

  it('may be one of twenty that wait', async () => {
    const ids: string[] = []
    for (let n = 0; n < 20; n++) ids.push(await asked({}, 'ops2'))
    expect((await ask({}, 'ops2')).body.error).toBe('too_many_approvals')
    for (const id of ids) await call('ops2', 'POST', `/approvals/${id}/cancel`, {})
  })
})

describe('an answer', () => {
  it('is kept with its comment, may shorten the time, and is given once', async () => {
    await put({ active_quorum: 2 })
    const id = await asked({ duration: 3_600 })
    const first = await call('chief1', 'POST', `/approvals/${id}/accept`, { comment: 'go on', duration: 60 })
    expect(first.body).toMatchObject({
      status: 'pending',
      duration: 60,
      answers: [{ approver: 'chief1', approved: true }],
    })
    expect((await call('chief1', 'POST', `/approvals/${id}/reject`, {})).body.error).toBe('answered_already')
    const second = await call('chief2', 'POST', `/approvals/${id}/accept`, { duration: 999 })
    expect(second.body).toMatchObject({ status: 'accepted', duration: 60, begin: expect.any(String) })
    expect((await call('chief2', 'POST', `/approvals/${id}/accept`)).body.error).toBe('not_pending')
    expect((await h.events('approval.answer')).at(-1)).toMatchObject({
      user: 'chief2',
      holder: 'ops1',
      result: 'accepted',
    })
    await put({ active_quorum: 1 })
  })

  it('is never the own one, also by a key that acts for the requester', async () => {
    await call('admin', 'PUT', '/users/chief1', { groups: ['chiefs', 'ops'] })
    const id = await asked({}, 'chief1')
    expect((await call('chief1', 'POST', `/approvals/${id}/accept`, {})).body.error).toBe('own_request')
    const key = (await must('/apikeys', { key_name: 'all', profile: 'product_administrator' })).body.api_key
    const headers = { 'x-auth-key': key, 'x-auth-user': 'CHIEF1' }
    const byKey = await h.call('POST', `/approvals/${id}/accept`, { headers, body: {} })
    expect(byKey.body.error).toBe('own_request')
    const alone = await h.call('POST', `/approvals/${id}/accept`, {
      headers: { 'x-auth-key': key },
      body: {},
    })
    expect(alone.body.error).toBe('user_context_required')
    await call('admin', 'PUT', '/users/chief1', { groups: ['chiefs'] })
    await call('chief2', 'POST', `/approvals/${id}/reject`, { comment: 'no' })
  })

  it('is not written if its event is not', async () => {
    const id = await asked()
    h.audit.broken = true
    expect((await call('chief1', 'POST', `/approvals/${id}/accept`, {})).body.error).toBe('audit_unavailable')
    expect((await ask()).body.error).toBe('audit_unavailable')
    h.audit.broken = false
    expect((await call('chief1', 'GET', `/approvals/${id}`)).body).toMatchObject({
      status: 'pending',
      answers: [],
    })
    await call('ops1', 'POST', `/approvals/${id}/cancel`, {})
  })
})

describe('a checkout', () => {
  it('needs the approval, lasts no longer than it, and is taken back when it is revoked', async () => {
    expect((await checkout()).body.error).toBe('approval_required')
    const id = await asked({ target: undefined, account: 'root@local', duration: 300 })
    expect((await checkout()).body.error).toBe('approval_required')
    await call('chief1', 'POST', `/approvals/${id}/accept`, {})
    expect((await checkout('ops2')).body.error).toBe('approval_required')
    const out = await checkout()
    expect(out.body).toMatchObject({ password: 'canary-7f3a' })
    expect(Date.parse(out.body.expires) - h.clock.now).toBe(300_000)
    const extended = await call('ops1', 'POST', '/accounts/root@local/extend', {
      checkout_id: out.body.checkout_id,
    })
    expect(extended.body.error).toBe('not_extendable')
    expect((await call('eye', 'GET', `/approvals/${id}`)).body.checkouts).toEqual([out.body.checkout_id])
    expect((await h.events('checkout.out')).at(-1)).toMatchObject({ approval: id })
    const revoked = await call('chief2', 'POST', `/approvals/${id}/cancel`, { comment: 'enough' })
    expect(revoked.body).toMatchObject({ status: 'cancelled', ended_by: 'chief2' })
    expect((await call('eye', 'GET', `/checkouts/${out.body.checkout_id}`)).body).toMatchObject({
      result: 'forced',
      forced_by: 'chief2',
      approval: id,
    })
    expect((await h.events('checkout.forced')).at(-1)).toMatchObject({
      object: out.body.checkout_id,
      holder: 'ops1',
      reason: 'the approval was revoked: enough',
    })
    expect((await checkout()).body.error).toBe('approval_required')
  })

  it('of a single approval comes once, also of ten at the same moment; a refused one uses nothing up', async () => {
    await put({ single_connection: true })
    const id = await asked({ target: 'root@local', duration: 300 })
    await call('chief1', 'POST', `/approvals/${id}/accept`, {})
    expect((await checkout('ops1', { duration: 9_999_999 })).body.error).toBe('invalid_field')
    const all = await Promise.all(Array.from({ length: 10 }, () => checkout()))
    expect(all.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 9 }, () => 409)])
    await put({ single_connection: false })
  })

  it('without an approval needs the reason that the authorization asks for', async () => {
    await put({ approval_required: false })
    expect((await checkout()).body).toMatchObject({ error: 'invalid_field' })
    expect((await checkout('ops1', { comment: 'why' })).status).toBe(200)
    await put({ approval_required: true })
  })
})

describe('the conditions of an authorization', () => {
  it.each([
    [{ approvers: [] }, 'approvers'],
    [{ active_quorum: 3 }, 'active_quorum'],
    [{ inactive_quorum: 9 }, 'inactive_quorum'],
    [{ active_quorum: 0, inactive_quorum: 0 }, 'active_quorum'],
    [{ approvers: ['empty'] }, 'active_quorum'],
    [{ has_comment: false }, 'mandatory_comment'],
    [{ mandatory_ticket: true }, 'mandatory_ticket'],
    [{ approval_timeout: -1 }, 'approval_timeout'],
    [{ approvers: ['nobodys'] }, 'approvers/0'],
  ])('are refused with %j', async (body, field) => {
    const answer = await put(body)
    expect(answer.status).toBe(400)
    expect(answer.body.details[0].field).toBe(field)
  })

  it('with four eyes need a recording, also in a table of CSV', async () => {
    const text = (await call('admin', 'GET', '/export/authorizations')).text
    const lines = text.split('\r\n')
    const names = lines.find((line) => line.includes('four_eyes'))!.split(';')
    const values = (line: string) => line.split(';')
    const own = lines.find((line) => values(line)[names.indexOf('target_group')] === 'open')!
    const changed = values(own)
    changed[names.indexOf('four_eyes')] = 'true'
    changed[names.indexOf('is_recorded')] = 'false'
    const send = (row: string[]) =>
      h.call('POST', '/import/authorizations', {
        cookie: cookies.get('admin')!,
        raw: text.replace(own, row.join(';')),
        headers: { 'content-type': 'text/csv' },
      })
    const refused = await send(changed)
    expect(refused.text).toContain('only a recorded session can be watched: it needs is_recorded')
    const { body } = await call('admin', 'GET', '/authorizations/ops:open')
    expect(body).toMatchObject({ four_eyes: false, is_recorded: true })
    changed[names.indexOf('is_recorded')] = 'true'
    expect((await send(changed)).text).toContain('updated')
    expect((await call('admin', 'GET', '/authorizations/ops:open')).body.four_eyes).toBe(true)
    await call('admin', 'PUT', '/authorizations/ops:open', { four_eyes: false })
  })

  it('count approvers that can answer; a refusal says how many can', async () => {
    await call('admin', 'PUT', '/usergroups/empty', { users: ['chief1', 'chief2', 'eye', 'ops2'] })
    const two = { approvers: ['empty', 'chiefs'], active_quorum: 2 }
    expect((await put(two)).status).toBe(200)
    const past = new Date(Date.now() - 1_000).toISOString()
    const users = '/users/chief2'
    for (const [change, back] of [
      [{ is_disabled: true }, { is_disabled: false }],
      [{ is_locked: true }, { is_locked: false }],
      [{ expiration_date: past }, { expiration_date: null }],
      [{ profile: 'user' }, { profile: 'approver' }],
    ]) {
      expect((await call('admin', 'PUT', users, change)).status).toBe(200)
      const { body } = await put(two)
      expect(body.details[0], JSON.stringify(change)).toEqual({
        field: 'active_quorum',
        message: 'of 4 users in the groups of approvers one can answer, so 2 can never agree',
      })
      await call('admin', 'PUT', users, back)
    }
    expect((await put({ approvers: ['chiefs'], active_quorum: 1 })).status).toBe(200)
    await call('admin', 'PUT', '/usergroups/empty', { users: [] })
  })

  it('are shown as they were set, and stay in a table of CSV', async () => {
    const { body } = await call('admin', 'GET', '/authorizations/ops:targets')
    expect(body).toMatchObject({
      is_critical: false,
      approval_required: true,
      approvers: ['chiefs'],
      active_quorum: 1,
      inactive_quorum: 0,
      approval_timeout: 0,
      single_connection: false,
      has_comment: true,
      mandatory_comment: true,
      has_ticket: false,
      mandatory_ticket: false,
    })
    const { body: table, text } = await call('admin', 'GET', '/export/authorizations')
    void table
    expect(text).toContain('approvers')
    const headers = { 'content-type': 'text/csv' }
    const again = await h.call('POST', '/import/authorizations', {
      cookie: cookies.get('admin')!,
      raw: text,
      headers,
    })
    expect(again.text).not.toMatch(/updated|created/)
    const found = await call('admin', 'GET', '/authorizations?q=approval_required=true')
    expect(found.body).toHaveLength(1)
    expect((await call('admin', 'DELETE', '/usergroups/chiefs')).body.error).toBe('in_use')
  })
})

it('the screen of a held command is for its user, its approvers, and those who see recordings', async () => {
  const id = await asked()
  const { id: _id, ...same } = (await h.store.approvals.find(id))!
  const made = await h.approvals.ask({ ...same, kind: 'command', detail: 'rm', shown: 'canary screen' }, {})
  expect(JSON.stringify(await h.sql("select * from approvals where kind = 'command'"))).not.toContain(
    'canary',
  )
  await h.addUser('operator1', 'operator')
  cookies.set('operator1', await h.signIn('operator1'))
  for (const [who, detail] of [
    ['ops1', 'rm\n\ncanary screen'],
    ['chief1', 'rm\n\ncanary screen'],
    ['eye', 'rm\n\ncanary screen'],
    ['operator1', null],
  ] as const) {
    expect((await call(who, 'GET', `/approvals/${made!.id}`)).body.detail, who).toBe(detail)
    const listed = (await call(who, 'GET', '/approvals?q=kind=command')).body
    expect(listed[0].detail, who).toBe(detail)
  }
  const answered = await call('chief1', 'POST', `/approvals/${made!.id}/accept`, {})
  expect([answered.status, answered.body.detail]).toEqual([200, 'rm'])
})

it('a secret whose approval is revoked while it is checked out is not handed out, and no use stays', async () => {
  const id = await asked({ target: undefined, account: 'root@local' })
  expect((await call('chief1', 'POST', `/approvals/${id}/accept`, {})).status).toBe(200)
  const create = h.store.checkouts.create.bind(h.store.checkouts)
  const spied = vi.spyOn(h.store.checkouts, 'create').mockImplementationOnce(async (...checkout) => {
    await h.store.approvals.cancel(id, { by: 'chief1', comment: 'enough', time: h.clock.now })
    return await create(...checkout)
  })
  const answer = await checkout()
  spied.mockRestore()
  expect([answer.status, answer.body.error]).toEqual([409, 'changed_meanwhile'])
  expect(await h.store.approvals.find(id)).toMatchObject({ state: 'cancelled', uses: 0 })
})
