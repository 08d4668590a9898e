/** A seat at a real gate: the names that its worker may use, and the end of its sessions with it. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FRAME } from '../../recordings/container/frames.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import type {
  AuthenticateAnswer,
  Gate,
  GateNotice,
  OpenAnswer,
  OpenSession,
} from '../../src/contract/gate.ts'
import type { GateMethod, GateRequest } from '../../src/contract/worker.ts'
import { FACTORY_CONNECTION_POLICIES } from '../../src/model/objects.ts'
import { SSH_OPTIONS } from '../../src/model/ssh-options.ts'
import { type Paced, RATES, WORKER_RATE } from '../../src/workers/request-pace.ts'
import { MAX_SIGN_INS, Seat } from '../../src/workers/seat.ts'
import { signInOf } from './sign-in.ts'
import { type GateWorld, gateWorld, HOST_KEY, OTHER_SOURCE, SOURCE, writing } from './world.ts'

let world: GateWorld
let seat: Seat
/** Of another worker. */
let foreign: Seat
let notices: GateNotice[]

beforeEach(async () => {
  world = await gateWorld()
  notices = []
  seat = new Seat(world.gate, (notice) => notices.push(notice))
  foreign = new Seat(world.gate, () => undefined)
  seat.arrived(SOURCE)
  foreign.arrived(OTHER_SOURCE)
})
afterEach(() => world.remove())

async function tokenAt(at: Seat, user: 'ops1' | 'ops2', source = SOURCE): Promise<string> {
  const answer = (await at.ask('authenticate', signInOf(user, source))) as AuthenticateAnswer
  if (answer.result !== 'accepted') throw new Error(answer.result)
  return answer.identity.token
}

async function openedAt(at: Seat, user: 'ops1' | 'ops2', source = SOURCE): Promise<OpenSession> {
  const identity = await tokenAt(at, user, source)
  const answer = (await at.ask('open', { identity, protocol: 'SSH', source })) as OpenAnswer
  if (answer.result !== 'opened') throw new Error(answer.result)
  return answer.session
}

/** Returns the kind of the error: a breach ends the worker, any other is an answer. */
const errorOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'answered',
    (error: Error) => error.name,
  )

const closing = (session: string): GateRequest<'close'> => ({
  session,
  result: 'success',
  bytesIn: 1,
  bytesOut: 2,
  rightsUsed: [],
})

/** The requests that name a session. */
const OF_SESSION = {
  hostKey: (session) => ({ session, key: new Uint8Array(3) }),
  event: (session) => ({ session, code: 'channel.open', fields: { subprotocol: 'SSH_SHELL' } }),
  sign: (session) => ({ session, statement: new Uint8Array(64) }),
  beginRecording: (session) => ({ session, parts: [new Uint8Array(9)] }),
  appendRecording: (session) => ({ session, offset: 0, parts: [new Uint8Array(9)] }),
  endRecording: (session) => ({ session }),
  live: (session) => ({ session, frames: [] }),
  counted: (session) => ({ session, bytesIn: 1, bytesOut: 2 }),
  askCommand: (session) => ({ session, ask: 1, line: 'reboot', rule: 'reboot', screen: [] }),
  giveUpCommand: (session) => ({ session, ask: 1 }),
  close: closing,
} satisfies { [M in GateMethod]?: (session: string) => GateRequest<M> }
/** Those that name a sign-in. */
const OF_SIGN_IN = {
  targets: (identity) => ({ identity, protocol: 'SSH' }),
  open: (identity) => ({ identity, protocol: 'SSH', source: SOURCE }),
  denied: (identity) => ({ identity, protocol: 'SSH', what: 'x11-req', reason: 'no' }),
  withdraw: (identity) => ({ identity, approval: 'A' }),
  leave: (identity) => ({ identity }),
} satisfies { [M in GateMethod]?: (identity: string) => GateRequest<M> }

