/** PROXY headers: for any bytes a claim, a wish for more, or the one error; and never a byte behind the header. */
import { isIP } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MAX_BLOCK } from '../../src/balancers/block.ts'
import { type Claim, ProxyHeaderError } from '../../src/balancers/claim.ts'
import { readHeader } from '../../src/balancers/header.ts'
import { sameAddress } from '../../src/model/networks.ts'
import { blockHeader, FAMILIES, field, withChecksum } from '../balancers/headers.ts'
import { times } from '../times.ts'

const RUNS = { numRuns: times(1_000, 5_000) }
const LONGEST = 16 + MAX_BLOCK

const port = fc.nat({ max: 65_535 })
const four = fc.ipV4()
const six = fc.ipV6().filter((address) => !address.includes('.'))
const bytesOfFour = (address: string) => Buffer.from(address.split('.').map(Number))
const sixteen = fc.uint8Array({ minLength: 16, maxLength: 16 })
const fields = fc.array(
  fc
    .tuple(fc.integer({ min: 4, max: 255 }), fc.uint8Array({ maxLength: 300 }))
    .map(([type, value]) => field(type, Buffer.from(value))),
  { maxLength: 5 },
)
const ports = (a: number, b: number) => Buffer.from([a >> 8, a & 0xff, b >> 8, b & 0xff])

/** Valid headers, each with the address that it names. */
const valid: fc.Arbitrary<[header: Buffer, address: string | undefined]> = fc.oneof(
  fc
    .tuple(four, four, port, port)
    .map(([client, here, a, b]): [Buffer, string] => [
      Buffer.from(`PROXY TCP4 ${client} ${here} ${a} ${b}\r\n`),
      client,
    ]),
  fc
    .tuple(six, six, port, port)
    .map(([client, here, a, b]): [Buffer, string] => [
      Buffer.from(`PROXY TCP6 ${client} ${here} ${a} ${b}\r\n`),
      sameAddress(client),
    ]),
  fc
    .string({ maxLength: 90 })
    .map((more): [Buffer, undefined] => [
      Buffer.from(`PROXY UNKNOWN ${more.replace(/[^ -~]/g, '')}\r\n`),
      undefined,
    ]),
  fc
    .tuple(four, four, port, port, fields, fc.boolean())
    .map(([client, here, a, b, more, isSummed]): [Buffer, string] => {
      const addresses = Buffer.concat([bytesOfFour(client), bytesOfFour(here), ports(a, b)])
      const block = { family: FAMILIES.tcp4, addresses, fields: more }
      return [isSummed ? withChecksum(block) : blockHeader(block), client]
    }),
  fc.tuple(sixteen, sixteen, port, port, fields).map(([client, here, a, b, more]): [Buffer, string] => {
    const groups = Array.from({ length: 8 }, (_none, i) =>
      Buffer.from(client).toString('hex', 2 * i, 2 * i + 2),
    )
    const addresses = Buffer.concat([client, here, ports(a, b)])
    return [blockHeader({ family: FAMILIES.tcp6, addresses, fields: more }), sameAddress(groups.join(':'))]
  }),
)

/** Reads as from a connection: as many bytes as are missing, in pieces of at most `most`. */
function readFrom(bytes: Buffer, most: number): { claim?: Claim; error?: ProxyHeaderError; length: number } {
  let length = 0
  for (;;) {
    try {
      const reading = readHeader(bytes.subarray(0, length))
      if ('claim' in reading) return { claim: reading.claim, length }
      expect(reading.missing).toBeGreaterThan(0)
      expect(length + reading.missing).toBeLessThanOrEqual(LONGEST)
      if (length === bytes.length) return { length }
      length = Math.min(bytes.length, length + Math.min(most, reading.missing))
    } catch (error) {
      expect(error).toBeInstanceOf(ProxyHeaderError)
      return { error: error as ProxyHeaderError, length }
    }
  }
}

test('a valid header is read to its last byte and no further, in whatever pieces it comes', () => {
  fc.assert(
    fc.property(
      valid,
      fc.uint8Array({ maxLength: 40 }),
      fc.integer({ min: 1, max: 64 }),
      ([header, address], behind, most) => {
        const read = readFrom(Buffer.concat([header, behind]), most)
        expect(read).toEqual({ claim: expect.anything(), length: header.length })
        expect(read.claim?.client?.address).toBe(address)
      },
    ),
    RUNS,
  )
})

test('each beginning of a valid header asks for more', () => {
  fc.assert(
    fc.property(valid, ([header]) => {
      for (let cut = 0; cut < header.length; cut++) {
        expect(readFrom(header.subarray(0, cut), 7)).toEqual({ length: cut })
      }
    }),
    { numRuns: times(60, 200) },
  )
})

test('every length that a block can state', () => {
  const header = blockHeader({ family: FAMILIES.tcp4, addresses: Buffer.alloc(12) }).subarray(0, 16)
  for (let length = 0; length <= 0xffff; length++) {
    header.writeUInt16BE(length, 14)
    const { error } = readFrom(header, 16)
    expect(error === undefined, String(length)).toBe(length > 0 && length <= MAX_BLOCK)
  }
})

test('any bytes, and valid headers with some bytes changed', () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 4 })
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 64 }),
      valid,
      changes,
      fc.integer({ min: 1, max: 40 }),
      (any, [header], edits, most) => {
        readFrom(Buffer.from(any), most)
        readFrom(Buffer.concat([Buffer.from('PROXY '), any]), most)
        const changed = Buffer.from(header)
        for (const [at, byte] of edits) changed[at % changed.length] = byte
        const { claim } = readFrom(changed, most)
        if (claim?.client) expect(isIP(claim.client.address)).not.toBe(0)
      },
    ),
    RUNS,
  )
})
