/** Changes of a real account's password at OpenSSH's server: on demand, at check-in, and through a kill -9 (attack case 32). */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapt, walkOf } from '../docs/walks.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

interface Change {
  outcome: string | null
  cause: string
  reason: string | null
}

let bastion: Bastion
let broker: Broker
let ref: string

beforeAll(async () => {
  bastion = await startBastion({
    credential: 'password',
    authorization: { authorize_password_retrieval: true },
  })
  broker = bastion.broker
  ref = `${bastion.account.name}@local@srv1`
  await broker.must('PUT', '/usergroups/ops1-srv1-users', { users: ['ops1', 'admin'] })
})
afterAll(async () => {
  if (broker !== bastion.broker) await broker.stop()
  await bastion.stop()
})

const session = async () => (await ssh(bastion.home, bastion.login(), ['echo in'])).stdout
const checkout = () =>
  broker.must<{ password: string; checkout_id: string }>('POST', `/accounts/${ref}/checkout`, {})
const history = () => broker.must<Change[]>('GET', `/accounts/${ref}/history`)

test('is changed on demand, as the page says, at a target whose host key is pinned', async () => {
  const before = await checkout()
  await broker.must('POST', `/accounts/${ref}/checkin`, { checkout_id: before.checkout_id })
  // Pins the host key.
  expect(await session()).toBe('in\n')
  const { api_key } = await broker.must<{ api_key: string }>('POST', '/apikeys', {
    key_name: 'rotation',
    profile: 'product_administrator',
  })
  const block = walkOf('docs/secrets.md').find(({ name }) => name === 'rotation')
  const script = adapt(block!.text, { 'deploy@local@srv1': ref })
  const done = await run('sh', ['-euc', script], {
    env: {
      ...process.env,
      URL: `https://127.0.0.1:${broker.ports.https}`,
      CA: join(broker.dataFolder, 'tls', 'cert.pem'),
      KEY: api_key,
    },
  })
  expect(done.stdout, done.stderr).toContain('"outcome":"changed"')
  expect(await session()).toBe('in\n')
  const after = await checkout()
  expect(after.password).not.toBe(before.password)
  expect(after.password).toHaveLength(32)
  await broker.must('POST', `/accounts/${ref}/checkin`, { checkout_id: after.checkout_id })
  expect(broker.log()).not.toContain(after.password)
  const codes = await bastion.events('secret.change', 1)
  expect(codes.at(-1)).toMatchObject({ method: 'demand', result: 'success' })
}, 300_000)

test('is changed when a checkout is returned', async () => {
  await broker.must('PUT', '/checkoutpolicies/default', { change_credentials_at_checkin: true })
  const out = await checkout()
  await broker.must('POST', `/accounts/${ref}/checkin`, { checkout_id: out.checkout_id })
  await until(
    'a change at check-in',
    async () =>
      (await history()).some(({ cause, outcome }) => cause === 'checkin' && outcome === 'changed') ||
      undefined,
  )
  const again = await checkout()
  expect(again.password).not.toBe(out.password)
  // A session waits for nothing, and is followed by a change too, once the checkout is returned.
  const before = (await broker.must<unknown[]>('GET', '/sessions?status=closed')).length
  expect(await session()).toBe('in\n')
  await bastion.closedSessions(before + 1)
  await broker.must('PUT', '/checkoutpolicies/default', { change_credentials_at_checkin: false })
  await broker.must('POST', `/accounts/${ref}/checkin`, { checkout_id: again.checkout_id })
  await until(
    'a change after the session',
    async () =>
      (await history()).some(({ cause, outcome }) => cause === 'session' && outcome === 'changed') ||
      undefined,
  )
}, 300_000)

test('is found again after a kill -9 in the middle of the change', async () => {
  for (const pause of [400, 1_500]) {
    await broker.must('POST', `/accounts/${ref}/change`, { wait: 0 })
    await sleep(pause)
    await broker.kill()
    const { dataFolder, ports } = broker
    broker = await startBroker({ dataFolder, ports })
    await until('the end of the change', async () => {
      const [last] = await history()
      return last?.outcome === 'changed' || undefined
    })
    expect(await session()).toBe('in\n')
  }
  const account = await broker.must<{ secret_state: string }>('GET', `/accounts/${ref}`)
  expect(account.secret_state).toBe('ok')
}, 300_000)