describe('the session of another worker', () => {
  test.each(Object.entries(OF_SESSION))(
    '%s for it is a breach, and does nothing',
    async (method, requestFor) => {
      const { id } = await openedAt(foreign, 'ops2', OTHER_SOURCE)
      const before = await world.codes()
      expect(await errorOf(seat.ask(method as GateMethod, requestFor(id)))).toBe('BreachError')
      expect(await world.codes()).toEqual(before)
      expect(world.gate.isRunning(id)).toBe(true)
    },
  )

  test.each(Object.entries(OF_SESSION))(
    '%s for one that nobody has is refused',
    async (method, requestFor) => {
      expect(await errorOf(seat.ask(method as GateMethod, requestFor('01ARZ3NDEKTSV4RRFFQ69G5FAV')))).toBe(
        'Error',
      )
    },
  )

  test('its notices reach its own worker only', async () => {
    const mine = await openedAt(seat, 'ops1')
    const { id } = await openedAt(foreign, 'ops2', OTHER_SOURCE)
    await world.gate.kill(id, 'suspicious', 'admin')
    await world.gate.kill(mine.id, 'suspicious', 'admin')
    expect(notices).toMatchObject([{ type: 'stop', session: mine.id }])
  })
})

describe('the sign-in of another worker', () => {
  test.each(Object.entries(OF_SIGN_IN))(
    '%s for it is a breach, and does nothing',
    async (method, requestFor) => {
      const token = await tokenAt(foreign, 'ops2', OTHER_SOURCE)
      const before = await world.codes()
      expect(await errorOf(seat.ask(method as GateMethod, requestFor(token)))).toBe('BreachError')
      expect(await world.codes()).toEqual(before)
      expect(world.gate.isSignedIn(token)).toBe(true)
    },
  )

  test.each(['targets', 'open', 'denied', 'withdraw'] as const)(
    '%s for one that nobody has is refused',
    async (method) => {
      expect(await errorOf(seat.ask(method, OF_SIGN_IN[method]('made-up')))).toBe('Error')
    },
  )

  test('leave for one that is gone is answered: it may have been withdrawn', async () => {
    const token = await tokenAt(seat, 'ops1')
    for (let times = 0; times < 2; times++)
      expect(await errorOf(seat.ask('leave', { identity: token }))).toBe('answered')
    expect(world.gate.isSignedIn(token)).toBe(false)
  })

  test('one more connection of the same user has its own', async () => {
    await tokenAt(foreign, 'ops1', OTHER_SOURCE)
    const token = await tokenAt(seat, 'ops1')
    expect(await errorOf(seat.ask('targets', OF_SIGN_IN.targets(token)))).toBe('answered')
  })

  test('answers to its challenge are a wrong answer, and leave it open', async () => {
    const gate = { ...seatGate(), authenticate: vi.fn(challenged) }
    const [mine, others] = [new Seat(gate, () => undefined), new Seat(gate, () => undefined)]
    for (const one of [mine, others]) one.arrived(SOURCE)
    const challenge = 'the challenge'
    await others.ask('authenticate', signInOf('ops1', SOURCE))
    const proof = { method: 'keyboard-interactive', challenge, answers: ['123456'] }
    expect(await mine.ask('authenticate', { ...signInOf('ops1', SOURCE), proof })).toEqual({
      result: 'rejected',
    })
    expect(gate.authenticate).toHaveBeenCalledTimes(1)
    await others.ask('authenticate', { ...signInOf('ops1', SOURCE), proof })
    expect(gate.authenticate).toHaveBeenCalledTimes(2)
    // Once.
    await others.ask('authenticate', { ...signInOf('ops1', SOURCE), proof })
    expect(gate.authenticate).toHaveBeenCalledTimes(3)
  })
})

async function challenged(): Promise<AuthenticateAnswer> {
  return { result: 'challenge', challenge: { id: 'the challenge', title: '', instructions: '', prompts: [] } }
}

