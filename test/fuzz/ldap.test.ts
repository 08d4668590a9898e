import fc from 'fast-check'
import { BerWriter, BusyError, PasswordPolicyControl } from 'ldapts'
import { expect, test } from 'vitest'
import { personFilter, userFilterFlaw } from '../../src/identity/methods/ldap/filter.ts'
import { refusalOf } from '../../src/identity/methods/ldap/refusals.ts'
import { METHOD_REFUSALS } from '../../src/identity/methods/method.ts'
import { groupKey } from '../../src/model/group-names.ts'

const value = fc
  .array(fc.oneof(fc.constantFrom('a', 'Z', '0', ' ', 'é', '\\28', '\\2a', '\\5c', ',', '=', '&')))
  .map((parts) => parts.join(''))
const attribute = fc.constantFrom('cn', 'uid', 'memberOf', 'x-y9')
const item = fc
  .tuple(attribute, fc.constantFrom('=', '>=', '<=', '~=', ':=', ':dn:=', ':caseExactMatch:='), value)
  .map((parts) => `(${parts.join('')})`)
const { filter } = fc.letrec<{ filter: string }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 4 },
    item,
    fc
      .tuple(fc.constantFrom('&', '|'), fc.array(tie('filter'), { minLength: 1, maxLength: 3 }))
      .map(([sign, parts]) => `(${sign}${parts.join('')})`),
    tie('filter').map((inner) => `(!${inner})`),
  ),
}))

function written(text: string): Buffer {
  const writer = new BerWriter()
  personFilter('uid', 'x', text).write(writer)
  return writer.buffer
}

test('a filter of the grammar is one, and with a part cut out is sent only if it still is', () => {
  fc.assert(
    fc.property(filter, fc.nat(), fc.nat({ max: 5 }), (text, from, length) => {
      if (text.split('(').length <= 64 && text.length <= 2048) expect(userFilterFlaw(text)).toBeUndefined()
      const begin = from % text.length
      const cut = text.slice(0, begin) + text.slice(begin + 1 + length)
      if (userFilterFlaw(cut) !== undefined) return
      expect(cut.split('(').length).toBe(cut.split(')').length)
      expect(written(cut).length).toBeGreaterThan(10)
    }),
  )
})

test('no text for a filter takes long, or throws', () => {
  const pieces = fc.constantFrom(
    '(',
    ')',
    '&',
    '|',
    '!',
    '=',
    '*',
    ':',
    ':dn',
    '\\',
    '\\2a',
    'cn',
    '2.5',
    '~',
    '\0',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 400 }), (parts) => {
      const text = `(${parts.join('')}`
      if (userFilterFlaw(text) === undefined) expect(written(text).length).toBeGreaterThan(10)
    }),
  )
  expect(userFilterFlaw(`(cn=${'*'.repeat(2000)}`)).toBeDefined()
  expect(userFilterFlaw(`(cn=${'a'.repeat(2000)}\\)`)).toBeDefined()
})

test('the words of a refusal give one of the known reasons, whatever they are', () => {
  const words = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom('d', 'a', 't', ' ', '5', '7', '3', 'e', ',') }),
    fc.stringMatching(/^data [0-9a-f]{1,9}$/),
  )
  const known = [undefined, 'must_change', ...METHOD_REFUSALS]
  fc.assert(
    fc.property(words, fc.nat({ max: 120 }), (text, code) => {
      const reason = refusalOf(Object.assign(new BusyError(text), { code }), new PasswordPolicyControl())
      expect(known).toContain(reason)
      if (code === 49) expect(reason).toBeDefined()
    }),
  )
})

test('a distinguished name keeps its key in other spellings, and a part of it has another', () => {
  const part = fc
    .array(fc.constantFrom('a', 'B', 'é', '\\,', '\\+', '\\2C', ' x'), { minLength: 1, maxLength: 6 })
    .map((parts) => `v${parts.join('')}v`)
  fc.assert(
    fc.property(fc.array(part, { minLength: 2, maxLength: 5 }), (parts) => {
      const name = parts.map((one) => `cn=${one}`).join(',')
      expect(groupKey(parts.map((one) => ` CN = ${one} `).join(', '))).toBe(groupKey(name))
      expect(groupKey(parts.map((one) => `cn=${one}`.replaceAll('\\2C', '\\,')).join(','))).toBe(
        groupKey(name),
      )
      expect(groupKey(name.slice(0, name.lastIndexOf(',cn=')))).not.toBe(groupKey(name))
    }),
  )
  fc.assert(
    fc.property(fc.string({ maxLength: 3000 }), (name) => {
      expect(groupKey(name).length).toBeLessThanOrEqual(512)
    }),
  )
})
