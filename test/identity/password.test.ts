import { argon2Sync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { BusyError } from '../../src/identity/errors.ts'
import { MAX_CONCURRENT, MAX_PASSWORD_BYTES, PasswordHasher } from '../../src/identity/password.ts'
import { Secret } from '../../src/model/secret.ts'

const passwords = new PasswordHasher()
const SOURCE = '192.0.2.1'
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
    expect(await quick.verify(hash, Secret.of('Zoë'), SOURCE)).toBe(true)
    expect(await quick.verify(hash, Secret.of('Zoe\u0308'), SOURCE)).toBe(true)
    expect(await quick.verify(hash, Secret.of('zoë'), SOURCE)).toBe(false)
    expect(await quick.verify(hash, Secret.of(''), SOURCE)).toBe(false)
    expect(await passwords.verify(hash, Secret.of('Zoë'), SOURCE)).toBe(true)
    for (const none of [undefined, '', 'Zoë', hash.slice(0, -30)]) {
      expect(await quick.verify(none, Secret.of('Zoë'), SOURCE)).toBe(false)
    }
  })

  it('has 1 to 1024 bytes, and what is beyond is never cut off', async () => {
    const longest = 'x'.repeat(MAX_PASSWORD_BYTES)
    const hash = await quick.hash(Secret.of(longest))
    expect(await quick.verify(hash, Secret.of(longest), SOURCE)).toBe(true)
    expect(await quick.verify(hash, Secret.of(`${longest}y`), SOURCE)).toBe(false)
    await expect(quick.hash(Secret.of(`${longest}y`))).rejects.toThrow(RangeError)
    await expect(quick.hash(Secret.of(''))).rejects.toThrow(RangeError)
  })

  it('is to be hashed anew when the parameters have changed', async () => {
    const hash = await quick.hash(Secret.of('x'))
    expect(quick.needsRehash(hash)).toBe(false)
    expect(passwords.needsRehash(hash)).toBe(true)
  })
})

it('checking is refused at once when too many wait, and goes on afterwards', async () => {
  const narrow = new PasswordHasher({ memory: 64, passes: 1, maxWaiting: 3 })
  const check = () => narrow.verify(undefined, Secret.of('x'), SOURCE)
  const all = await Promise.allSettled(Array.from({ length: 10 }, check))
  expect(all.filter((one) => one.status === 'fulfilled')).toHaveLength(MAX_CONCURRENT + 3)
  expect(all.filter((one) => one.status === 'rejected').every((one) => one.reason instanceof BusyError)).toBe(
    true,
  )
  expect(await check()).toBe(false)
})

it('a password is set while as many are checked as can be', async () => {
  const narrow = new PasswordHasher({ memory: 64, passes: 1, maxWaiting: 0 })
  const checks = Array.from({ length: MAX_CONCURRENT }, () =>
    narrow.verify(undefined, Secret.of('x'), SOURCE),
  )
  await expect(narrow.verify(undefined, Secret.of('x'), '198.51.100.1')).rejects.toThrow(BusyError)
  expect(await narrow.hash(Secret.of('new'))).toContain('argon2id')
  await Promise.all(checks)
})

describe('pretending to check a password', () => {
  it('takes nobody’s turn', async () => {
    const narrow = new PasswordHasher({ memory: 64, passes: 1, maxWaiting: 0 })
    await narrow.verify(undefined, Secret.of('x'), SOURCE)
    const pretended = Array.from({ length: MAX_CONCURRENT }, () => narrow.pretend(SOURCE))
    expect(await narrow.verify(undefined, Secret.of('x'), '198.51.100.1')).toBe(false)
    await Promise.all(pretended)
  })

  it('takes as long as checking one', { timeout: 300_000 }, async () => {
    const times: Record<'checked' | 'pretended', number[]> = { checked: [], pretended: [] }
    for (let round = 0; round < 25; round++) {
      for (const what of ['checked', 'pretended'] as const) {
        const begin = performance.now()
        if (what === 'pretended') await passwords.pretend(SOURCE)
        else await passwords.verify(undefined, Secret.of('wrong'), SOURCE)
        times[what].push(performance.now() - begin)
      }
    }
    const [checked, pretended] = [times.checked, times.pretended].map(
      (all) => all.toSorted((a, b) => a - b)[12]!,
    )
    expect(pretended! / checked!).toBeGreaterThan(0.5)
    expect(pretended! / checked!).toBeLessThan(2)
  })
})

it('a hash of other parameters is checked in the time of today’s', { timeout: 300_000 }, async () => {
  const old = await quick.hash(Secret.of('x'))
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < 25; round++) {
    for (const [index, hash] of [undefined, old].entries()) {
      const begin = performance.now()
      await passwords.verify(hash, Secret.of('wrong'), SOURCE)
      times[index as 0 | 1].push(performance.now() - begin)
    }
  }
  const [today, before] = times.map((all) => all.toSorted((a, b) => a - b)[12]!)
  expect(before! / today!).toBeGreaterThan(0.5)
  expect(before! / today!).toBeLessThan(2)
})