/** A gate that fails at everything but what a test puts in its place. */
function seatGate() {
  const unexpected = () => Promise.reject(new Error('not expected'))
  const methods = [
    'authenticate',
    'targets',
    'open',
    'hostKey',
    'event',
    'denied',
    'sign',
    'close',
    'live',
    'counted',
    'askCommand',
    'giveUpCommand',
    'withdraw',
    'leave',
  ] as const
  const files = ['beginRecording', 'appendRecording', 'endRecording', 'abandon'] as const
  return {
    ...(Object.fromEntries([...methods, ...files].map((name) => [name, unexpected])) as unknown as Gate & {
      abandon: (id: string) => Promise<string>
    }),
    onNotice: () => () => undefined,
    isRunning: () => false,
    isSignedIn: () => false,
  }
}

describe('a connection that the worker was not given', () => {
  test.each([
    ['another address', { ...SOURCE, address: '192.0.2.99' }],
    ['another port', { ...SOURCE, port: SOURCE.port + 1 }],
    ["another worker's", OTHER_SOURCE],
  ])('%s: nobody signs in from there', async (_what, source) => {
    expect(await errorOf(seat.ask('authenticate', signInOf('ops1', source)))).toBe('Error')
    expect(await world.codes()).toEqual([])
  })

  test('nothing is opened from there', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const request = { identity, protocol: 'SSH', source: OTHER_SOURCE }
    expect(await errorOf(seat.ask('open', request))).toBe('Error')
    expect(world.gate.running).toBe(0)
  })

  test('it is one as soon as it is closed', async () => {
    seat.left(SOURCE)
    expect(await errorOf(seat.ask('authenticate', signInOf('ops1', SOURCE)))).toBe('Error')
  })

  test('a client that uses one port for two fronts has two connections', async () => {
    seat.arrived(SOURCE)
    seat.left(SOURCE)
    expect(await errorOf(seat.ask('authenticate', signInOf('ops1', SOURCE)))).toBe('answered')
    seat.left(SOURCE)
    expect(await errorOf(seat.ask('authenticate', signInOf('ops1', SOURCE)))).toBe('Error')
  })
})

