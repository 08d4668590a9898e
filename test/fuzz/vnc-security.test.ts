/**
 * The VNC handshake with a peer that sends anything: it ends in one of its own errors, and reads no more than
 * its limits.
 */
import { Buffer } from 'node:buffer'
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EndedError } from '../../proxies/bytes/ended.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { uint32 } from '../../proxies/vnc/security/channel.ts'
import { RefusedError, signIn } from '../../proxies/vnc/security/client.ts'
import { FrameOpener } from '../../proxies/vnc/security/frames.ts'
import { welcome } from '../../proxies/vnc/security/server.ts'
import { skipTightInit } from '../../proxies/vnc/security/tight.ts'
import { VNC_SECURITY_TYPES, type VncOfferedType } from '../../src/model/vnc-options.ts'
import { MemoryChannel } from '../proxies/vnc/security/pair.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const OFFERS: readonly VncOfferedType[] = ['x509plain', 'tlsvnc', 'plain', 'ra2_256', 'apple_dh', 'vncauth']
/** Reasons and passwords are the largest single reads of either side. */
const LARGEST_READ = 4096

const version = fc.constantFrom('RFB 003.003\n', 'RFB 003.007\n', 'RFB 003.008\n', 'RFB 003.889\n')
const number = fc.constantFrom(0, 1, 2, 3, 5, 16, 19, 30, 113, 129, 255)
const word = fc.oneof(
  fc.constantFrom(0, 1, 2, 4, 256, 257, 258, 259, 262, 2048, 0x7fffffff, 0xffffffff),
  fc.nat(300),
)
/** Whole parts of the protocol, and random bytes. */
const part = fc.oneof(
  number.map((one) => Buffer.from([one])),
  fc.array(number, { maxLength: 5 }).map((list) => Buffer.from([list.length, ...list])),
  word.map(uint32),
  fc.constantFrom(
    Buffer.from([0, 2]),
    Buffer.from('TGHTULGNAUTH'),
    Buffer.from('STDVVNCAUTH_'),
    Buffer.alloc(16, 7),
    Buffer.alloc(128, 0xfb),
  ),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
)
const sent = fc
  .tuple(version, fc.array(part, { maxLength: 20 }))
  .map(([begin, parts]) => Buffer.concat([Buffer.from(begin), ...parts]))

function peerOf(bytes: Buffer): MemoryChannel {
  const channel = new MemoryChannel()
  channel.receive(bytes)
  channel.end()
  return channel
}

const isOwn = (error: unknown): boolean =>
  [MalformedError, EndedError, RefusedError].some((kind) => error instanceof kind)

describe('whatever comes', () => {
  test('a server lets nobody in whom nobody has judged to be right', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(sent, fc.uint8Array({ maxLength: 64 })), async (bytes) => {
        const channel = peerOf(Buffer.from(bytes))
        const judge = async () => ({ refused: 'no' })
        try {
          expect(await welcome(channel, { offers: OFFERS, rsaKey: rsa.privateKey, judge })).toBeUndefined()
        } catch (error) {
          if (!isOwn(error)) throw error
        }
        expect(channel.largestRead).toBeLessThanOrEqual(LARGEST_READ)
      }),
      { numRuns: 2000 },
    )
  })

  test('a client ends, and says little to who says little', async () => {
    await fc.assert(
      fc.asyncProperty(sent, async (bytes) => {
        const channel = peerOf(bytes)
        const judge = async () => undefined
        try {
          const options = { user: 'u', password: 'p', isShared: true, without: new Set<never>(), judge }
          const { isTight } = await signIn(channel, { allowed: VNC_SECURITY_TYPES, ...options })
          if (isTight) await skipTightInit(channel)
        } catch (error) {
          if (!isOwn(error)) throw error
        }
        expect(channel.largestRead).toBeLessThanOrEqual(LARGEST_READ)
        expect(channel.written).toBeLessThan(1024)
      }),
      { numRuns: 2000 },
    )
  })

  test('frames open, or do not', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (chunks) => {
        const opener = new FrameOpener(Buffer.alloc(16))
        try {
          for (const chunk of chunks) expect(opener.open(chunk).length).toBe(0)
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedError)
        }
      }),
    )
  })
})
