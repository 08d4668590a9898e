/**
 * Attacks on the sign-in of RDP clients at a whole broker: guessing, by NLA and inside TLS, and discovering
 * user names.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import type { RdpSecurity } from '../../src/model/rdp-options.ts'
import { RDP_TICKET_TOKEN } from '../../src/model/rdp-ticket.ts'
import { eventsIn } from '../e2e/bastion.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { openTarget } from '../proxies/rdp/sessions.ts'
import { until } from '../until.ts'

const PASSWORD = 'ops1 password'
const run = promisify(execFile)

let broker: Broker
beforeAll(async () => {
  broker = await startBroker({ rdp: {} })
  for (const user_name of ['ops1', 'ops2']) {
    await broker.must('POST', '/users', { user_name, password: PASSWORD, profile: 'user' })
  }
})
afterAll(async () => await broker?.stop())

/** Returns 'in' if a desktop of the bastion's own appears, or else the error; by TLS that is the form. */
async function show(login: string, password: string, security: RdpSecurity): Promise<string> {
  try {
    const session = { port: broker.ports.rdp!, login, password, rdp: { security: [security] } }
    const redirection = { session: 0, routingToken: `${RDP_TICKET_TOKEN}\r\n` }
    const { stream, watch } = await openTarget(session, security === 'credssp' ? { redirection } : {})
    watch?.stop()
    stream.destroy()
    return 'in'
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the log entries of the next sign-ins by RDP, one unless `count` is set. */
async function outcomes(count: number, work: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const all = () =>
    eventsIn(broker.log()).filter(
      ({ event, protocol }) => protocol === 'RDP' && ['auth.success', 'auth.failure'].includes(String(event)),
    )
  const before = all().length
  await work()
  return await until(`${count} sign-ins by RDP`, () => {
    const found = all().slice(before)
    return found.length >= count ? found : undefined
  })
}

test('by NLA nobody learns who exists, what a login string is, or that a password is the right one', async () => {
  const told: string[] = []
  const events = await outcomes(5, async () => {
    told.push(await show('ops1', 'guessed 1', 'credssp'))
    told.push(await show('nobody', 'guessed 1', 'credssp'))
    told.push(await show('ops1:@@', 'guessed 1', 'credssp'))
    told.push(await show('ops1', PASSWORD, 'credssp'))
    told.push(await show('admin', '', 'credssp'))
  })
  expect(told[0]).toMatch(/the user name or the password is wrong \(0xc000006d\)$/)
  expect(told).toEqual(told.map(() => told[0]))
  expect(events.map(({ event }) => event)).toEqual(events.map(() => 'auth.failure'))
})

test('inside TLS a wrong password and an unknown user are one form', async () => {
  const [one, other] = await outcomes(2, async () => {
    expect(await show('ops1', 'guessed 1', 'tls')).toBe('in')
    await outcomes(1, async () => expect(await show('nobody', 'guessed 1', 'tls')).toBe('in'))
  })
  expect([one?.['event'], other?.['event']]).toEqual(['auth.failure', 'auth.failure'])
  const [right] = await outcomes(1, () => show('ops1', PASSWORD, 'tls'))
  expect(right).toMatchObject({ event: 'auth.success', user: 'ops1', method: 'password' })
})

test('guessing over RDP locks the user out here, at all doors, and nowhere else', async () => {
  for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) {
    const way = n % 2 === 0 ? 'tls' : 'credssp'
    await outcomes(1, () => show('ops2', `guessed ${n}`, way))
  }
  const [right] = await outcomes(1, () => show('ops2', PASSWORD, 'tls'))
  expect(right).toMatchObject({ event: 'auth.failure', user: 'ops2', reason: 'locked' })
  const atApi = async (from: string): Promise<string> => {
    const { stdout } = await run('curl', [
      ...['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--interface', from, '--insecure'],
      ...['-H', 'Content-Type: application/json', '-d', JSON.stringify({ user: 'ops2', password: PASSWORD })],
      `https://127.0.0.1:${broker.ports.https}/api/session`,
    ])
    return stdout
  }
  expect([await atApi('127.0.0.1'), await atApi('127.0.0.2')]).toEqual(['401', '200'])
  const [another] = await outcomes(1, () => show('ops1', PASSWORD, 'tls'))
  expect(another).toMatchObject({ event: 'auth.success', user: 'ops1' })
})