describe('one credential for one proof', () => {
  const open = (identity: string) => seat.ask('open', { identity, protocol: 'SSH', source: SOURCE })

  /** Opens two sessions at a time by one sign-in. */
  const twoOf = async (identity: string): Promise<string[]> => {
    const answers = await Promise.all([open(identity), open(identity)])
    return (answers as Extract<OpenAnswer, { result: 'opened' }>[]).map(({ session }) => session.id)
  }

  const keyOf = (session: string) => seat.ask('hostKey', { session, key: HOST_KEY })
  const credentials = [{ type: 'password', password: 'root password' }]

  test('of two sessions by the same sign-in one has it; a third is denied, also when both are closed', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const sessions: string[] = []
    for (let n = 0; n < 2; n++) {
      const answer = (await open(identity)) as Extract<OpenAnswer, { result: 'opened' }>
      expect(answer).toMatchObject({ result: 'opened', session: { credentials: [] } })
      sessions.push(answer.session.id)
    }
    const keys = await Promise.all(sessions.map(keyOf))
    expect(keys).toEqual([
      { result: 'accepted', credentials },
      { result: 'refused', message: expect.stringContaining('sign in again') },
    ])
    for (const session of sessions) await seat.ask('close', closing(session))
    expect(await open(identity)).toMatchObject({ result: 'denied' })
    expect((await world.codes()).filter((code) => code === 'session.open')).toHaveLength(2)
  })

  test('an account without a credential hands out none, and gives the sign-in no second one', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const first = (await open(identity)) as Extract<OpenAnswer, { result: 'opened' }>
    const { accountId } = world
    const sealed = await world.store.accounts.sealedCredentials(accountId)
    await world.store.connectionPolicies.update(FACTORY_CONNECTION_POLICIES.SSH, {
      ssh: { ...SSH_OPTIONS, authenticationMethods: ['PASSWORD_VAULT', 'PUBKEY_AGENT_FORWARDING'] },
    })
    await world.store.accounts.setSealedCredentials(accountId, [])
    const empty = (await open(identity)) as Extract<OpenAnswer, { result: 'opened' }>
    await world.store.accounts.setSealedCredentials(accountId, sealed)
    expect(await keyOf(first.session.id)).toEqual({ result: 'accepted', credentials })
    expect(await keyOf(empty.session.id)).toEqual({ result: 'accepted', credentials: [] })
    expect(await open(identity)).toMatchObject({ result: 'denied' })
  })

  test('a session that ends before its host key is accepted costs nothing', async () => {
    const identity = await tokenAt(seat, 'ops1')
    for (let n = 0; n < 2; n++) {
      const answer = (await open(identity)) as Extract<OpenAnswer, { result: 'opened' }>
      await seat.ask('close', closing(answer.session.id))
    }
    const last = (await open(identity)) as Extract<OpenAnswer, { result: 'opened' }>
    expect(await keyOf(last.session.id)).toEqual({ result: 'accepted', credentials })
  })

  test('a session that would get none has no host key judged: it pins and offers none', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const [first, second] = await twoOf(identity)
    const falseKey = Buffer.from(HOST_KEY)
    falseKey.fill(9, falseKey.length - 32)
    const keys = await Promise.all([keyOf(first!), seat.ask('hostKey', { session: second!, key: falseKey })])
    expect(keys).toMatchObject([{ result: 'accepted', credentials }, { result: 'refused' }])
    expect((await world.codes()).filter((code) => code.startsWith('hostkey.'))).toEqual(['hostkey.new'])
  })

  test('a second key of a session that is being judged gives no claim up', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const handed = []
    for (const session of await twoOf(identity)) {
      const both = [keyOf(session), seat.ask('hostKey', { session, key: new Uint8Array(3) })]
      handed.push(...(await Promise.all(both)))
    }
    expect(handed.filter((answer) => 'credentials' in (answer as object))).toEqual([
      { result: 'accepted', credentials },
    ])
  })

  test('a key that is refused costs nothing', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const answer = (await open(identity)) as Extract<OpenAnswer, { result: 'opened' }>
    const session = answer.session.id
    expect(await seat.ask('hostKey', { session, key: new Uint8Array(3) })).toMatchObject({
      result: 'refused',
    })
    expect(await keyOf(session)).toEqual({ result: 'accepted', credentials })
  })

  test('no target but that of the user is listed or opened', async () => {
    const identity = await tokenAt(seat, 'ops1')
    expect(await seat.ask('targets', { identity, protocol: 'SSH' })).toMatchObject({
      targets: [{ target: 'root@local:srv1:ssh' }],
      total: 1,
    })
    const request = { identity, protocol: 'SSH', source: SOURCE, target: 'root@local:srv2:ssh' }
    expect(await seat.ask('open', request)).toMatchObject({ result: 'denied' })
  })
})

describe('events', () => {
  test.each([
    ['who acted', 'command', { object: 'ls', user: 'admin' }],
    ['from where', 'command', { object: 'ls', client_ip: '203.0.113.9' }],
    ['of which session', 'command', { object: 'ls', session: 'S' }],
    ['by a code of the broker', 'auth.success', { user: 'admin' }],
    ['by no code', 'toString', {}],
    ['by a field of every object', 'command', JSON.parse('{"object":"ls","__proto__":{"user":"admin"}}')],
  ])('saying %s is a breach', async (_what, code, fields) => {
    const { id } = await openedAt(seat, 'ops1')
    expect(await errorOf(seat.ask('event', { session: id, code, fields }))).toBe('BreachError')
    expect((await world.codes()).slice(2)).toEqual(['session.kill'])
  })

  test('an audit log that cannot be written is no breach', async () => {
    const { id } = await openedAt(seat, 'ops1')
    vi.spyOn(world.store.audit, 'append').mockRejectedValue(new Error('disk full'))
    const request = { session: id, code: 'channel.open', fields: { subprotocol: 'SSH_SHELL' } }
    expect(await errorOf(seat.ask('event', request))).toBe('Error')
  })
})

