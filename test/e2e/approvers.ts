/** Approvers of a bastion, who answer over the API, and targets that need their answer. */
import { sendAsIs, signInAs } from '../attacks/requests.ts'
import type { Broker } from '../peers/broker.ts'
import { until } from '../until.ts'

export interface ApprovalRow {
  id: string
  user: string
  target: string
  status: string
  comment: string
  ticket: string
  sessions: string[]
}

export interface Approvers {
  /** Returns all requests, the newest last. */
  all(): Promise<ApprovalRow[]>
  /** Returns a pending request that was not returned before; waits for it. */
  next(): Promise<ApprovalRow>
  /** Answers as an approver. */
  answer(id: string, answer: 'accept' | 'reject', comment?: string, who?: string): Promise<void>
  /** Waits until the request is in this state. */
  reaches(id: string, status: string): Promise<ApprovalRow>
}

/** Fields of an authorization that needs one approver of the group, for each connection. */
export const APPROVAL = {
  approval_required: true,
  approvers: ['bosses'],
  active_quorum: 1,
  inactive_quorum: 1,
  approval_timeout: 600,
  single_connection: true,
} as const

/** Adds boss1 and boss2, who answer for the group `bosses`. */
export async function addApprovers(broker: Broker): Promise<Approvers> {
  const bosses = ['boss1', 'boss2']
  for (const user_name of bosses) {
    await broker.must('POST', '/users', {
      user_name,
      display_name: user_name,
      email: `${user_name}@example.com`,
      profile: 'approver',
      user_auths: ['local_password'],
      password: `${user_name} password`,
    })
  }
  await broker.must('POST', '/usergroups', { group_name: 'bosses', users: bosses })
  const cookies = new Map<string, string>()
  for (const boss of bosses) cookies.set(boss, await signInAs(broker, boss, `${boss} password`))
  const seen = new Set<string>()
  const all = () => broker.must<ApprovalRow[]>('GET', '/approvals?sort=creation&limit=-1')
  return {
    all,
    next: () =>
      until('a request for approval', async () => {
        const found = (await all()).find(({ id, status }) => status === 'pending' && !seen.has(id))
        if (found) seen.add(found.id)
        return found
      }),
    answer: async (id, answer, comment = '', who = 'boss1') => {
      const body = JSON.stringify({ comment })
      const headers = { cookie: cookies.get(who) ?? '', 'content-type': 'application/json' }
      const { status, body: text } = await sendAsIs(
        broker,
        'POST',
        `/api/approvals/${id}/${answer}`,
        headers,
        body,
      )
      if (status >= 300) throw new Error(`${answer} by ${who}: ${status} ${text}`)
    },
    reaches: (id, status) =>
      until(`the request to be ${status}`, async () =>
        (await all()).find((one) => one.id === id && one.status === status),
      ),
  }
}
