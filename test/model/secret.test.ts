import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { Secret } from '../../src/model/secret.ts'

const secret = Secret.of('known at the first door')

test.each([
  ['as text', `${secret}`],
  ['joined to text', [secret].join()],
  ['as JSON', JSON.parse(JSON.stringify(secret))],
  ['inspected', inspect(secret)],
])('a secret %s is [secret]', (_, shown) => expect(shown).toBe('[secret]'))

test('a secret within an object shows nothing either', () => {
  expect(JSON.stringify({ password: secret })).toBe('{"password":"[secret]"}')
  expect(inspect({ deep: [{ secret }] }, { depth: null, showHidden: true })).not.toContain('door')
})

test('a wiped secret has no bytes any more', () => {
  const wiped = Secret.of('gone')
  const bytes = wiped.reveal()
  wiped.wipe()
  expect([...bytes]).toEqual([0, 0, 0, 0])
  expect(() => wiped.reveal()).toThrow('already wiped')
})
