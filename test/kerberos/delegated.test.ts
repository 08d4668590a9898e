/** Tickets that clients delegate: taken if they are their own, and left out for any other reason. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { acceptToken } from '../../src/kerberos/acceptor.ts'
import { readDelegated } from '../../src/kerberos/delegated.ts'
import { Replays } from '../../src/kerberos/replays.ts'
import { credOf, firstToken, heldTicket, keyOf, NOW, SERVICE_KEY, SESSION_KEY, type Shown } from './client.ts'

const OWN = { realm: 'LAB', client: ['alice'] }
const tgt = (shown: Shown = {}) => heldTicket({ service: ['krbtgt', 'LAB'], ...shown })
const read = (bytes: Uint8Array) => readDelegated(bytes, [SESSION_KEY, keyOf(5, 19)], OWN)
const accept = (shown: Shown, takesDelegated: boolean) =>
  acceptToken(firstToken(shown), {
    realm: 'LAB',
    service: 'HTTP',
    keys: [{ realm: 'LAB', components: ['HTTP', 'bastion'], version: 3, key: SERVICE_KEY }],
    replays: new Replays(0),
    takesDelegated,
    now: () => NOW,
  })

test('the first ticket of the client is read, sealed by the key of its ticket or by its own', () => {
  for (const key of [SESSION_KEY, keyOf(5, 19)]) {
    const held = tgt()
    const { ticket } = held
    const found = read(credOf(held, key))
    expect(found).toMatchObject({ ...OWN, endTime: NOW + 600_000, key: SESSION_KEY, ticket })
  }
})

test.each([
  ['of another person', credOf(tgt({ client: ['bob'] }), SESSION_KEY)],
  ['of another realm', credOf(tgt({ realm: 'EVIL' }), SESSION_KEY)],
  ['for a service', credOf(heldTicket(), SESSION_KEY)],
  ['of another realm than its names', credOf({ ...tgt({ realm: 'EVIL' }), realm: 'LAB' }, SESSION_KEY)],
  ['under another key', credOf(tgt(), keyOf(6))],
  ['cut off', credOf(tgt(), SESSION_KEY).subarray(0, 100)],
  ['empty', Buffer.alloc(0)],
])('one %s is left out', (_case, bytes) => {
  expect(read(bytes)).toBeUndefined()
})

test('it is read only where it is wanted, and a sign-in does not rest on it', () => {
  const delegated = credOf(tgt(), SESSION_KEY)
  expect(accept({ delegated }, true).delegated).toMatchObject(OWN)
  expect(accept({ delegated }, false).delegated).toBeUndefined()
  const broken = accept({ delegated: Buffer.from('broken') }, true)
  expect([broken.client, broken.delegated]).toEqual([['alice'], undefined])
  expect(() => accept({ delegated: Buffer.alloc(0) }, true)).toThrow(MalformedError)
})

test('altered bytes give the ticket of the client, or none', () => {
  const bytes = credOf(tgt(), SESSION_KEY)
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.nat(bytes.length), (at, value, end) => {
      const copy = Buffer.from(bytes)
      copy[at] = value
      const found = read(copy.subarray(0, end))
      if (found) expect(found).toMatchObject({ ...OWN, key: SESSION_KEY })
    }),
    { numRuns: 400 },
  )
})