describe('when the worker ends', () => {
  test('its sessions are closed with the reason and sealed, and those of others run on', async () => {
    const mine = await openedAt(seat, 'ops1')
    const theirs = await openedAt(foreign, 'ops2', OTHER_SOURCE)
    const writer = await writing(gateOf(seat), mine)
    writer.write(FRAME.channelOpen, 0, Buffer.from('{"kind":"shell"}'))
    await writer.flush()
    expect(seat.sessions).toBe(1)
    const { closed, failures } = await seat.close('the session worker was ended by SIGKILL')
    expect(failures).toEqual([])
    expect(closed).toEqual([expect.stringContaining(`session ${mine.id} of ops1`)])
    expect(await world.store.sessions.find(mine.id)).toMatchObject({
      result: 'lost',
      reason: expect.stringContaining('the session worker was ended by SIGKILL'),
      recording: { state: 'recovered' },
    })
    expect((await findRecording(world.recordings.root, mine.id))?.state).toBe('recovered')
    expect(world.gate.isRunning(mine.id)).toBe(false)
    expect(world.gate.isRunning(theirs.id)).toBe(true)
    expect((await world.store.sessions.find(theirs.id))?.end).toBeUndefined()
    await writer.close({ result: 'failure' }).catch(() => undefined)
  })

  test('its sign-ins and challenges are forgotten, and requests are refused', async () => {
    const token = await tokenAt(seat, 'ops1')
    const others = await tokenAt(foreign, 'ops2', OTHER_SOURCE)
    await seat.close('died')
    expect(world.gate.isSignedIn(token)).toBe(false)
    expect(world.gate.isSignedIn(others)).toBe(true)
    expect(await errorOf(seat.ask('authenticate', signInOf('ops1', SOURCE)))).toBe('Error')
    expect(await errorOf(seat.ask('targets', OF_SIGN_IN.targets(others)))).toBe('Error')
  })

  test('a session that is being opened is closed as soon as it is open', async () => {
    const identity = await tokenAt(seat, 'ops1')
    const opening = seat.ask('open', { identity, protocol: 'SSH', source: SOURCE })
    const { closed } = await seat.close('died')
    expect(await opening).toMatchObject({ result: 'opened' })
    expect(closed).toHaveLength(1)
    expect(world.gate.running).toBe(0)
    const { items } = await world.store.sessions.list({})
    expect(items).toMatchObject([{ result: 'lost', reason: expect.stringContaining('died') }])
  })

  test('a sign-in that is being judged is forgotten as soon as it is one', async () => {
    const signing = seat.ask('authenticate', signInOf('ops1', SOURCE))
    await seat.close('died')
    const { identity } = (await signing) as Extract<AuthenticateAnswer, { result: 'accepted' }>
    expect(world.gate.isSignedIn(identity.token)).toBe(false)
  })

  test('a session that is being closed is closed once, as it said', async () => {
    const { id } = await openedAt(seat, 'ops1')
    const request = seat.ask('close', closing(id))
    const { closed } = await seat.close('died')
    await request
    expect(closed).toEqual([])
    expect((await world.codes()).filter((code) => code === 'session.close')).toHaveLength(1)
    expect(await world.store.sessions.find(id)).toMatchObject({ result: 'success' })
  })

  test('a session that cannot be accounted for is reported, and the others are closed', async () => {
    const mine = await openedAt(seat, 'ops1')
    await openedAt(seat, 'ops2')
    const abandon = world.gate.abandon.bind(world.gate)
    vi.spyOn(world.gate, 'abandon').mockImplementation((id, reason) =>
      id === mine.id ? Promise.reject(new Error('disk full')) : abandon(id, reason),
    )
    const { closed, failures } = await seat.close('died')
    expect(closed).toHaveLength(1)
    expect(failures).toEqual([new Error('disk full')])
  })

  /** A seat that does not wait for requests in progress. */
  function hasty(): Seat {
    const made = new Seat(world.gate, () => undefined, 0)
    made.arrived(SOURCE)
    return made
  }

  test('a disk that hangs holds up neither its end nor that of its sessions', {
    timeout: 300_000,
  }, async () => {
    const mine = await openedAt(seat, 'ops1')
    vi.spyOn(world.gate, 'appendRecording').mockImplementation(() => new Promise(() => undefined))
    void seat.ask('appendRecording', { session: mine.id, offset: 0, parts: [new Uint8Array(4)] })
    const { closed } = await seat.close('died')
    expect(closed).toHaveLength(1)
    expect(world.gate.running).toBe(0)
  })

  test('what is opened later still is ended at once', async () => {
    const seat = hasty()
    const identity = await tokenAt(seat, 'ops1')
    const disk = Promise.withResolvers<void>()
    const prepare = world.recordings.prepare.bind(world.recordings)
    vi.spyOn(world.recordings, 'prepare').mockImplementation(async (...given) => {
      await disk.promise
      return await prepare(...given)
    })
    const opening = seat.ask('open', { identity, protocol: 'SSH', source: SOURCE })
    await seat.close('died')
    disk.resolve()
    await opening
    expect(world.gate.running).toBe(0)
    const { items } = await world.store.sessions.list({})
    expect(items).toMatchObject([{ result: 'lost', reason: expect.stringContaining('died') }])
  })

  test('its notices come no more', async () => {
    const { id } = await openedAt(seat, 'ops1')
    const closing = seat.close('died')
    await world.gate.kill(id, 'suspicious', 'admin')
    await closing
    expect(notices).toEqual([])
  })
})

