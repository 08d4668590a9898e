import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Secret } from '../../src/model/secret.ts'
import { Agent, MAX_ANSWER, RESULTS, type Verdict } from '../../src/snmp/agent.ts'
import { compareOids, oid, oidBytes, readOid } from '../../src/snmp/oid.ts'
import { userKeys } from '../../src/snmp/usm.ts'
import { gaugeValue } from '../../src/snmp/value.ts'
import { View } from '../../src/snmp/view.ts'
import { BULK, communityRequest, GET, NEXT, pduOf, SET, securedRequest } from '../snmp/manager.ts'
import { times } from '../times.ts'

const ENGINE = Buffer.alloc(17, 5)
const keys = userKeys(
  {
    name: 'noc',
    auth: 'sha256',
    authPassword: Secret.of('auth-password-1'),
    priv: 'aes',
    privPassword: Secret.of('priv-password-1'),
  },
  ENGINE,
)
const agent = new Agent({
  engine: { id: ENGINE, boots: 3 },
  access: { community: Secret.of('figures-please'), user: keys },
  seconds: () => 100,
  randomBytes: (count) => Buffer.alloc(count),
})
const view = new View([
  {
    name: oid('1.3.6.1.4.1.32473.1.1'),
    instances: Array.from({ length: 50 }, (_, i) => [[i], gaugeValue(i)] as const),
  },
])
const asked = { engineId: ENGINE, boots: 3, time: 100, user: 'noc', keys }
const runs = { numRuns: times(300, 20_000) }

/** Holds a verdict to what every one has: a known result, and an answer that is small. */
function check({ result, reply, respond }: Verdict, request: Uint8Array): void {
  expect(RESULTS).toContain(result)
  const answer = respond?.(view) ?? reply
  if (answer) expect(answer.length).toBeLessThanOrEqual(MAX_ANSWER)
  // A report is for a sender that has proved nothing: it must not be worth a forged address.
  if (reply) expect(reply.length).toBeLessThan(request.length + 160)
}

const arc = fc.oneof(fc.nat(50), fc.constantFrom(127, 128, 16_383, 16_384, 0xffffffff))
const name = fc.array(arc, { maxLength: 20 }).map((rest) => [1, 3, 6, 1, 4, 1, 32473, ...rest])
const number = fc.oneof(fc.integer({ min: -5, max: 200 }), fc.constantFrom(-0x80000000, 0x7fffffff))
const pdu = fc
  .record({
    type: fc.constantFrom(GET, NEXT, SET, BULK, 0xa2, 0xa4, 0xa8),
    names: fc.array(name, { maxLength: 140 }),
    second: number,
    third: number,
  })
  .map(({ type, names, second, third }) => pduOf(type, names, second, third))

test('random datagrams are judged', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5000 }), (datagram) => check(agent.receive(datagram), datagram)),
    runs,
  )
})

test('requests of any shape are answered in one packet', () => {
  fc.assert(
    fc.property(pdu, (bytes) => {
      for (const request of [communityRequest('figures-please', bytes), securedRequest(bytes, asked)])
        check(agent.receive(request), request)
    }),
    runs,
  )
})

test('requests with changed, missing and added bytes are judged', () => {
  const change = fc.record({
    at: fc.nat(400),
    to: fc.nat(255),
    cut: fc.nat(5),
    add: fc.uint8Array({ maxLength: 5 }),
  })
  fc.assert(
    fc.property(pdu, fc.array(change, { minLength: 1, maxLength: 4 }), (bytes, changes) => {
      for (const request of [
        communityRequest('figures-please', bytes),
        securedRequest(bytes, asked),
        securedRequest(bytes, { ...asked, keys: undefined as never }),
      ]) {
        let changed: Uint8Array = request
        for (const { at, to, cut, add } of changes) {
          const copy = Buffer.from(changed)
          copy[at % copy.length] = to
          changed = Buffer.concat([copy.subarray(0, copy.length - cut), add])
        }
        check(agent.receive(changed), changed)
      }
    }),
    runs,
  )
})

test('proved senders may send any bytes as their PDU', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const request = securedRequest(bytes, asked)
      check(agent.receive(request), request)
    }),
    runs,
  )
})

test('names are read as they are written', () => {
  fc.assert(
    fc.property(name, (one) => {
      expect(compareOids(readOid(oidBytes(one)), one)).toBe(0)
    }),
    runs,
  )
})
