/** Responses of the DNS: for any bytes an answer, none, or the one error; and soon. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DnsError } from '../../src/dns/error.ts'
import { buildQuery, encodeName, parseAnswer, type Question } from '../../src/dns/message.ts'
import { parseSshfp, TYPE_SSHFP } from '../../src/dns/sshfp.ts'

const RUNS = { numRuns: 5_000 }
const question: Question = { id: 0x1234, name: encodeName('srv1.example.com'), type: TYPE_SSHFP }

const header = (answers: number, flags = 0x81a0) => {
  const bytes = Buffer.from(buildQuery(question).subarray(0, -11))
  bytes.writeUInt16BE(flags, 2)
  bytes.writeUInt16BE(answers, 6)
  return bytes
}
const hex = (...parts: string[]) => Buffer.from(parts.join(''), 'hex')
// an alias to `a.` + the queried name, and the record of that
const alias = hex('c00c', '0005', '0001', '00000e10', '0004', '0161', 'c00c')
const record = hex('0161', 'c00c', '002c', '0001', '00000e10', '0004', '0402beef')
const seeds = [
  Buffer.concat([header(1), hex('c00c', '002c', '0001', '00000e10', '0004', '0402beef')]),
  Buffer.concat([header(2), alias, record]),
  Buffer.concat([header(2), alias, hex('c02e', '002c', '0001', '00000000', '0003', '010101')]),
  header(0, 0x81a3),
]

function outcome(message: Buffer) {
  try {
    return parseAnswer(message, question)
  } catch (error) {
    expect(error).toBeInstanceOf(DnsError)
    return undefined
  }
}

test('the seeds are answers', () => {
  expect(seeds.map((seed) => outcome(seed))).toEqual([
    { isAuthenticated: true, data: [hex('0402beef')] },
    { isAuthenticated: true, data: [hex('0402beef')] },
    { isAuthenticated: true, data: [hex('010101')] },
    { isAuthenticated: true, data: [] },
  ])
})

test('any bytes', () => {
  const bytes = fc.uint8Array({ maxLength: 600 }).map((tail) => Buffer.from(tail))
  fc.assert(
    fc.property(bytes, fc.nat({ max: 70 }), (tail, answers) => {
      outcome(tail)
      outcome(Buffer.concat([header(answers), tail]))
    }),
    RUNS,
  )
})

test('answers with some bytes changed, cut out or put in', () => {
  const edits = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 8 }), fc.uint8Array({ maxLength: 8 })), {
    maxLength: 4,
  })
  fc.assert(
    fc.property(fc.constantFrom(...seeds), edits, (seed, changes) => {
      let bytes: Uint8Array = seed
      for (const [place, removed, added] of changes) {
        const at = place % (bytes.length + 1)
        bytes = Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])
      }
      const found = outcome(Buffer.from(bytes))
      if (typeof found === 'object') for (const data of found.data) parseSshfp(data)
    }),
    RUNS,
  )
})

test('names that lead in a ring, and aliases that do', () => {
  const rest = hex('002c', '0001', '00000e10', '0004', '0402beef')
  const at = header(0).length
  const pointer = (to: number) => hex((0xc000 | to).toString(16))
  for (const to of [at, at + 1, at + 2, 0x3fff]) {
    expect(() => parseAnswer(Buffer.concat([header(1), pointer(to), rest]), question)).toThrow(
      /leads forward/,
    )
  }
  const ring = hex('c00c', '0005', '0001', '00000e10', '0002', 'c00c')
  expect(parseAnswer(Buffer.concat([header(3), ring, ring, ring]), question)).toMatchObject({ data: [] })
})

test('a name that is built of many pointers has its limit', () => {
  // each of these is a label of 63 bytes and a pointer to the one before
  const label = (to: number) =>
    Buffer.concat([Buffer.of(63), Buffer.alloc(63, 0x61), hex((0xc000 | to).toString(16))])
  const parts: Buffer[] = []
  let at = header(0).length + 12
  let previous = 12
  for (let n = 0; n < 6; n++) {
    parts.push(label(previous))
    previous = at
    at += 66
  }
  const data = Buffer.concat(parts)
  const carrier = Buffer.concat([
    hex('c00c', '0010', '0001', '00000e10', data.length.toString(16).padStart(4, '0')),
    data,
  ])
  const long = Buffer.concat([hex((0xc000 | previous).toString(16)), hex('002c', '0001', '00000e10', '0000')])
  expect(() => parseAnswer(Buffer.concat([header(2), carrier, long]), question)).toThrow(/too long/)
})

test('more records than anybody needs', () => {
  const one = hex('c00c', '002c', '0001', '00000e10', '0004', '0402beef')
  const many = (count: number) => Buffer.concat([header(count), ...Array.from({ length: count }, () => one)])
  expect(parseAnswer(many(64), question)).toMatchObject({ isAuthenticated: true })
  expect(() => parseAnswer(many(65), question)).toThrow(/65 records/)
})

test('records of other names, types and classes are not the question’s', () => {
  for (const strange of [
    hex('01620000', '2c', '0001', '00000e10', '0004', '0402beef'),
    hex('c00c', '0001', '0001', '00000e10', '0004', '0402beef'),
    hex('c00c', '002c', '0003', '00000e10', '0004', '0402beef'),
    hex('c011', '002c', '0001', '00000e10', '0004', '0402beef'),
  ]) {
    expect(parseAnswer(Buffer.concat([header(1), strange]), question)).toEqual({
      isAuthenticated: true,
      data: [],
    })
  }
})
