/** Forwarded tickets at targets: the parts of one that a proxy can get, and when. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { Forwarding } from '../../src/gate/forwarding.ts'
import { HandOut } from '../../src/gate/hand-out.ts'
import { ForwardedTicket } from '../../src/identity/forwarded-ticket.ts'
import type { SignInMethod } from '../../src/identity/methods/method.ts'
import { acceptToken } from '../../src/kerberos/acceptor.ts'
import { KdcRefusal } from '../../src/kerberos/refusals.ts'
import { Replays } from '../../src/kerberos/replays.ts'
import type { HeldTicket } from '../../src/kerberos/requests.ts'
import { heldTicket, NOW, SERVICE_KEY, SESSION_KEY } from '../kerberos/client.ts'

const TARGET = ['host', 'srv1.lab']

/** A ticket whose KDC answers so. */
function forwardedBy(ticketFor: NonNullable<SignInMethod['ticketFor']>, endTime = NOW + 60_000) {
  const ticket = { ...heldTicket({ service: ['krbtgt', 'LAB'] }), endTime }
  const method = async () => ({ ticketFor }) as unknown as SignInMethod
  return { ticket, forwarded: new ForwardedTicket({ ticket, method, now: () => NOW }) }
}
const works = async (_first: HeldTicket, service: readonly string[]) => heldTicket({ service: [...service] })

function world(kept: { forwarded?: ForwardedTicket } = { forwarded: forwardedBy(works).forwarded }) {
  const signedIn: { isSpent?: boolean } = {}
  const handOut = new HandOut(signedIn, [])
  const forwarding = new Forwarding({ kept, handOut, host: 'SRV1.lab' })
  return { forwarding, handOut, signedIn }
}

/** A target that takes the token, and its answer. */
function targetOf(token: Uint8Array) {
  return acceptToken(token, {
    realm: 'LAB',
    service: 'host',
    keys: [{ realm: 'LAB', components: TARGET, version: 3, key: SERVICE_KEY }],
    replays: new Replays(0),
    now: () => NOW,
  })
}
const over = { result: 'unusable', message: 'the sign-in by your ticket is over' }
const data = Buffer.from('session and request')

test('a proxy gets one token and one signature, for the accepted target', async () => {
  const { forwarding, handOut } = world()
  handOut.take()
  const begun = await forwarding.step({})
  if (begun.result !== 'token') throw new Error(begun.result)
  const { answer, client, tokens } = targetOf(begun.token)
  expect(client).toEqual(['alice'])
  const signed = await forwarding.step({ answer: { token: answer!, data } })
  if (signed.result !== 'signed') throw new Error(signed.result)
  expect(tokens.isSigned(data, signed.mic)).toBe(true)
  expect(await forwarding.step({ answer: { token: answer!, data } })).toEqual(over)
  expect(await forwarding.step({})).toEqual(over)
})

test('nothing is signed for a target that has not opened the ticket', async () => {
  const { forwarding, handOut } = world()
  handOut.take()
  await forwarding.step({})
  const answer = { token: Buffer.from('6000', 'hex'), data }
  expect(await forwarding.step({ answer })).toEqual({
    result: 'unusable',
    message: 'the target has not proved that it is host/srv1.lab',
  })
  expect(await forwarding.step({ answer })).toEqual(over)
})

test('nothing is handed out before the host key is accepted, or to a second target of one sign-in', async () => {
  const early = world()
  expect(await early.forwarding.step({})).toMatchObject({ message: expect.stringContaining('host key') })
  const { forwarding, handOut, signedIn } = world()
  signedIn.isSpent = true
  handOut.take()
  expect(await forwarding.step({})).toMatchObject({
    message: expect.stringContaining('one sign-in opens one'),
  })
})

test.each([
  ['none', undefined, 'has forwarded no ticket'],
  ['one that has expired', forwardedBy(works, NOW).forwarded, 'has expired: get a new one'],
  [
    'one whose KDC does not know the target',
    forwardedBy(async () => {
      throw new KdcRefusal({ code: 7, serverTime: NOW, text: '' }, NOW)
    }).forwarded,
    'knows no service host/srv1.lab',
  ],
  [
    'one whose KDCs are away',
    forwardedBy(async () => {
      throw new Error('10.0.0.1:88: no answer')
    }).forwarded,
    'no KDC of your ticket answers at the moment: try again in a few minutes',
  ],
])('with %s the user reads why', async (_case, forwarded, words) => {
  const { forwarding, handOut } = world(forwarded ? { forwarded } : {})
  handOut.take()
  const answer = await forwarding.step({})
  expect(answer).toMatchObject({ result: 'unusable', message: expect.stringContaining(words) })
  expect(JSON.stringify(answer)).not.toContain('10.0.0.1')
})

test('the key is wiped where it came from at once, and where it is kept with the connection', async () => {
  const shown: HeldTicket[] = []
  const { ticket, forwarded } = forwardedBy(async (first, service) => {
    expect(first.key.bytes.equals(SESSION_KEY.bytes)).toBe(true)
    shown.push(first)
    return await works(first, service)
  })
  const isWiped = ({ key }: HeldTicket) => key.bytes.every((byte) => byte === 0)
  expect(isWiped(ticket)).toBe(true)
  await forwarded.contextAt('srv1.lab')
  expect(shown.map(isWiped)).toEqual([true])
  expect(JSON.stringify(forwarded)).toBe('{}')
  forwarded.close()
  await expect(forwarded.contextAt('srv1.lab')).rejects.toThrow('expired')
})
