/** Redirections that a target may and may not make. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { destinationOf } from '../../../../proxies/rdp/back/destination.ts'
import type { Redirection } from '../../../../proxies/rdp/codec/redirection.ts'
import { TargetError } from '../../../../proxies/wording/errors.ts'

const HERE = { name: 'win1', target: { host: '127.0.0.1', port: 3390 } }

const sent = (
  redirection: Omit<Redirection, 'session'>,
  redirectTo: readonly string[] = [],
  host = '127.0.0.1',
) => destinationOf({ session: 1, ...redirection }, { ...HERE, target: { ...HERE.target, host }, redirectTo })

test.each<[string, Omit<Redirection, 'session'>, readonly string[], object]>([
  [
    'by a token, whoever balances the load finds the server',
    { routingToken: 'Cookie: msts=3640205228.15629.0000\r\n', address: '192.0.2.7' },
    [],
    { host: '127.0.0.1', port: 3390, routingToken: 'Cookie: msts=3640205228.15629.0000' },
  ],
  ['to its own address', { address: '127.0.0.1' }, [], { host: '127.0.0.1', port: 3390 }],
  [
    'to its own address, written otherwise',
    { address: '::ffff:127.0.0.1' },
    [],
    { host: '::ffff:127.0.0.1', port: 3390 },
  ],
  [
    'to a network of the policy',
    { address: '192.0.2.7' },
    ['198.51.100.0/24', '192.0.2.0/24'],
    { host: '192.0.2.7', port: 3390 },
  ],
])('%s', async (_, redirection, redirectTo, destination) => {
  expect(await sent(redirection, redirectTo)).toEqual(destination)
})

test('to its own address, where the device has a name', async () => {
  expect(await sent({ address: '127.0.0.1' }, [], 'localhost')).toEqual({ host: '127.0.0.1', port: 3390 })
})

test.each<[string, Omit<Redirection, 'session'>, readonly string[], string]>([
  ['elsewhere', { address: '192.0.2.7' }, [], 'sends the session to 192.0.2.7, which is not in redirect_to'],
  ['outside of the policy', { address: '192.0.3.7' }, ['192.0.2.0/24'], 'sends the session to 192.0.3.7'],
  [
    'to a name, which could be anywhere',
    { address: 'win2.example' },
    ['0.0.0.0/0'],
    'sends the session to win2.example',
  ],
  ['nowhere', {}, [], 'does not say where'],
  [
    'by a token that would begin another request',
    { routingToken: 'a\r\nCookie: b' },
    [],
    'one line of at most',
  ],
  ['by a token without end', { routingToken: 'a'.repeat(201) }, [], 'routing token of 201 bytes'],
])('not %s', async (_, redirection, redirectTo, words) => {
  await expect(sent(redirection, redirectTo)).rejects.toThrow(words)
  await expect(sent(redirection, redirectTo)).rejects.toBeInstanceOf(TargetError)
})

test('whatever a target says: its own address, one of the policy, or the one error', async () => {
  const text = fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.constant('127.0.0.1'))
  await fc.assert(
    fc.asyncProperty(
      fc.option(text, { nil: undefined }),
      fc.option(text, { nil: undefined }),
      async (address, routingToken) => {
        const redirection = {
          ...(address !== undefined && { address }),
          ...(routingToken !== undefined && { routingToken }),
        }
        const found = await sent(redirection, ['10.0.0.0/8']).catch((error) => error)
        if (found instanceof TargetError) return
        expect(found.port).toBe(3390)
        expect(found.host).toMatch(/^(127\.0\.0\.1|::ffff:127\.0\.0\.1|::ffff:7f00:1|(::ffff:)?10\..*)$/i)
        expect(found.routingToken ?? '').toMatch(/^[\x20-\x7e]*$/)
      },
    ),
  )
})
