import { expect, test } from 'vitest'
import { HOME, returnPath } from '../../src/pages/return-path.ts'

test.each(['/account', '/account/keys', '/account?x=1', '/s/ABCD-EFGH'])('%s may be returned to', (path) => {
  expect(returnPath(path)).toBe(path)
})

test.each([
  undefined,
  ['/account', '/account'],
  '',
  'account',
  'https://evil.example/account',
  '//evil.example/account',
  '///evil.example',
  String.raw`/\evil.example`,
  String.raw`\\evil.example`,
  '/\t/evil.example',
  '\t//evil.example',
  '/account\r\nset-cookie: a=b',
  '/account/../signout',
  '/account/%2e%2e/signout',
  '/account/..%2f..//evil.example',
  '/accounting',
  '/s@evil.example',
  '/account@evil.example',
  '/account#@evil.example',
  'javascript:alert(1)',
  '/javascript:alert(1)',
  '/api/v3.12/users',
  '/signin/negotiate',
  `/account/${'a'.repeat(600)}`,
])('%j leads home', (text) => {
  const path = returnPath(text)
  expect(path === HOME || (path.startsWith('/account/') && !path.includes('evil.example/'))).toBe(true)
  expect(new URL(path, 'https://bastion.example').origin).toBe('https://bastion.example')
})
