/** Guests at the gate: admission, once only, its duration, and its events. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AuthenticateAnswer, GateNotice } from '../../src/contract/gate.ts'
import { MAX_INVITATIONS } from '../../src/gate/invitations.ts'
import { vncAuthResponse } from '../../src/model/vnc-auth.ts'
import { SOURCE, type VncWorld, vncWorld } from './desktop-world.ts'

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
    expect(await byResponse(other.password)).toEqual({ result: 'rejected' })
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
