/** The RDP proxy before a session: sign-in, questions, list of targets, refusals, and every end. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ERROR_INFO } from '../../../proxies/rdp/codec/session-pdus.ts'
import { DATA_PDU } from '../../../proxies/rdp/codec/share.ts'
import { MAX_AUTH_TRIES } from '../../../proxies/session/limits.ts'
import type { AuthenticateAnswer, AuthenticateRequest } from '../../../src/contract/gate.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { until } from '../../until.ts'
import { KEY, startWorld, type World, type WorldOptions } from './connection-world.ts'

const PASSWORD = 'Schlüssel & 1'
const WIN1 = 'root@local:win1:rdp'
const WIN2 = 'root@local:win2:rdp'
const CHALLENGE: AuthenticateAnswer = {
  result: 'challenge',
  challenge: {
    id: 'the challenge',
    title: 'Second factor',
    instructions: 'Look at your phone.',
    prompts: [{ text: 'Code:', echo: true }],
  },
}

let certificate: CertificateFiles
let world: World

beforeAll(async () => {
  certificate = await certificateFiles()
})
afterEach(() => world?.stop())
afterAll(() => certificate?.remove())

/** Accepts one user with one password, and a target if the login has a separator. */
async function judge({ login, proof }: AuthenticateRequest): Promise<AuthenticateAnswer> {
  if (!('password' in proof) || proof.password !== PASSWORD || !login.startsWith('ops1')) {
    return { result: 'rejected' }
  }
  const identity = { token: 'token', user: 'ops1', displayName: 'Ops', hasTarget: login.includes(':') }
  return { result: 'accepted', identity }
}

async function start(options: Partial<WorldOptions> = {}): Promise<void> {
  world = await startWorld({ certificate, authenticate: judge, ...options })
}

const asked = (count: number) => until(`${count} questions of the gate`, () => world.authenticated[count - 1])

describe('the sign-in', () => {
  test('with login and password that the client has sent is straight', async () => {
    await start({ targets: [WIN1] })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees(WIN1)
    expect(world.authenticated).toEqual([
      {
        protocol: 'RDP',
        source: { address: '127.0.0.1', port: expect.any(Number) },
        login: 'ops1',
        proof: { method: 'password', password: PASSWORD },
      },
    ])
  })

  test.each([
    ['', 'ops1:root@win1', 'ops1:root@win1'],
    ['CORP', 'ops1+root@win1', 'CORP\\ops1+root@win1'],
    ['', 'CORP\\ops1', 'CORP\\ops1'],
    ['ops1:CORP', 'admin@win1', 'ops1:CORP\\admin@win1'],
    ['CORP', 'ops1:CORP\\admin@win1', 'CORP\\ops1:CORP\\admin@win1'],
    ['', 'ops1%40corp:ro%3Aot@win1', 'ops1%40corp:ro%3Aot@win1'],
    ['', 'ops1@corp.example', 'ops1@corp.example'],
  ])('domain "%s" and login "%s" are the login string %s', async (domain, login, expected) => {
    await start()
    await world.visit({ domain, login, password: PASSWORD })
    expect((await asked(1)).login).toBe(expected)
  })

  test('without a password is by the form, in which the login is there', async () => {
    await start({ targets: [WIN1] })
    const person = await world.visit({ login: 'ops1' })
    expect(await person.sees('Sign in')).toContain('ops1')
    expect(world.authenticated).toEqual([])
    person.type(PASSWORD)
    person.press(KEY.enter)
    await person.sees(WIN1)
    expect(await asked(1)).toMatchObject({ login: 'ops1', proof: { password: PASSWORD } })
  })

  test('without anything is by the form', async () => {
    await start({ targets: [WIN1] })
    const person = await world.visit()
    await person.sees('Sign in')
    person.type('ops1')
    person.press(KEY.tab)
    person.type(PASSWORD)
    person.press(KEY.enter)
    await person.sees(WIN1)
  })

  test('may be tried again in the form, which says what was wrong, and not without end', async () => {
    await start()
    const person = await world.visit({ login: 'ops1', password: 'wrong' })
    for (let tries = 1; tries < MAX_AUTH_TRIES; tries++) {
      await asked(tries)
      expect(await person.sees('wrong user name or password')).toContain('ops1')
      person.type('wrong again')
      person.press(KEY.enter)
    }
    await person.sees('too many failed attempts')
    expect(world.authenticated).toHaveLength(MAX_AUTH_TRIES)
    person.press(KEY.enter)
    await person.over()
    expect(person.client.errors).toEqual([ERROR_INFO.serverDenied])
    expect(person.disconnects).toHaveLength(1)
    expect(world.connections.count).toBe(0)
  })

  test('with a login that is none says what is expected', async () => {
    await start({ authenticate: async () => ({ result: 'malformed', message: 'expected USER' }) })
    const person = await world.visit({ login: 'ops1:', password: PASSWORD })
    await person.sees('expected USER')
  })

  test('goes on with the questions of the gate', async () => {
    await start({
      targets: [WIN1],
      authenticate: async (request) =>
        'answers' in request.proof
          ? judge({ ...request, proof: { method: 'password', password: PASSWORD } })
          : CHALLENGE,
    })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees('Look at your phone.')
    person.type('123456')
    person.press(KEY.enter)
    await person.sees(WIN1)
    expect((await asked(2)).proof).toEqual({
      method: 'keyboard-interactive',
      challenge: 'the challenge',
      answers: ['123456'],
    })
    expect(world.left).toEqual([])
  })

  test.each<[string, (person: Awaited<ReturnType<World['visit']>>) => void]>([
    ['given up', (person) => person.press(KEY.escape)],
    ['left', (person) => person.leave()],
  ])('of which a question is %s leaves nothing at the gate', async (_, go) => {
    await start({ authenticate: async () => CHALLENGE })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees('Look at your phone.')
    go(person)
    await person.over()
    await until('the challenge to be left', () => world.left.includes('the challenge') || undefined)
  })

  test('that nobody waits for any more leaves nobody signed in', async () => {
    let answer: (() => void) | undefined
    await start({
      authenticate: async (request) => {
        await new Promise<void>((resolve) => {
          answer = resolve
        })
        return judge(request)
      },
    })
    const person = await world.visit({ login: 'ops1:root@win1', password: PASSWORD })
    await asked(1)
    person.leave()
    await person.over()
    answer?.()
    await until('the identity to be left', () => world.left.includes('token') || undefined)
    expect(world.opened).toEqual([])
    expect(world.connections.count).toBe(0)
  })

  test('is given up by Escape', async () => {
    await start()
    const person = await world.visit()
    await person.sees('Sign in')
    person.press(KEY.escape)
    await person.over()
    expect(world.authenticated).toEqual([])
  })

  test('that takes too long is ended, and the client told so', async () => {
    await start({ loginGraceMs: 1_500 })
    const person = await world.visit({ login: 'ops1' })
    await person.sees('Sign in')
    await person.over()
    expect(person.client.errors).toEqual([ERROR_INFO.logonTimeout])
  })

  test('ends where the gate cannot be asked', async () => {
    await start({ authenticate: () => Promise.reject(new Error('gone')) })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.over()
    expect(world.connections.count).toBe(0)
  })
})

