import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  newRecoveryCodes,
  RECOVERY_CODES,
  recoveryDigest,
} from '../../../src/identity/second-factor/recovery.ts'
import {
  base32,
  codeOf,
  keyUri,
  MAX_DRIFT,
  STEP_MS,
  stepAt,
  stepOfCode,
} from '../../../src/identity/second-factor/totp.ts'

const SECRET = Buffer.from('12345678901234567890')

describe('codes', () => {
  // RFC 6238, appendix B: the last six of its eight digits.
  it.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('at %i s', (seconds, code) => {
    expect(codeOf(SECRET, stepAt(seconds * 1000))).toBe(code)
  })

  const now = 1_234_567_890_000
  const at = (by: number) => codeOf(SECRET, stepAt(now) + by)

  it('count one step before and after now, and teach the drift of the clock, which is bounded', () => {
    const of = (by: number, drift = 0) => stepOfCode(SECRET, at(by), { now, drift, lastStep: -1 })
    expect([-1, 0, 1].map((by) => of(by)?.drift)).toEqual([-1, 0, 1])
    expect([of(-2), of(2)]).toEqual([undefined, undefined])
    expect(of(2, 1)?.drift).toBe(2)
    expect(of(3, 2)).toEqual({ step: stepAt(now) + 3, drift: MAX_DRIFT })
    expect(of(0, 2)).toBeUndefined()
  })

  it('count only after the last one that was used, whatever the clock does', () => {
    const lastStep = stepAt(now)
    expect(stepOfCode(SECRET, at(0), { now, drift: 0, lastStep })).toBeUndefined()
    expect(stepOfCode(SECRET, at(-1), { now, drift: 0, lastStep })).toBeUndefined()
    expect(stepOfCode(SECRET, at(1), { now, drift: 0, lastStep })?.step).toBe(lastStep + 1)
    expect(stepOfCode(SECRET, at(0), { now: now - 60 * STEP_MS, drift: 0, lastStep })).toBeUndefined()
  })

  it('are six digits and nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.integer().map(String)), (text) => {
        const known = [-1, 0, 1].map(at)
        const found = stepOfCode(SECRET, text, { now, drift: 0, lastStep: -1 })
        expect(found !== undefined).toBe(known.includes(text))
      }),
    )
    expect(stepOfCode(SECRET, at(0), { now: 0, drift: 0, lastStep: -1 })).toBeUndefined()
  })
})

it('secrets are written in base 32, and in URIs with names of any characters', () => {
  expect(base32(Buffer.from('fooba'))).toBe('MZXW6YTB')
  expect(base32(SECRET)).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  const uri = new URL(keyUri('Sallyport', 'a:b&c?#@corp', 'MZXW6YTB'))
  expect([uri.host, decodeURIComponent(uri.pathname)]).toEqual(['totp', '/Sallyport:a:b&c?#@corp'])
  expect(uri.searchParams.get('secret')).toBe('MZXW6YTB')
})

it('recovery codes differ, are read as people type them, and count for their user alone', () => {
  const codes = newRecoveryCodes()
  expect(new Set(codes).size).toBe(RECOVERY_CODES)
  const [code = ''] = codes
  expect(code).toMatch(/^[a-z2-7]{8}-[a-z2-7]{8}$/)
  const digest = recoveryDigest('U1', code)
  for (const typed of [code.toUpperCase(), code.replaceAll('-', ' '), code.replaceAll('-', '')]) {
    expect(recoveryDigest('U1', typed)).toEqual(digest)
  }
  expect(recoveryDigest('U2', code)).not.toEqual(digest)
  expect(
    ['', '123456', `${code}a`, code.replace(/.$/, '1')].map((text) => recoveryDigest('U1', text)),
  ).toEqual(Array(4).fill(undefined))
})
