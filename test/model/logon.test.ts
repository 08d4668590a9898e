import { expect, it } from 'vitest'
import {
  MAX_TYPED_LOGIN_BYTES,
  MAX_TYPED_PASSWORD_BYTES,
  mappedLogin,
  typedLoginFlaw,
  typedPasswordFlaw,
} from '../../src/model/logon.ts'

it.each([
  ['ops1', 'ops1'],
  ['alice@corp.example', 'alice'],
  ['alice@home@corp', 'alice@home'],
  ['@corp', '@corp'],
  ['Zoë', 'Zoë'],
])('%s is mapped to %s', (user, login) => {
  expect(mappedLogin(user)).toBe(login)
})

it.each(['root', 'CORP\\alice', 'alice@corp', 'a b', 'é'.repeat(MAX_TYPED_LOGIN_BYTES / 2)])(
  'the login %j may be typed',
  (login) => {
    expect(typedLoginFlaw(login)).toBeUndefined()
  },
)

it.each([
  '',
  '-froot',
  'ro\u0000ot',
  'root\r\n',
  '\u001b[2J',
  'root\u202e',
  '\ufffd',
  'é'.repeat(65),
  'x'.repeat(1e6),
])('the login %j may not, and the reason does not repeat it', (login) => {
  const flaw = typedLoginFlaw(login)
  expect(flaw).toMatch(/^the login must not /)
  if (login !== '') expect(flaw).not.toContain(login)
})

it('a password is bounded', () => {
  expect(typedPasswordFlaw('')).toBe('the password must not be empty')
  expect(typedPasswordFlaw('ü'.repeat(MAX_TYPED_PASSWORD_BYTES / 2))).toBeUndefined()
  expect(typedPasswordFlaw(`${'ü'.repeat(MAX_TYPED_PASSWORD_BYTES / 2)}x`)).toMatch(/longer than 1024 bytes/)
})
