/**
 * A failed sign-in reveals nothing: one error for every reason, in text and in time; and a client that
 * guesses passwords is locked out, without locking out others.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ADMIN_PASSWORD } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import {
  AUTH,
  authRequest,
  connectToSignIn,
  interactiveAnswer,
  interactiveRequest,
  methodsOf,
  passwordRequest,
} from './raw.ts'
import { PEERS } from './setting.ts'

const ROUNDS = 20
const PASSWORD = 'the right password'

describeWithPeers('credentials', PEERS, () => {
  let bastion: Bastion
  let port: number

  beforeAll(async () => {
    bastion = await startBastion()
    port = bastion.broker.ports.ssh
    const people: [string, Record<string, unknown>][] = [
      ['disabled', { is_disabled: true }],
      ['expired', { expiration_date: '2020-01-01T00:00:00Z' }],
      ['elsewhere', { ip_source: ['192.0.2.0/24'] }],
      ['keyonly', { user_auths: ['local_sshkey'] }],
      ['locked', {}],
      ['victim', {}],
    ]
    for (const [name, fields] of people) {
      await bastion.broker.must('POST', '/users', {
        user_name: name,
        display_name: name,
        email: `${name}@example.com`,
        profile: 'user',
        user_auths: ['local_password'],
        password: PASSWORD,
        ...fields,
      })
    }
  })
  afterAll(() => bastion.stop())

  interface Answer {
    /** The client's output, without the times. */
    seen: string
    milliseconds: number
  }

  type Attempt = (from: string, user: string, password: string) => Promise<Answer>

  const bySsh: Attempt = async (from, user, password) => {
    const client = await connectToSignIn({ port, from })
    const begin = performance.now()
    client.send(passwordRequest(user, password))
    const answer = await client.next(AUTH.success, AUTH.failure, AUTH.banner)
    const milliseconds = performance.now() - begin
    client.destroy()
    return { seen: answer[0] === AUTH.failure ? methodsOf(answer) : `message ${answer[0]}`, milliseconds }
  }

  const byPrompt: Attempt = async (from, user, password) => {
    const client = await connectToSignIn({ port, from })
    client.send(interactiveRequest(user))
    const question = await client.next(AUTH.infoRequest, AUTH.failure, AUTH.banner)
    const begin = performance.now()
    client.send(interactiveAnswer(password))
    const answer = await client.next(AUTH.success, AUTH.failure, AUTH.banner)
    const milliseconds = performance.now() - begin
    client.destroy()
    const last = answer[0] === AUTH.failure ? methodsOf(answer) : `message ${answer[0]}`
    return { seen: `${question.toString('latin1')} ${last}`, milliseconds }
  }

  const byApi: Attempt = (from, user, password) =>
    new Promise((resolve, reject) => {
      const begin = performance.now()
      const sent = request(
        {
          host: '127.0.0.1',
          port: bastion.broker.ports.https,
          localAddress: from,
          method: 'POST',
          path: '/api/session',
          agent: false,
          ca: readFileSync(join(bastion.broker.dataFolder, 'tls', 'cert.pem')),
          checkServerIdentity: () => undefined,
          headers: { 'content-type': 'application/json' },
        },
        (response) => {
          let text = ''
          response.on('data', (data: Buffer) => {
            text += data
          })
          response.on('error', reject)
          response.on('end', () => {
            const headers = Object.keys(response.headers).sort().join(' ')
            const seen = `${response.statusCode} ${headers} ${response.statusCode === 401 ? text : ''}`
            resolve({ seen, milliseconds: performance.now() - begin })
          })
        },
      )
      sent.on('error', reject)
      sent.end(JSON.stringify({ user, password }))
    })

  /**
   * Returns the probability that a time of `a` is below one of `b` (Mann-Whitney's U): 0.5 for the same
   * distribution, however noisy the machine; its standard deviation at 20 each is 0.09.
   */
  function isFaster(a: readonly number[], b: readonly number[]): number {
    let wins = 0
    for (const x of a) for (const y of b) wins += x < y ? 1 : x === y ? 0.5 : 0
    return wins / (a.length * b.length)
  }
  /** Four standard deviations from one half. */
  const SAME = { low: 0.14, high: 0.86 }

  const LOCKED_FROM = '127.3.0.1'

  async function lock(): Promise<void> {
    for (let n = 0; n < 10; n++) await bySsh(LOCKED_FROM, 'locked', 'wrong')
  }

  describe('one answer for every reason', () => {
    beforeAll(lock)

    /** The user, the password and the address: each round has its own address, so that none is locked out. */
    const kinds: Record<string, (round: number) => [from: string, user: string, password: string]> = {
      'a wrong password': (n) => [`127.4.${n}.1`, 'victim', 'wrong'],
      'an unknown user': (n) => [`127.4.${n}.2`, `nobody${n}`, PASSWORD],
      'a disabled user': (n) => [`127.4.${n}.3`, 'disabled', PASSWORD],
      'an expired user': (n) => [`127.4.${n}.4`, 'expired', PASSWORD],
      'a user from another network': (n) => [`127.4.${n}.5`, 'elsewhere', PASSWORD],
      'a user who has keys only': (n) => [`127.4.${n}.6`, 'keyonly', PASSWORD],
      'a user who is locked out': () => [LOCKED_FROM, 'locked', PASSWORD],
      'a name that looks like an id': (n) => [`127.4.${n}.7`, '01ARZ3NDEKTSV4RRFFQ69G5FAV', PASSWORD],
    }

    test.each([
      ['SSH, password', bySsh],
      ['SSH, keyboard-interactive', byPrompt],
      ['the API', byApi],
    ])(
      '%s: the same words and the same time',
      async (_, attempt) => {
        const times: Record<string, number[]> = {}
        const seen: Record<string, Set<string>> = {}
        for (let round = 0; round < ROUNDS; round++) {
          for (const [kind, who] of Object.entries(kinds)) {
            const answer = await attempt(...who(round))
            times[kind] = [...(times[kind] ?? []), answer.milliseconds]
            seen[kind] = (seen[kind] ?? new Set()).add(answer.seen)
          }
        }
        const words = [...(seen['a wrong password'] ?? [])]
        expect(words).toHaveLength(1)
        expect(words[0]).not.toMatch(/message|^200/)
        for (const kind of Object.keys(kinds)) expect([kind, ...(seen[kind] ?? [])]).toEqual([kind, ...words])
        const suspicious = Object.entries(times)
          .map(([kind, of]) => [kind, isFaster(of, times['a wrong password'] ?? [])] as const)
          .filter(([, faster]) => faster < SAME.low || SAME.high < faster)
        expect(suspicious).toEqual([])
      },
      120_000,
    )

    test('and the comparison would notice an answer without the work', async () => {
      const [quick, slow]: [number[], number[]] = [[], []]
      for (let round = 0; round < ROUNDS; round++) {
        const client = await connectToSignIn({ port, from: `127.5.${round}.1` })
        const begin = performance.now()
        client.send(authRequest('victim', 'none'))
        await client.next(AUTH.failure)
        quick.push(performance.now() - begin)
        client.destroy()
        slow.push((await bySsh(`127.5.${round}.2`, 'victim', 'wrong')).milliseconds)
      }
      expect(isFaster(quick, slow)).toBeGreaterThan(SAME.high)
    })

    test('the audit log knows the reasons apart', async () => {
      const reasons = new Set((await bastion.events('auth.failure')).map(({ reason }) => reason))
      for (const reason of ['wrong_password', 'unknown_user', 'disabled', 'expired', 'locked']) {
        expect([...reasons]).toContain(reason)
      }
    })
  })

  describe('lock-out', () => {
    const good = async (from: string, attempt: Attempt, user: string, password: string): Promise<boolean> =>
      /^200|message 52/.test((await attempt(from, user, password)).seen)
    const events = async (from: string): Promise<unknown[]> =>
      (await bastion.events('auth.locked')).filter(({ client_ip }) => client_ip === from)

    test('ten wrong passwords lock that name from that address, on SSH and on the API, and nobody else', async () => {
      const from = '127.6.0.1'
      expect(await good(from, bySsh, 'victim', PASSWORD)).toBe(true)
      for (let n = 0; n < 5; n++) await bySsh(from, 'victim', 'wrong')
      for (let n = 0; n < 4; n++) await byApi(from, 'VICTIM', 'wrong')
      expect(await events(from)).toEqual([])
      await bySsh(from, 'victim', 'wrong')
      // the log is written after the response
      const locked = await until('the lock-out', async () => {
        const found = await events(from)
        return found.length > 0 ? found : undefined
      })
      expect(locked).toEqual([expect.objectContaining({ user: 'victim', client_ip: from })])
      expect(await good(from, bySsh, 'victim', PASSWORD)).toBe(false)
      expect(await good(from, byPrompt, 'victim', PASSWORD)).toBe(false)
      expect(await good(from, byApi, 'victim', PASSWORD)).toBe(false)
      expect(await good('127.6.0.2', bySsh, 'victim', PASSWORD)).toBe(true)
      expect(await good('127.6.0.2', byApi, 'victim', PASSWORD)).toBe(true)
      // Other users can sign in from there, too.
      expect(await good(from, byApi, 'admin', ADMIN_PASSWORD)).toBe(true)
      const login = bastion.login({ options: [`BindAddress=${from}`] })
      expect((await ssh(bastion.home, login, ['true'])).code).toBe(0)
    })

    test('the administrator cannot be locked out by name', async () => {
      for (let n = 0; n < 12; n++) await byApi('127.6.1.1', 'admin', 'wrong')
      for (let n = 0; n < 12; n++) await bySsh('127.6.1.2', 'admin', 'wrong')
      expect(await good('127.6.1.1', byApi, 'admin', ADMIN_PASSWORD)).toBe(false)
      expect(await good('127.6.1.2', byApi, 'admin', ADMIN_PASSWORD)).toBe(false)
      expect(await good('127.6.1.3', byApi, 'admin', ADMIN_PASSWORD)).toBe(true)
    })

    test('many at the same time are no way around', async () => {
      const from = '127.6.2.1'
      await Promise.all(Array.from({ length: 30 }, () => bySsh(from, 'victim', 'wrong')))
      const wrong = async () =>
        (await bastion.events('auth.failure')).filter(
          ({ client_ip, reason }) => client_ip === from && reason === 'wrong_password',
        )
      // the log is written after the responses
      await until('it is locked', async () => (await events(from)).length > 0 || undefined)
      expect(await wrong()).toHaveLength(10)
      expect(await events(from)).toHaveLength(1)
      expect(await good(from, bySsh, 'victim', PASSWORD)).toBe(false)
    })

    test('an address that tries many names is locked out as a whole', async () => {
      const from = '127.6.3.1'
      for (let n = 0; n < 50; n++) await bySsh(from, `name${n}`, 'wrong')
      await until('it is locked', async () => (await events(from)).length > 0 || undefined)
      expect(await events(from)).toHaveLength(1)
      expect(await good(from, bySsh, 'victim', PASSWORD)).toBe(false)
      expect(await good('127.6.3.2', bySsh, 'victim', PASSWORD)).toBe(true)
    }, 300_000)
  })
})
