/** The sign-in at a terminal: its questions, its requests to the gate, and its refusals. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_AUTH_TRIES } from '../../../proxies/session/limits.ts'
import type { TerminalClient } from '../../../proxies/terminal/client.ts'
import {
  MAX_AHEAD,
  MAX_LINES,
  type TerminalArrival,
  TerminalSignIn,
} from '../../../proxies/terminal/sign-in.ts'
import type { AuthenticateAnswer, AuthenticateRequest, Gate } from '../../../src/contract/gate.ts'
import { cut } from '../stream-events.ts'

const IDENTITY = { token: 'the token', user: 'ops1', displayName: 'ops1', hasTarget: true }
const ACCEPTED: AuthenticateAnswer = { result: 'accepted', identity: IDENTITY }
const CHALLENGE: AuthenticateAnswer = {
  result: 'challenge',
  challenge: {
    id: 'round 2',
    title: 'Second factor',
    instructions: '',
    prompts: [
      { text: 'Code: ', echo: true },
      { text: 'PIN: ', echo: false },
    ],
  },
}
const REFUSED = { result: 'denied' } as unknown as AuthenticateAnswer

class FakeClient {
  onTyped: TerminalClient['onTyped']
  onClosed: TerminalClient['onClosed']
  paused = false
  closed = false
  shown = ''

  show(output: string): void {
    this.shown += output
  }
  close(): void {
    this.closed = true
  }
  type(text: string | Uint8Array): void {
    this.onTyped?.(Buffer.from(text as Uint8Array))
  }
  /** Closes the connection. */
  vanish(): void {
    this.closed = true
    this.onClosed?.()
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Begins a sign-in without input; the gate returns these answers in turn, and refuses any further request.
 */
async function begin(answers: (AuthenticateAnswer | Error)[], user?: string) {
  const client = new FakeClient()
  const asked: AuthenticateRequest[] = []
  const left: string[] = []
  const gate = {
    async authenticate(request: AuthenticateRequest) {
      // No name here is of a person that signs in in a browser.
      if (request.proof.method === 'browser') return REFUSED
      asked.push(request)
      await settle()
      const answer = answers.shift() ?? REFUSED
      if (answer instanceof Error) throw answer
      return answer
    },
    async leave({ identity }: { identity: string }) {
      left.push(identity)
    },
  } as unknown as Gate
  const source = { address: '192.0.2.1', port: 4000 }
  const signIn = new TerminalSignIn({
    gate,
    protocol: 'TELNET',
    source,
    client: client as unknown as TerminalClient,
    onWaiting: () => undefined,
  })
  const state: { result?: TerminalArrival | undefined; isOver: boolean } = { isOver: false }
  const run = signIn.run(user).then((result) => {
    state.result = result
    state.isOver = true
  })
  await settle()
  const type = async (text: string | Uint8Array) => {
    client.type(text)
    for (let turn = 0; turn < 5; turn++) await settle()
  }
  return { client, asked, left, state, type, run }
}

describe('the questions', () => {
  test('are login and password, which is not shown', async () => {
    const { client, type, asked, state } = await begin([ACCEPTED])
    await type('ops1+root@srv1\r')
    await type('the password\r')
    expect(client.shown).toBe('login: ops1+root@srv1\r\nPassword: \r\n')
    expect(asked).toEqual([
      {
        protocol: 'TELNET',
        source: { address: '192.0.2.1', port: 4000 },
        login: 'ops1+root@srv1',
        proof: { method: 'password', password: 'the password' },
      },
    ])
    expect(state.result).toEqual({ identity: IDENTITY, ahead: Buffer.alloc(0) })
    expect(client.closed).toBe(false)
  })

  test('leave out the login that the client has named, once', async () => {
    const { client, type, asked } = await begin([REFUSED, ACCEPTED], 'ops1\x1b')
    await type('wrong\r')
    await type('ops2\r')
    await type('right\r')
    expect(client.shown).toBe(
      'login: ops1?\r\nPassword: \r\nLogin incorrect\r\nlogin: ops2\r\nPassword: \r\n',
    )
    expect(asked.map(({ login }) => login)).toEqual(['ops1\x1b', 'ops2'])
  })

  test('come again for an empty line, and an empty password leads back to the login', async () => {
    const { client, type, asked } = await begin([])
    await type('\r\rops1\r\r')
    expect(client.shown).toBe('login: \r\nlogin: \r\nlogin: ops1\r\nPassword: \r\nlogin: ')
    expect(asked).toEqual([])
  })

  test('go on with those of a further factor, each with its echo', async () => {
    const { client, type, asked, state } = await begin([CHALLENGE, ACCEPTED], 'ops1')
    await type('secret\r')
    await type('123456\r')
    await type('4711\r')
    expect(client.shown).toBe('login: ops1\r\nPassword: \r\nSecond factor\r\nCode: 123456\r\nPIN: \r\n')
    expect(asked.at(-1)?.proof).toEqual({
      method: 'keyboard-interactive',
      challenge: 'round 2',
      answers: ['123456', '4711'],
    })
    expect(state.result?.identity).toEqual(IDENTITY)
  })

  test('are answered by what was typed ahead, and the rest is the target’s as it is', async () => {
    const { client, type, state } = await begin([ACCEPTED])
    await type(Buffer.from('ops1\rpw\rl\xff\rs', 'latin1'))
    expect(state.result?.ahead).toEqual(Buffer.from('l\xff\rs', 'latin1'))
    expect(client.shown).not.toContain('pw')
  })

  test('take a character whose bytes come apart', async () => {
    const { type, asked } = await begin([ACCEPTED], 'ops1')
    for (const byte of Buffer.from('zwölf €')) await type(Uint8Array.of(byte))
    await type('\r')
    expect(asked[0]?.proof).toMatchObject({ password: 'zwölf €' })
  })
})

describe('it ends', () => {
  test('after so many refusals, with a word', async () => {
    const { client, type, asked, state } = await begin([])
    for (let n = 0; n <= MAX_AUTH_TRIES; n++) await type('ops1\rwrong\r')
    expect(asked).toHaveLength(MAX_AUTH_TRIES)
    expect(client.shown).toMatch(/too many failed attempts, try again with a new connection\r\n$/)
    expect([state.isOver, state.result, client.closed]).toEqual([true, undefined, true])
  })

  test('after so many lines that say nothing', async () => {
    const { client, type, asked, state } = await begin([])
    await type('\r'.repeat(MAX_LINES - 1))
    expect(state.isOver).toBe(false)
    await type('\r')
    expect([state.isOver, client.closed, asked.length]).toEqual([true, true, 0])
  })

  test.each(['\x03', '\x04'])('when the person leaves by %j', async (key) => {
    const { client, type, state } = await begin([], 'ops1')
    await type(key)
    expect([state.isOver, state.result, client.closed]).toEqual([true, undefined, true])
  })

  test('where the gate fails, without its words', async () => {
    const { client, type, state } = await begin([new Error('database is locked')], 'ops1')
    await type('pw\r')
    expect(client.shown).not.toContain('database')
    expect(client.shown).toMatch(/sallyport: .+\r\n$/)
    expect([state.isOver, state.result, client.closed]).toEqual([true, undefined, true])
  })

  test('with a login that cannot be one: the reason is shown', async () => {
    const answer: AuthenticateAnswer = { result: 'malformed', message: 'the login holds a tab' }
    const { client, type } = await begin([answer], 'a\tb')
    await type('pw\r')
    expect(client.shown).toContain('sallyport: the login holds a tab\r\nlogin: ')
  })

  test('while nobody can sign in: the reason is shown, and the connection ends', async () => {
    const answer: AuthenticateAnswer = { result: 'unavailable', message: 'the database is away' }
    const { client, type, state } = await begin([answer], 'ops1')
    await type('pw\r')
    expect(client.shown).toMatch(/sallyport: the database is away\r\n$/)
    expect([state.isOver, state.result, client.closed]).toEqual([true, undefined, true])
  })
})

describe('a client that vanishes', () => {
  test('at a question ends it', async () => {
    const { client, state } = await begin([])
    client.vanish()
    await settle()
    expect([state.isOver, state.result]).toEqual([true, undefined])
  })

  test('while the gate judges leaves no identity behind', async () => {
    const { client, state, left } = await begin([ACCEPTED], 'ops1')
    client.type('pw\r')
    await Promise.resolve()
    client.vanish()
    for (let turn = 0; turn < 5; turn++) await settle()
    expect([state.isOver, state.result, left]).toEqual([true, undefined, [IDENTITY.token]])
  })

  test.each([['while the gate judges'], ['at its questions']])(
    'before a further factor, %s, leaves no challenge behind',
    async (when) => {
      const { client, state, left } = await begin([CHALLENGE], 'ops1')
      client.type('pw\r')
      if (when === 'at its questions') for (let turn = 0; turn < 5; turn++) await settle()
      else await Promise.resolve()
      client.vanish()
      for (let turn = 0; turn < 5; turn++) await settle()
      expect([state.isOver, state.result, left]).toEqual([true, undefined, ['round 2']])
    },
  )
})

test('what is typed while nothing is asked is not read beyond a bound', async () => {
  const { client, type } = await begin([], 'ops1')
  client.type('pw\r')
  client.type('x'.repeat(MAX_AHEAD - 1))
  expect(client.paused).toBe(false)
  client.type('x')
  expect(client.paused).toBe(true)
  // The next question reads it.
  await type('')
  expect(client.paused).toBe(false)
})

test('whatever is typed in whatever pieces: the same questions, the same answers, nothing of a secret', async () => {
  const answer = fc.constantFrom(ACCEPTED, CHALLENGE, REFUSED, new Error('broken'))
  const key = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('ops1', 'geheim\r', '\r', '\n', 'ö', '€') },
    { weight: 1, arbitrary: fc.constantFrom('\x03', '\x04', '\x7f', '\x15', '\x1b[A', '\x1b', '\0') },
    { weight: 1, arbitrary: fc.string({ maxLength: 4 }) },
  )
  const results = new Set<string>()
  const outcome = async (answers: (AuthenticateAnswer | Error)[], pieces: Uint8Array[]) => {
    const { client, asked, left, state, run } = await begin([...answers])
    // The bytes after the sign-in belong to the session.
    const later: Uint8Array[] = []
    for (const piece of pieces) {
      if (state.result) later.push(piece)
      else client.type(piece)
      await settle()
    }
    for (let turn = 0; turn < 4 * MAX_AUTH_TRIES; turn++) await settle()
    const isOpen = !state.isOver
    if (isOpen) {
      client.vanish()
      await run
    }
    expect(asked.length).toBeLessThanOrEqual(MAX_AUTH_TRIES)
    const { result } = state
    if (!result) expect(client.closed).toBe(true)
    results.add(result ? 'signed in' : isOpen ? 'asks' : 'ended')
    return {
      shown: client.shown,
      asked: asked.map(({ login, proof }) => ({ login, proof })),
      left,
      ahead: result && Buffer.concat([result.ahead, ...later]).toString('latin1'),
    }
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(answer, { maxLength: 8 }),
      fc.array(key, { maxLength: 40 }),
      fc.array(fc.nat(200), { maxLength: 10 }),
      async (answers, keys, places) => {
        const sent = Buffer.from(keys.join(''))
        const whole = await outcome(answers, [sent])
        expect(await outcome(answers, cut(sent, places))).toEqual(whole)
      },
    ),
    { numRuns: 300 },
  )
  expect(results).toEqual(new Set(['signed in', 'asks', 'ended']))
})
