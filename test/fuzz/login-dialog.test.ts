/**
 * The login at a target that sends anything: each secret typed once, none of them shown, the same wherever
 * reads end.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LoginDialog } from '../../proxies/terminal/login-dialog.ts'
import { LOGIN_OPTIONS } from '../../src/model/login-options.ts'
import { cut } from '../proxies/stream-events.ts'

const PASSWORD = 'Sec-ret1'
const ENABLE = 'En-able2'

const words = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('login: ', 'Username: ', 'Password: ', 'sw1> ', 'sw1# ', '$ ') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(PASSWORD, ENABLE, 'admin', '\r\n', 'Login incorrect\r\n', '\x1b[2J'),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
)
const said = fc.record({
  text: fc.array(words, { maxLength: 6 }).map((parts) => Buffer.from(parts.join(''))),
  isLong: fc.boolean(),
  ends: fc.array(fc.nat(60), { maxLength: 5 }),
})
const login = fc.record({
  login: fc.constantFrom('admin', ''),
  hasPassword: fc.boolean(),
  hasEnable: fc.boolean(),
  isPersonal: fc.boolean(),
})
type Said = typeof said extends fc.Arbitrary<infer T> ? T : never
type Login = typeof login extends fc.Arbitrary<infer T> ? T : never

function outcome({ hasPassword, hasEnable, ...given }: Login, all: Said[], isCut: boolean) {
  const dialog = new LoginDialog({
    ...given,
    name: 'sw1',
    options: LOGIN_OPTIONS,
    ...(hasPassword && { password: PASSWORD }),
    ...(hasEnable && { enable: ENABLE }),
  })
  let shown = ''
  const typed: string[] = []
  const show = (bytes: Uint8Array) => {
    shown += Buffer.from(bytes).toString('latin1')
  }
  for (const { text, isLong, ends } of all) {
    for (const piece of isCut ? cut(text, ends) : [text]) show(dialog.receive(piece))
    const step = dialog.silent(isLong)
    if (step && 'type' in step) typed.push(step.type)
    else if (step) {
      if ('in' in step) show(dialog.flush())
      return { shown, typed, end: 'in' in step ? 'in' : step.failed, brokenOff: '' }
    }
  }
  return { shown, typed, end: undefined, brokenOff: dialog.brokenOff }
}

test('a login at a target that says anything', () => {
  const ends = new Set<string>()
  fc.assert(
    fc.property(login, fc.array(said, { maxLength: 8 }), (given, all) => {
      const whole = outcome(given, all, false)
      expect(outcome(given, all, true)).toEqual(whole)
      const { typed, shown, end = 'goes on', brokenOff } = whole
      expect(new Set(typed).size).toBe(typed.length)
      const may = [given.login, given.hasPassword ? PASSWORD : '', given.hasEnable ? ENABLE : '', 'enable']
      for (const line of typed) expect(may).toContain(line.slice(0, -1))
      for (const [secret, isGiven] of [
        [PASSWORD, given.hasPassword],
        [ENABLE, given.hasEnable],
      ] as const) {
        if (isGiven) expect(shown + end + brokenOff).not.toContain(secret)
      }
      ends.add(/refused|in$|goes on|none/.exec(end)?.[0] ?? end)
    }),
    { numRuns: 1_000 },
  )
  expect([...ends]).toEqual(expect.arrayContaining(['refused', 'in', 'goes on', 'none']))
})
