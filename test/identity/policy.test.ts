import { describe, expect, it } from 'vitest'
import { PasswordPolicy } from '../../src/identity/policy.ts'

const policy = new PasswordPolicy()
const flawOf = (password: string, ...names: string[]) => policy.flawOf(password, names)

describe('a new password', () => {
  it('has so many characters at least, whatever they are', async () => {
    expect(await flawOf('sev3n ☃')).toBe('expected 8 characters at least')
    expect(await flawOf('tür ☃ zu')).toBeUndefined()
    // An accent may be two code points on one keyboard, and one on another.
    expect(await flawOf('sevené '.normalize('NFD'))).toBe('expected 8 characters at least')
    expect(await new PasswordPolicy({ minLength: 15 }).flawOf('fourteen chars', [])).toBe(
      'expected 15 characters at least',
    )
  })

  it.each([
    'password',
    'Password123!',
    'P@ssw0rd',
    'qwertyuiop',
    'letmein2026',
    '!!iloveyou!!',
    'ADMINISTRATOR',
    'trustno1!',
  ])('is none that many have: %s', async (password) => {
    expect(await flawOf(password)).toBe('it is one that many people have')
  })

  it.each([
    ['ops1-1234', ['ops1']],
    ['Mary.Jones99', ['mjones', 'Mary Jones', 'mary']],
    ['senoJyraM7', ['mjones', 'Mary Jones', 'mary']],
    ['operator+1', ['Operator', '', '']],
  ] as const)('is not little more than a name of the user: %s', async (password, names) => {
    expect(await flawOf(password, ...names)).toBe('it is little more than a name of the user')
    expect(await flawOf(password, 'somebody')).not.toBe('it is little more than a name of the user')
  })

  it.each(['aaaaaaaaaaaa', 'abcabcabcabcab', '12345678', 'hgfedcba', '13579bdf', '11112222'])(
    'is no row and no repetition: %s',
    async (password) => {
      expect(await flawOf(password)).toMatch('it repeats itself')
    },
  )

  it.each([
    ['first door, second door', 'admin'],
    ['known at the first door', 'ops1'],
    ['correct horse battery staple', 'admin'],
    ['initial-Passw0rd', 'ops1'],
    ['x7#Kq9!m', 'ops1'],
    ['Schlüssel-1', 'al'],
  ])('may be anything else: %s', async (password, name) => {
    expect(await flawOf(password, name)).toBeUndefined()
  })
})
