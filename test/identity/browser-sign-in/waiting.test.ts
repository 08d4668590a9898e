/** Native clients that wait for their person in a browser. */
import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { shownCode, typedCode } from '../../../src/identity/browser-sign-in/codes.ts'
import { BrowserSignIns, type Waiting } from '../../../src/identity/browser-sign-in/waiting.ts'
import { MAX_DIALOGUES } from '../../../src/identity/dialogues.ts'
import type { AuthDomain } from '../../../src/model/external-auths.ts'

const domain = { id: 'D1', domainName: 'corp' } as AuthDomain
const asking = { domain, name: 'alice@corp', protocol: 'SSH', source: '192.0.2.7', target: 'root@srv1' }
const alice = { id: 'U1', userName: 'Alice@corp', authDomainId: 'D1' }
const others = [
  { id: 'U2', userName: 'mallory@corp', authDomainId: 'D1' },
  { id: 'U3', userName: 'alice@corp', authDomainId: 'D2' },
  { id: 'U4', userName: 'alice@corp' },
]

it('is found, confirmed and refused by its own person only', async () => {
  const waiting = new BrowserSignIns(randomBytes)
  const { code, check, decided, verdict } = waiting.open(asking)!
  for (const other of others) {
    expect(waiting.find(code, other)).toBeUndefined()
    expect(waiting.confirm(code, { user: other })).toBe(false)
    expect(waiting.refuse(code, other)).toBe(false)
  }
  expect(waiting.find(code, alice)).toEqual({ ...asking, check })
  expect(waiting.confirm(code, { user: alice, providerSession: 'S1' })).toBe(true)
  await decided
  expect(verdict()).toEqual({ result: 'confirmed', userId: 'U1', providerSession: 'S1' })
  // Once.
  expect([waiting.find(code, alice), waiting.refuse(code, alice), waiting.size]).toEqual([
    undefined,
    false,
    0,
  ])
  expect(verdict().result).toBe('confirmed')
})

it('ends with its client, and cannot be confirmed any more', async () => {
  const waiting = new BrowserSignIns(randomBytes)
  const one = waiting.open(asking)!
  one.close()
  await one.decided
  expect([one.verdict(), waiting.confirm(one.code, { user: alice })]).toEqual([{ result: 'ended' }, false])
})

it('is one of a limited number, each with a code of its own', () => {
  const waiting = new BrowserSignIns(randomBytes)
  const all = Array.from({ length: MAX_DIALOGUES + 1 }, () => waiting.open(asking))
  expect(new Set(all.map((one) => one?.code)).size).toBe(all.length)
  expect(waiting.open(asking)).toBeUndefined()
  for (const one of all as Waiting[]) one.close()
  expect(waiting.size).toBe(0)
  // The same random bytes again, as of a broken generator: no other client's code.
  const stuck = new BrowserSignIns((length) => new Uint8Array(length))
  expect([stuck.open(asking)?.code, stuck.open(asking)]).toEqual(['22222222', undefined])
})

it('has a code that is read in any spelling, and in no other letters', () => {
  expect(shownCode('ABCDEFGH')).toBe('ABCD-EFGH')
  for (const text of ['abcd-efgh', ' ABCD EFGH ', 'abcdefgh']) expect(typedCode(text)).toBe('ABCDEFGH')
  for (const text of ['', 'ABCD-EFG', 'ABCD-EFGHJ', 'ABCD-EFG0', 'ABCD-EFGI', '../..'])
    expect(typedCode(text)).toBeUndefined()
})
