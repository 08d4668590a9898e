/** A password that was checked out is another one afterwards, at a real database too. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postgresql } from '../../proxies/rotation/postgresql.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { type Postgres, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import { inTime, signInOf, targetAt } from '../proxies/rotation/targets.ts'
import { until } from '../until.ts'
import { eventsIn } from './bastion.ts'

const ACCOUNT = 'alice@databases'
const FIRST = 'Alice-Pass1'

describeWithPeers('an account of PostgreSQL', ['initdb', 'postgres'], () => {
  let broker: Broker
  let server: Postgres
  const verify = (password: string) =>
    postgresql.verify(targetAt(server.port, { insecure: true }), signInOf('alice', password), inTime())

  beforeAll(async () => {
    ;[broker, server] = await Promise.all([startBroker(), startPostgres({ log_statement: 'all' })])
    await server.sql(`create role alice login password '${FIRST}'`)
    const made = (path: string, body: object) => broker.must('POST', path, body)
    await made('/checkoutpolicies', {
      ...{ policy_name: 'once', enable_lock: true, duration: 60 },
      change_credentials_at_checkin: true,
    })
    await made('/domains', {
      domain_name: 'databases',
      enable_password_change: true,
      password_change_plugin: 'PostgreSQL',
      password_change_plugin_parameters: { host: '127.0.0.1', port: server.port, insecure: true },
    })
    const credentials = [{ type: 'password', password: FIRST }]
    await made('/accounts', {
      ...{ account_name: 'alice', domain: 'databases', credentials },
      checkout_policy: 'once',
    })
    await made('/usergroups', { group_name: 'jobs', users: ['admin'] })
    await made('/targetgroups', { group_name: 'jobs', password_retrieval: { accounts: [ACCOUNT] } })
    await made('/authorizations', {
      ...{ user_group: 'jobs', target_group: 'jobs' },
      authorize_password_retrieval: true,
    })
  })
  afterAll(async () => {
    await broker?.stop()
    await server?.stop()
  })

  test('has a new password after the check-in, which the next checkout returns', async () => {
    const checkOut = () =>
      broker.must<{ checkout_id: string; password: string }>('POST', `/accounts/${ACCOUNT}/checkout`, {})
    const first = await checkOut()
    expect(first.password).toBe(FIRST)
    await broker.must('POST', `/accounts/${ACCOUNT}/checkin`, { checkout_id: first.checkout_id })
    await until('the change', async () => (await verify(FIRST)) === 'invalid')
    await until('its event', () =>
      eventsIn(broker.log()).some(({ event, result }) => event === 'secret.change' && result === 'success'),
    )
    const { password } = await checkOut()
    expect(password).not.toBe(FIRST)
    expect(await verify(password)).toBe('valid')
    expect(server.log() + broker.log()).not.toContain(password)
  })
})