describe('the pace', () => {
  /** A gate at which everything is done at once, and the number of requests that reached it. */
  function fastGate() {
    const reached = { event: 0, authenticate: 0, open: 0, hostKey: 0, serviceTicket: 0 }
    let next = 0
    const gate = {
      ...seatGate(),
      isRunning: () => true,
      isSignedIn: () => true,
      authenticate: async (): Promise<AuthenticateAnswer> => {
        reached.authenticate++
        const identity = { token: `token ${next++}`, user: 'ops1', displayName: '', hasTarget: true }
        return { result: 'accepted', identity } as unknown as AuthenticateAnswer
      },
      open: async (_request: unknown, onRunning?: (session: string) => void) => {
        reached.open++
        onRunning?.(`session ${next}`)
        return { result: 'opened', session: { id: `session ${next++}` } } as unknown as OpenAnswer
      },
      event: async () => void reached.event++,
      hostKey: async () => {
        reached.hostKey++
        return { result: 'accepted' } as const
      },
      serviceTicket: async () => {
        reached.serviceTicket++
        return { result: 'failed', message: '' } as const
      },
      abandon: async () => '',
      leave: async () => undefined,
    }
    const fast = new Seat(gate, () => undefined)
    fast.arrived(SOURCE)
    return { fast, reached }
  }

  /** Asks one after the other for that long. Returns how many were answered in the time. */
  async function asked(milliseconds: number, ask: () => Promise<unknown>): Promise<number> {
    const end = performance.now() + milliseconds
    let done = 0
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, milliseconds, 'late'))
    while (performance.now() < end) {
      if ((await Promise.race([ask(), late])) === 'late') break
      done++
    }
    return done
  }

  const eventOf = (session: string, object: string) => ({ session, code: 'command', fields: { object } })

  test('events of a session wait, and no more are written than its rate has', async () => {
    const { fast } = fastGate()
    const { id } = await openedAt(fast, 'ops1')
    const { burst, perSecond } = RATES.event
    const done = await asked(1_000, () => fast.ask('event', eventOf(id, 'ls')))
    expect(done).toBeGreaterThan(burst)
    expect(done).toBeLessThan(burst + 2 * perSecond)
    await fast.close('died')
  })

  test('a long event counts as many', async () => {
    const { fast } = fastGate()
    const { id } = await openedAt(fast, 'ops1')
    const { burst, perSecond } = RATES.event
    const long = 'x'.repeat(100_000)
    const done = await asked(500, () => fast.ask('event', eventOf(id, long)))
    expect(done).toBeGreaterThan(burst / 4)
    expect(done).toBeLessThan((burst + perSecond) / 2 + 1)
    await fast.close('died')
  })

  test('all sessions of a worker have a rate together', async () => {
    const { fast, reached } = fastGate()
    const signedIn = await Promise.all(Array.from({ length: 20 }, () => tokenAt(fast, 'ops1')))
    const ids = await Promise.all(
      signedIn.map(async (identity) => {
        const answer = await fast.ask('open', { identity, protocol: 'SSH', source: SOURCE })
        return (answer as Extract<OpenAnswer, { result: 'opened' }>).session.id
      }),
    )
    const { burst, perSecond } = WORKER_RATE
    await Promise.all(ids.map((id) => asked(1_000, () => fast.ask('event', eventOf(id, 'ls')))))
    expect(reached.event).toBeGreaterThan(burst / 2)
    expect(reached.event).toBeLessThan(burst + 2 * perSecond)
    await fast.close('died')
  })

  test.each<[Paced, (fast: Seat, identity: string, session: string) => Promise<unknown>]>([
    ['authenticate', (fast) => fast.ask('authenticate', signInOf('ops1', SOURCE))],
    ['open', (fast, identity) => fast.ask('open', { identity, protocol: 'SSH', source: SOURCE })],
    ['hostKey', (fast, _identity, session) => fast.ask('hostKey', { session, key: HOST_KEY })],
    ['serviceTicket', (fast, _identity, session) => fast.ask('serviceTicket', { session })],
  ])('%s has a burst, and waits then', async (paced, ask) => {
    const { fast, reached } = fastGate()
    const identity = await tokenAt(fast, 'ops1')
    const answer = await fast.ask('open', { identity, protocol: 'SSH', source: SOURCE })
    const session = (answer as Extract<OpenAnswer, { result: 'opened' }>).session.id
    await asked(400, () => ask(fast, identity, session))
    const { burst } = RATES[paced]
    expect(reached[paced as keyof typeof reached]).toBeGreaterThanOrEqual(burst)
    expect(reached[paced as keyof typeof reached]).toBeLessThan(burst + 3)
    await fast.close('died')
  })

  test('it cannot be begun anew by giving up a name that is no sign-in', async () => {
    const { fast } = fastGate()
    const { id } = await openedAt(fast, 'ops1')
    const { burst, perSecond } = RATES.event
    const done = await asked(600, async () => {
      await fast.ask('event', eventOf(id, 'ls'))
      await errorOf(fast.ask('leave', { identity: id }))
    })
    expect(done).toBeLessThan(burst + perSecond)
    await fast.close('died')
  })

  test('a worker holds no more sign-ins than thousands of clients have', async () => {
    const { fast } = fastGate()
    const { burst } = RATES.authenticate
    for (let port = 0; port < MAX_SIGN_INS / burst; port++) {
      const source = { ...OTHER_SOURCE, port }
      fast.arrived(source)
      for (let n = 0; n < burst; n++) await fast.ask('authenticate', signInOf('ops1', source))
    }
    await expect(fast.ask('authenticate', signInOf('ops1', SOURCE))).rejects.toThrow('too many sign-ins')
    await fast.ask('leave', { identity: 'token 0' })
    await fast.ask('authenticate', signInOf('ops1', SOURCE))
    await fast.close('died')
  })

  test('what waits when the worker dies is dropped', async () => {
    const { fast, reached } = fastGate()
    const { id } = await openedAt(fast, 'ops1')
    await asked(200, () => fast.ask('hostKey', { session: id, key: HOST_KEY }))
    await fast.close('died')
    expect(reached.hostKey).toBe(RATES.hostKey.burst)
  })

  test('two events of a session at a time are a breach', async () => {
    const { id } = await openedAt(seat, 'ops1')
    const both = await Promise.all([
      errorOf(seat.ask('event', eventOf(id, 'ls'))),
      errorOf(seat.ask('event', eventOf(id, 'id'))),
    ])
    expect(both).toEqual(['answered', 'BreachError'])
  })
})

/** Returns the gate as the worker of that seat has it. */
function gateOf(at: Seat): Gate {
  return new Proxy({} as Gate, {
    get: (_none, method: GateMethod) => (request: unknown) => at.ask(method, request),
  })
}
