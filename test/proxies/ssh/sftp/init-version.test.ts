import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { InitVersion } from '../../../../proxies/ssh/sftp/init-version.ts'

/** Builds an INIT with an extension, and the packet that follows. */
const stream = (version: number, type = 1) => {
  const bytes = Buffer.from('000000080100000000ffffffff0000000103ffffffff', 'hex')
  bytes[4] = type
  bytes.writeUInt32BE(version, 5)
  return bytes
}

/** Returns the changed bytes, fed in chunks of this size. */
function lowered(bytes: Buffer, size: number): Buffer {
  const init = new InitVersion()
  const out = Buffer.from(bytes)
  let goesOn = true
  for (let at = 0; at < out.length && goesOn; at += size) goesOn = init.lower(out.subarray(at, at + size))
  expect(goesOn).toBe(false)
  return out
}

describe.each([1, 2, 4, 7, 9, 100])('in pieces of %i', (size) => {
  it.each([4, 6, 255, 256, 0x0100_0000, 0xffff_ffff])(
    'version %i becomes 3, and nothing else changes',
    (version) => {
      expect(lowered(stream(version), size)).toEqual(stream(3))
    },
  )

  it.each([0, 1, 2, 3])('version %i stays', (version) => {
    expect(lowered(stream(version), size)).toEqual(stream(version))
  })

  it('what is no INIT stays', () => {
    expect(lowered(stream(6, 2), size)).toEqual(stream(6, 2))
  })
})
