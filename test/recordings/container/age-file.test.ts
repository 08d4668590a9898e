/** Wrapped keys, opened by the library; by the program `age` in writer.test.ts. */
import { generateHybridIdentity, identityToRecipient } from 'age-encryption'
import { expect, test } from 'vitest'
import { makeIdentity, recipientOf, unwrapKey, wrapKey } from '../../../recordings/container/keys.ts'
import { Secret } from '../../../src/model/secret.ts'

const key = Uint8Array.from({ length: 32 }, (_, index) => index * 7)

test('each recipient opens a wrapped key, and no one else', async () => {
  const identities = [await makeIdentity(), await makeIdentity()]
  const wrapped = await wrapKey(key, await Promise.all(identities.map(recipientOf)))
  for (const identity of identities) {
    expect(Buffer.from(await unwrapKey(wrapped, identity))).toEqual(Buffer.from(key))
  }
  await expect(unwrapKey(wrapped, await makeIdentity())).rejects.toMatchObject({ code: 'wrong_key' })
  const changed = Uint8Array.from(wrapped)
  changed[changed.length - 1]! ^= 1
  await expect(unwrapKey(changed, identities[0]!)).rejects.toMatchObject({ code: 'bad_key_file' })
})

test('no two wrapped keys have anything in common', async () => {
  const recipient = await recipientOf(await makeIdentity())
  const lines = async () =>
    Buffer.from(await wrapKey(key, [recipient]))
      .toString('latin1')
      .split('\n')
  const [first, second] = [await lines(), await lines()]
  expect(first.filter((line) => second.includes(line))).toEqual(['age-encryption.org/v1'])
})

test('a recipient of another type is one beside the others', async () => {
  const hybrid = await generateHybridIdentity()
  const own = await makeIdentity()
  const wrapped = await wrapKey(key, [await identityToRecipient(hybrid)])
  expect(Buffer.from(await unwrapKey(wrapped, Secret.of(hybrid)))).toEqual(Buffer.from(key))
  await expect(unwrapKey(wrapped, own)).rejects.toMatchObject({ code: 'wrong_key' })
})

test('a mistyped recipient wraps nothing', async () => {
  const recipient = await recipientOf(await makeIdentity())
  const mistyped = recipient.replace(/.$/, (last) => (last === 'q' ? 'p' : 'q'))
  await expect(wrapKey(key, [mistyped])).rejects.toThrow()
})