describe('who has signed in', () => {
  test('reads the message of the day first', async () => {
    await start({ motd: 'Maintenance on Sunday.', targets: [WIN1] })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees('Maintenance on Sunday.')
    person.press(KEY.enter)
    await person.sees(WIN1)
  })

  test('chooses a target, and reads beside the list why it is refused', async () => {
    await start({
      targets: [WIN1, WIN2],
      open: async () => ({ result: 'denied', message: 'only on weekdays' }),
    })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees(WIN2)
    person.press(KEY.down)
    person.press(KEY.enter)
    await person.sees('only on weekdays')
    expect(world.opened).toMatchObject([{ identity: 'token', protocol: 'RDP', target: WIN2 }])
  })

  test('reads why the target of their login is refused, and may choose another', async () => {
    await start({ targets: [WIN2] })
    const person = await world.visit({ login: 'ops1:root@win1', password: PASSWORD })
    await person.sees('nothing is open here')
    expect(world.opened).toHaveLength(1)
    expect(world.opened[0]).not.toHaveProperty('target')
    person.press(KEY.enter)
    await person.sees(WIN2)
    person.press(KEY.enter)
    await until('the other one', () => world.opened[1])
    expect(world.opened[1]).toMatchObject({ target: WIN2 })
  })

  test('leaves after that where there is no other', async () => {
    await start()
    const person = await world.visit({ login: 'ops1:root@win1', password: PASSWORD })
    await person.sees('nothing is open here')
    person.press(KEY.enter)
    await person.over()
    expect(person.client.errors).toEqual([ERROR_INFO.serverDenied])
    await until('the identity to be left', () => world.left.includes('token') || undefined)
  })

  test('is asked for the login there where the gate wants one', async () => {
    await start({
      open: async ({ logon }) =>
        logon
          ? { result: 'denied', message: `not today, ${logon.login}` }
          : { result: 'logon_needed', question: { target: 'win1:rdp' } },
    })
    const person = await world.visit({ login: 'ops1:@win1', password: PASSWORD })
    await person.sees('Login at win1:rdp')
    person.type('admin')
    person.press(KEY.tab)
    person.type('Target-pw1')
    person.press(KEY.enter)
    await person.sees('not today, admin')
    expect(world.opened[1]?.logon).toEqual({ login: 'admin', password: 'Target-pw1' })
  })

  test.each<[string, (person: Awaited<ReturnType<World['visit']>>) => void, number[]]>([
    ['closing the window', (person) => person.client.data(DATA_PDU.shutdownRequest, new Uint8Array(0)), []],
    ['Escape in the list', (person) => person.press(KEY.escape), []],
    ['going away', (person) => person.leave(), []],
    [
      'the broker’s end',
      () => void world.connections.drain(0, 'the bastion is stopping'),
      [ERROR_INFO.administratorDisconnect],
    ],
  ])('leaves by %s, and nothing is left', async (_, go, errors) => {
    await start({ targets: [WIN1] })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees(WIN1)
    expect(world.connections.count).toBe(1)
    go(person)
    await person.over()
    expect(person.client.errors).toEqual(errors)
    await until('the identity to be left', () => world.left.includes('token') || undefined)
    expect(world.connections.count).toBe(0)
  })

  test('and breaks the protocol is cut off', async () => {
    await start({ targets: [WIN1] })
    const person = await world.visit({ login: 'ops1', password: PASSWORD })
    await person.sees(WIN1)
    person.client.data(0x77, Buffer.alloc(4))
    await person.over()
    await until('the identity to be left', () => world.left.includes('token') || undefined)
  })
})
