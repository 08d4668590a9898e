/** Guests at the gate: admission, once only, its duration, and its events. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { AuditLog } from '../../src/audit/log.ts'
import type { AuthenticateAnswer, GateNotice } from '../../src/contract/gate.ts'
import { Invitations, MAX_INVITATIONS } from '../../src/gate/invitations.ts'
import { SignIns } from '../../src/gate/sign-ins.ts'
import { Tickets } from '../../src/gate/tickets.ts'
import { vncAuthResponse } from '../../src/model/vnc-auth.ts'
import type { Store } from '../../src/store/store.ts'
import { until } from '../until.ts'
import { SOURCE, type VncWorld, vncWorld } from './desktop-world.ts'
import { groundsOn } from './grounds.ts'

const ELSEWHERE = { address: '198.51.100.9', port: 5 }
const CHALLENGE = Buffer.from('0123456789abcdef')
const MINUTE = 60_000

let world: VncWorld
let session: string
let notices: GateNotice[]

beforeEach(async () => {
  world = await vncWorld()
  session = (await world.opened()).id
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
})
afterEach(async () => {
  vi.useRealTimers()
  await world.temporary.remove()
})

async function invite(more: object = {}): Promise<{ id: string; password: string }> {
  const request = {
    name: 'Bob',
    mode: 'view',
    by: 'ops1',
    basis: world.basis(),
    duration: 10 * MINUTE,
    ...more,
  } as const
  const answer = await world.gate.invite(session, request)
  if (answer.result !== 'invited') throw new Error(answer.result)
  return { id: answer.invitation.id, password: answer.password.revealText() }
}

const byResponse = (password: string, source = ELSEWHERE): Promise<AuthenticateAnswer> =>
  world.gate.authenticate({
    protocol: 'VNC',
    source,
    login: '',
    proof: { method: 'ticket', challenge: CHALLENGE, response: vncAuthResponse(CHALLENGE, password) },
  })
const byPassword = (login: string, password: string): Promise<AuthenticateAnswer> =>
  world.gate.authenticate({
    protocol: 'VNC',
    source: ELSEWHERE,
    login,
    proof: { method: 'password', password },
  })

const codes = async () => (await world.events()).map(([code]) => code)

describe('an invitation', () => {
  test('lets one viewer in, by VNC authentication, and the audit says who and from where', async () => {
    const { id, password } = await invite()
    expect(password).toMatch(/^\w{8}$/)
    const answer = await byResponse(password)
    expect(answer).toMatchObject({
      result: 'accepted',
      identity: {
        user: 'Bob',
        hasTarget: false,
        guest: { session, invitation: id, name: 'Bob', mode: 'view' },
      },
    })
    expect(await byResponse(password)).toEqual({ result: 'rejected' })
    const join = (await world.events()).find(([code]) => code === 'session.guest_join')?.[1]
    expect(join).toMatchObject({
      session,
      user: 'ops1',
      client_ip: ELSEWHERE.address,
      device: 'srv1',
      object_type: 'guest',
      object: 'Bob',
      method: 'view',
    })
    expect(JSON.stringify(await world.events())).not.toContain(password)
  })

  test('also by user and password, as guest and as nobody else', async () => {
    const { password } = await invite()
    expect(await byPassword('ops1', password)).toEqual({ result: 'rejected' })
    expect(await byPassword('guest', `${password}x`)).toEqual({ result: 'rejected' })
    expect(await byPassword('guest', password)).toMatchObject({ result: 'accepted' })
  })

  test('from the address that it names, where it names one', async () => {
    const { password } = await invite({ address: ELSEWHERE.address })
    expect(await byResponse(password, SOURCE)).toEqual({ result: 'rejected' })
    expect(await byResponse(password)).toMatchObject({ result: 'accepted' })
  })

  test('not on another protocol', async () => {
    const { password } = await invite()
    const proof = { method: 'password', password } as const
    expect(
      await world.gate.authenticate({ protocol: 'SSH', source: ELSEWHERE, login: 'guest', proof }),
    ).toEqual({ result: 'rejected' })
  })

  test('is no longer good when it was withdrawn, when its time is over, and when the session is', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const withdrawn = await invite()
    world.gate.withdrawInvitation(withdrawn.id, 'ended by ops1', 'ops1')
    expect(await byResponse(withdrawn.password)).toEqual({ result: 'rejected' })
    const old = await invite({ duration: MINUTE })
    vi.advanceTimersByTime(MINUTE)
    expect(await byResponse(old.password)).toEqual({ result: 'rejected' })
    const late = await invite()
    const over = { result: 'success' as const, bytesIn: 0, bytesOut: 0, rightsUsed: [] }
    await world.gate.close({ session, ...over })
    expect(await byResponse(late.password)).toEqual({ result: 'rejected' })
    expect(notices).toEqual([])
  })

  test('a guest who is in is told to leave, when it is withdrawn or its time is over, and is gone when they have', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { id, password } = await invite({ duration: MINUTE })
    const answer = await byResponse(password)
    world.gate.setGuestMode(id, 'control', 'auditor', world.basis())
    world.gate.withdrawInvitation(id, 'ended by ops1', 'ops1')
    vi.advanceTimersByTime(MINUTE)
    const told = { type: 'guest', session, invitation: id }
    expect(notices).toEqual([
      { ...told, change: { mode: 'control', by: 'auditor' } },
      { ...told, change: { out: 'ended by ops1', by: 'ops1' } },
      { ...told, change: { out: 'the time of the invitation is over' } },
    ])
    expect(world.gate.invitations(session)).toMatchObject([{ id, mode: 'control', guest: ELSEWHERE }])
    if (answer.result === 'accepted') await world.gate.leave({ identity: answer.identity.token })
    expect(world.gate.invitations(session)).toEqual([])
    expect((await codes()).at(-1)).toBe('session.guest_leave')
  })

  test('is nobody at the gate: no list, no session, and wrong guesses lock the address out', async () => {
    const { password } = await invite()
    const answer = await byResponse(password)
    if (answer.result !== 'accepted') throw new Error(answer.result)
    const identity = answer.identity.token
    await expect(world.gate.targets({ identity, protocol: 'VNC' })).rejects.toThrow('no longer signed in')
    await expect(world.gate.open({ identity, protocol: 'VNC', source: ELSEWHERE })).rejects.toThrow()
    const other = await invite()
    for (let guess = 0; guess < 12; guess++) await byResponse('wrong123')
    expect(await codes()).toContain('auth.locked')
    const { invitations } = world.temporary.store
    const { waitingFor } = invitations
    let looked = 0
    invitations.waitingFor = (...asked) => {
      looked++
      return waitingFor(...asked)
    }
    expect(await byResponse(other.password)).toEqual({ result: 'rejected' })
    // Each comparison with all that wait costs time of the gate.
    expect(looked).toBe(0)
    expect(world.gate.invitations(session)).toHaveLength(2)
  })

  test('there are so many, and only for desktops that run', async () => {
    const made = await Promise.allSettled(Array.from({ length: MAX_INVITATIONS + 3 }, () => invite()))
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(MAX_INVITATIONS)
    await expect(invite()).rejects.toThrow('too_many')
    const request = { name: 'Bob', mode: 'view', by: 'ops1', basis: world.basis(), duration: MINUTE } as const
    const absent = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
    expect(await world.gate.invite(absent, request)).toEqual({ result: 'not_running' })
  })
})

describe('the row of an invitation', () => {
  let other: Store
  beforeEach(async () => {
    other = await world.temporary.open()
  })
  afterEach(() => other.close())

  const rows = () => other.invitations.waitingFor(ELSEWHERE.address, world.clock.now)

  test('has its password sealed, also with new keys, and is removed with a restore', async () => {
    const { id, password } = await invite()
    const [row, ...rest] = await rows()
    expect(rest).toEqual([])
    expect(row).toMatchObject({ id, session })
    expect(Buffer.from(row!.sealed).includes(password)).toBe(false)
    const all = await other.sealed.all()
    const place = { table: 'invitations', id, field: 'password' }
    const sealed = all.find((one) => one.place.table === 'invitations')
    expect(sealed?.place).toEqual(place)
    await other.sealed.replace({ place, sealed: new Uint8Array([1]) })
    expect((await rows())[0]?.sealed).toEqual(new Uint8Array([1]))
    await other.invitations.removeAll()
    expect(await byResponse(password)).toEqual({ result: 'rejected' })
  })

  test('whose password does not open is passed over', async () => {
    const { id } = await invite()
    const { password } = await invite()
    const place = { table: 'invitations', id, field: 'password' }
    await other.sealed.replace({ place, sealed: new Uint8Array([1]) })
    expect(await byResponse(password)).toMatchObject({ result: 'accepted' })
  })

  test('is taken once, whichever process takes it', async () => {
    const takers = [world.temporary.store, other, world.temporary.store]
    for (let n = 0; n < MAX_INVITATIONS; n++) {
      const { id } = await invite()
      const taken = await Promise.all(takers.map((store) => store.invitations.take(id, world.clock.now)))
      expect(taken.filter(Boolean)).toHaveLength(1)
      world.gate.withdrawInvitation(id, 'over')
    }
  })

  test('goes with its guest, its withdrawal, and its session', async () => {
    const isEmpty = async () => ((await rows()).length === 0 ? true : undefined)
    const { password } = await invite()
    expect(await byResponse(password)).toMatchObject({ result: 'accepted' })
    expect(await rows()).toEqual([])
    const { id } = await invite()
    world.gate.withdrawInvitation(id, 'over')
    await until('the withdrawal', isEmpty)
    await invite()
    // As the next start does, after a crash.
    await other.sessions.update(session, { end: world.clock.now })
    expect(await rows()).toEqual([])
  })

  test('makes room when its time is over, even if nobody removes it', async () => {
    const { now } = world.clock
    const row = (id: string, expires: number) => {
      const more = { session, address: '', sealed: new Uint8Array(1) }
      return other.invitations.add({ id, expires, ...more }, now, 2)
    }
    expect(await row('a', now)).toBe(true)
    expect(await row('b', now + 1)).toBe(true)
    expect(await row('c', now + 1)).toBe(true)
    expect(await row('d', now + 1)).toBe(false)
    expect((await rows()).map(({ id }) => id)).toEqual(['b', 'c'])
  })

  test('is refused in words by a broker that has replaced the one of the session, and not used up', async () => {
    let runs = true
    const { vault, identities } = world
    const now = () => world.clock.now
    const audit = new AuditLog({ repository: other.audit, now })
    const grounds = groundsOn(other)
    const invitations = new Invitations({
      stored: other.invitations,
      runsElsewhere: (id) => runs && id === session,
      ...{ vault, audit, grounds, now, notify: () => undefined, watch: () => undefined },
    })
    const tickets = new Tickets(other.tickets, vault)
    const onWithdrawn = () => undefined
    const reasonAhead = async () => undefined
    const more = {
      audit,
      grounds,
      now,
      reasonAhead,
      factorAhead: reasonAhead,
      onWithdrawn,
      running: () => [],
    }
    const successor = new SignIns({ store: other, identities, tickets, invitations, ...more })
    const { password } = await invite()
    const enter = () =>
      successor.authenticate({
        protocol: 'VNC',
        source: ELSEWHERE,
        login: 'guest',
        proof: { method: 'password', password },
      })
    const message =
      'the session that you are invited to runs on in a broker that was replaced, and takes no guests any more'
    expect(await enter()).toEqual({ result: 'unavailable', message })
    expect((await world.events()).at(-1)).toMatchObject([
      'auth.failure',
      { method: 'ticket', reason: message },
    ])
    expect(await rows()).toHaveLength(1)
    runs = false
    expect(await enter()).toEqual({ result: 'rejected' })
  })
})
