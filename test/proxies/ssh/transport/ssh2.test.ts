import { Buffer } from 'node:buffer'
import { expect, test, vi } from 'vitest'
import { afterExchange, releaseUnused, type Ssh2Protocol } from '../../../../proxies/ssh/transport/ssh2.ts'

/** Returns the part of ssh2's protocol that is released, with these algorithms. */
function protocolWith(algorithms: string): Ssh2Protocol {
  const protocol = {
    _offer: { lists: { all: Buffer.from(algorithms) } },
    _handlers: { CHANNEL_DATA: vi.fn(), CHANNEL_OPEN: vi.fn(), DISCONNECT: vi.fn() },
    _compatFlags: 1,
    _kex: {
      sessionID: Buffer.from('session'),
      negotiated: { serverHostKey: 'ssh-ed25519' },
      _keys: 'key pair',
      finish: () => {
        throw new Error('an exchange that has ended went on')
      },
    },
  }
  return protocol as unknown as Ssh2Protocol
}

test('connections with the same algorithms share their offer, and others have their own', () => {
  const [first, second, other] = ['aes128-gcm', 'aes128-gcm', 'aes256-gcm'].map(protocolWith)
  for (const protocol of [first!, second!, other!]) releaseUnused(protocol)
  expect(second!._offer).toBe(first!._offer)
  expect(other!._offer).not.toBe(first!._offer)
  expect(other!._offer.lists.all.toString()).toBe('aes256-gcm')
})

test('the functions for channels go, since their messages never reach ssh2, and no other', () => {
  const protocol = protocolWith('aes128-gcm')
  const { DISCONNECT } = protocol._handlers
  releaseUnused(protocol)
  expect(protocol._handlers).toEqual({ CHANNEL_DATA: undefined, CHANNEL_OPEN: undefined, DISCONNECT })
})

test('keys and secret of a key exchange go at its end, and what identifies the session stays', () => {
  const protocol = protocolWith('aes128-gcm')
  const { finish } = protocol._kex
  afterExchange(protocol)
  expect(protocol._kex.finish).not.toBe(finish)
  expect(protocol._kex.finish()).toBe(false)
  expect(protocol._kex._keys).toBe(null)
  expect(protocol._kex.sessionID.toString()).toBe('session')
})
