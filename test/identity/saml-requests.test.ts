/** IDs of requests to identity providers: each is of one browser, one purpose and one time. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Bound, isOwnRequest, REQUEST_MS, requestId } from '../../src/identity/saml-requests.ts'

const NOW = Date.UTC(2031, 0, 1)
const bound: Bound = { browser: 'b'.repeat(43), auth: 'A1', kind: 'sign_in', state: '/account' }

test('an ID is of the browser, the identity provider, the purpose and the path that it was made for', () => {
  const id = requestId(bound, NOW, randomBytes)
  expect(id).toMatch(/^_[A-Za-z0-9._-]+$/)
  expect(isOwnRequest(id, bound, NOW + REQUEST_MS - 1000)).toBe(true)
  for (const other of [
    { browser: 'c'.repeat(43) },
    { auth: 'A2' },
    { kind: 'sign_out' },
    { state: '' },
  ] as const)
    expect(isOwnRequest(id, { ...bound, ...other }, NOW)).toBe(false)
})

test('an ID ends, and cannot be made up or moved in time', () => {
  const id = requestId(bound, NOW, randomBytes)
  expect(isOwnRequest(id, bound, NOW + REQUEST_MS)).toBe(false)
  expect(isOwnRequest(id, bound, NOW - 2000)).toBe(false)
  const [nonce, time, mac] = id.split('.') as [string, string, string]
  const later = (Number.parseInt(time, 36) + 1).toString(36)
  for (const forged of [
    `${nonce}.${later}.${mac}`,
    `${nonce}.${time}.${mac.slice(1)}A`,
    '',
    '_a.b.c',
    `${id}\n`,
  ])
    expect(isOwnRequest(forged, bound, NOW)).toBe(false)
})
