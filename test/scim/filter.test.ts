/** Filters: the grammar of RFC 7644, evaluation against a plain model, and any text in linear time. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ScimError } from '../../src/scim/error.ts'
import { type Filter, parseFilter, parsePath } from '../../src/scim/filter.ts'
import { testOf } from '../../src/scim/match.ts'
import { times } from '../times.ts'

const bjensen = {
  userName: 'BJensen',
  externalId: 'Ab',
  active: true,
  name: { familyName: "O'Malley" },
  emails: [
    { type: 'work', value: 'bj@example.com', primary: true },
    { type: 'home', value: 'b@home.org' },
  ],
  meta: { resourceType: 'User', lastModified: '2031-05-13T04:42:34.000Z' },
}
const meets = (text: string) => testOf('User', parseFilter(text))(bjensen)

describe('examples of RFC 7644', () => {
  test.each([
    ['userName Eq "bjensen"', true],
    [`name.familyName co "O'Malley"`, true],
    ['userName sw "J"', false],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "b"', true],
    ['title pr', false],
    ['emails pr', true],
    ['meta.lastModified gt "2011-05-13T04:42:34Z"', true],
    ['meta.lastModified le "2031-05-13T06:42:34+02:00"', true],
    ['title pr or active eq true', true],
    ['emails.type eq "work" and (emails co "example.com" or emails.value co "example.org")', true],
    ['emails[type eq "work" and value co "home.org"]', false],
    ['emails[type eq "work" and (value co "@example" or value co "@x")]', true],
    ['emails[type eq "home"].value ew ".org"', true],
    ['not (userName eq "x" and active eq true)', true],
    ['NOT (userName eq "bjensen")', false],
    ['externalId eq "ab"', false],
    ['active eq "True"', true],
    ['displayName eq null', true],
    ['displayName ne "x"', true],
  ])('%s', (text, expected) => expect(meets(text)).toBe(expected))
})

test('"and" binds stronger than "or"', () => {
  expect(parseFilter('a pr or b pr and c pr')).toEqual(parseFilter('a pr or (b pr and c pr)'))
  expect(parseFilter('userName eq "a\\"b\\\\"')).toMatchObject({ value: 'a"b\\' })
})

test.each([
  '',
  'userName',
  'userName eq',
  'userName eq x',
  'userName pr pr',
  '(userName pr',
  'userName pr)',
  'emails[',
  'emails[type pr',
  'a eq "\n',
  'userName eq "a" "b"',
  'a[b[c pr]] pr',
])('refuses %j', (text) => {
  expect(() => testOf('User', parseFilter(text))).toThrow(ScimError)
})

test('paths have a filter and a part', () => {
  expect(parsePath('emails[type eq "work"].value')).toMatchObject({ path: 'emails', part: 'value' })
  expect(() => parsePath('emails[type eq "work"].value.x.y z')).toThrow(ScimError)
})

/** A filter as text, and what it means. */
interface Meant {
  text: string
  isMet: (user: User) => boolean
}
interface User {
  userName: string
  active: boolean
  emails: { type: string; value: string }[]
}
const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'A', '"', '\\', ' '), maxLength: 3 })
const low = (text: string) => text.toLowerCase()
const leaf: fc.Arbitrary<Meant> = fc.oneof(
  letters.map((v) => ({
    text: `userName eq ${JSON.stringify(v)}`,
    isMet: (u: User) => low(u.userName) === low(v),
  })),
  letters.map((v) => ({
    text: `userName CO ${JSON.stringify(v)}`,
    isMet: (u: User) => low(u.userName).includes(low(v)),
  })),
  fc.boolean().map((v) => ({ text: `active eq ${v}`, isMet: (u: User) => u.active === v })),
  fc.tuple(letters, letters).map(([t, v]) => ({
    text: `emails[type eq ${JSON.stringify(t)} and value sw ${JSON.stringify(v)}]`,
    isMet: (u: User) => u.emails.some((e) => low(e.type) === low(t) && low(e.value).startsWith(low(v))),
  })),
)
const meant = fc.letrec<{ any: Meant }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc
      .tuple(tie('any'), tie('any'))
      .map(([a, b]) => ({
        text: `(${a.text}) and (${b.text})`,
        isMet: (u: User) => a.isMet(u) && b.isMet(u),
      })),
    fc
      .tuple(tie('any'), tie('any'))
      .map(([a, b]) => ({
        text: `(${a.text}) OR (${b.text})`,
        isMet: (u: User) => a.isMet(u) || b.isMet(u),
      })),
    tie('any').map((a) => ({ text: `not (${a.text})`, isMet: (u: User) => !a.isMet(u) })),
  ),
})).any
const users = fc.record({
  userName: letters,
  active: fc.boolean(),
  emails: fc.array(fc.record({ type: letters, value: letters }), { maxLength: 3 }),
})

test('means what a plain reading says', () => {
  fc.assert(
    fc.property(meant, users, (filter, user) => {
      fc.pre(filter.text.length < 4000)
      expect(testOf('User', parseFilter(filter.text))({ ...user })).toBe(filter.isMet(user))
    }),
    { numRuns: times(500, 50_000) },
  )
})

test('any text is a filter or refused, whatever its length', () => {
  const token = fc.constantFrom(
    '(',
    ')',
    '[',
    ']',
    '"',
    '\\',
    ' ',
    'and',
    'or',
    'not',
    'eq',
    'pr',
    'userName',
    '.',
    '1',
    'urn:',
    'é',
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(token, { maxLength: 300 }).map((all) => all.join('')),
      ),
      (text) => {
        let filter: Filter
        try {
          filter = parseFilter(text)
          testOf('User', filter)
        } catch (error) {
          expect(error).toBeInstanceOf(ScimError)
        }
      },
    ),
    { numRuns: times(500, 50_000) },
  )
})
