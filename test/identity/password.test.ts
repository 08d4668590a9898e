import { argon2Sync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { BusyError, MAX_CONCURRENT, MAX_PASSWORD_BYTES, PasswordHasher } from '../../src/identity/password.ts'
import { Secret } from '../../src/model/secret.ts'

const passwords = new PasswordHasher()
const quick = new PasswordHasher({ memory: 64, passes: 1 })

describe('a password', () => {
  it('is hashed by argon2id with the parameters in the hash', async () => {
    const hash = await passwords.hash(Secret.of('correct horse'))
    const [, salt = '', tag = ''] =
      /^\$argon2id\$v=19\$m=19456,t=2,p=1\$([^$]{22})\$([^$]{43})$/.exec(hash) ?? []
    const expected = argon2Sync('argon2id', {
      message: 'correct horse',
      nonce: Buffer.from(salt, 'base64'),
      parallelism: 1,
      tagLength: 32,
      memory: 19_456,
      passes: 2,
    })
    expect(Buffer.from(tag, 'base64')).toEqual(expected)
    expect(await passwords.hash(Secret.of('correct horse'))).not.toBe(hash)
  })

  it('verifies against its own hash only', async () => {
    const hash = await quick.hash(Secret.of('Zoë'))
    expect(await quick.verify(hash, Secret.of('Zoë'))).toBe(true)
    expect(await quick.verify(hash, Secret.of('Zoe\u0308'))).toBe(true)
    expect(await quick.verify(hash, Secret.of('zoë'))).toBe(false)
    expect(await quick.verify(hash, Secret.of(''))).toBe(false)
    expect(await passwords.verify(hash, Secret.of('Zoë'))).toBe(true)
    for (const none of [undefined, '', 'Zoë', hash.slice(0, -30)]) {
      expect(await quick.verify(none, Secret.of('Zoë'))).toBe(false)
    }
  })

  it('has 1 to 1024 bytes, and what is beyond is never cut off', async () => {
    const longest = 'x'.repeat(MAX_PASSWORD_BYTES)
    const hash = await quick.hash(Secret.of(longest))
    expect(await quick.verify(hash, Secret.of(longest))).toBe(true)
    expect(await quick.verify(hash, Secret.of(`${longest}y`))).toBe(false)
    await expect(quick.hash(Secret.of(`${longest}y`))).rejects.toThrow(RangeError)
    await expect(quick.hash(Secret.of(''))).rejects.toThrow(RangeError)
  })

  it('is to be hashed anew when the parameters have changed', async () => {
    const hash = await quick.hash(Secret.of('x'))
    expect(quick.needsRehash(hash)).toBe(false)
    expect(passwords.needsRehash(hash)).toBe(true)
  })
})

it('hashing is refused at once when too many wait, and goes on afterwards', async () => {
  const narrow = new PasswordHasher({ memory: 64, passes: 1, maxWaiting: 3 })
  const all = await Promise.allSettled(Array.from({ length: 10 }, () => narrow.hash(Secret.of('x'))))
  expect(all.filter((one) => one.status === 'fulfilled')).toHaveLength(MAX_CONCURRENT + 3)
  expect(all.filter((one) => one.status === 'rejected').every((one) => one.reason instanceof BusyError)).toBe(
    true,
  )
  await narrow.hash(Secret.of('x'))
})
