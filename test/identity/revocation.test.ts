import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RevocationFile } from '../../src/identity/authorities.ts'
import { parseOfferedKey } from '../../src/identity/certificate.ts'
import { parseRevocationList, RevocationListError } from '../../src/identity/revocation.ts'
import { openWorkshop, type Workshop } from './certificates.ts'

let shop: Workshop
beforeAll(() => {
  shop = openWorkshop()
  for (const name of ['ca', 'other-ca', 'user', 'other']) shop.key(name)
})
afterAll(() => shop.remove())

const lineOf = (name: string) => shop.line(name)
const plain = (name: string) => parseOfferedKey(shop.blob(name))
const certified = (serial: number, keyId = `id-${serial}`, ca = 'ca') =>
  parseOfferedKey(shop.certify('user', ca, ['-I', keyId, '-n', 'ops1', '-z', String(serial)]))

describe('a key revocation list of ssh-keygen', () => {
  it.each(['key', 'sha1', 'sha256', 'hash'])('revokes a key by %s, and the certificates about it', (by) => {
    const entry =
      by === 'key' || by === 'sha1' || by === 'sha256'
        ? `${by}: ${lineOf('user')}`
        : `hash: ${fingerprint('user')}`
    const list = parseRevocationList(shop.revoke([entry]))
    expect(list.revokes(plain('user'))).toBe(true)
    expect(list.revokes(certified(1))).toBe(true)
    expect(list.revokes(plain('other'))).toBe(false)
  })

  it('revokes certificates by serial: single, in ranges, in heaps', () => {
    const few = parseRevocationList(shop.revoke(['serial: 5', 'serial: 100-200', 'serial: 1000000'], 'ca'))
    for (const serial of [5, 100, 150, 200, 1_000_000]) expect(few.revokes(certified(serial))).toBe(true)
    for (const serial of [0, 1, 4, 6, 99, 201, 999_999]) expect(few.revokes(certified(serial))).toBe(false)
    expect(few.revokes(certified(5, 'x', 'other-ca'))).toBe(false)
    expect(few.revokes(plain('user'))).toBe(false)

    // Every other serial, so that ssh-keygen writes a bitmap.
    const many = Array.from({ length: 200 }, (_, index) => `serial: ${1001 + 2 * index}`)
    const heap = parseRevocationList(shop.revoke(many, 'ca'))
    expect(heap.certificates.some(({ bitmaps }) => bitmaps.length > 0)).toBe(true)
    for (const serial of [1001, 1003, 1201, 1399]) expect(heap.revokes(certified(serial))).toBe(true)
    for (const serial of [1000, 1002, 1200, 1400, 1401]) expect(heap.revokes(certified(serial))).toBe(false)
  })

  it('revokes certificates by key id, exactly', () => {
    const list = parseRevocationList(shop.revoke(['id: alice laptop', 'id: bob'], 'ca'))
    expect(list.revokes(certified(1, 'alice laptop'))).toBe(true)
    expect(list.revokes(certified(1, 'bob'))).toBe(true)
    expect(list.revokes(certified(1, 'Bob'))).toBe(false)
    expect(list.revokes(certified(1, 'bob', 'other-ca'))).toBe(false)
  })

  it('without an authority revokes those of all', () => {
    const list = parseRevocationList(shop.revoke(['id: bob', 'serial: 9'], 'none'))
    expect(list.revokes(certified(9, 'x', 'other-ca'))).toBe(true)
    expect(list.revokes(certified(1, 'bob', 'ca'))).toBe(true)
  })

  it('revokes an authority with all that it certified', () => {
    const list = parseRevocationList(shop.revoke([`key: ${lineOf('ca')}`]))
    expect(list.revokes(certified(1))).toBe(true)
    expect(list.revokes(certified(1, 'x', 'other-ca'))).toBe(false)
    expect(list.revokes(plain('user'))).toBe(false)
  })

  it('is of no use cut short, at any byte, or with something behind it', () => {
    const bytes = shop.revoke(['serial: 5', 'id: bob', `sha256: ${lineOf('user')}`], 'ca')
    const whole = parseRevocationList(bytes)
    for (let length = 0; length < bytes.length; length++) {
      let list: typeof whole | undefined
      try {
        list = parseRevocationList(bytes.subarray(0, length))
      } catch (error) {
        expect(error).toBeInstanceOf(RevocationListError)
      }
      // Cut between two sections it is a shorter list, just as a text cut at a line's end.
      if (list) expect(list.certificates.length + list.sha256.size).toBeLessThan(2)
    }
    expect(() => parseRevocationList(Buffer.concat([bytes, Buffer.of(9)]))).toThrow(RevocationListError)
  })
})

describe('a list of public keys', () => {
  it('revokes the keys in it, a certificate for its key', () => {
    shop.certify('other', 'ca', ['-I', 'x', '-n', 'ops1'])
    const certificate = readFileSync(join(shop.folder, 'other-cert.pub'), 'utf8')
    const list = parseRevocationList(Buffer.from(`# gone\n\n${lineOf('user')}\r\n${certificate}`))
    expect(list.revokes(plain('user'))).toBe(true)
    expect(list.revokes(certified(1))).toBe(true)
    expect(list.revokes(plain('other'))).toBe(true)
    expect(list.revokes(plain('ca'))).toBe(false)
    expect(parseRevocationList(Buffer.alloc(0)).revokes(plain('user'))).toBe(false)
  })

  it('with another line is of no use', () => {
    expect(() => parseRevocationList(Buffer.from(`${lineOf('user')}\nssh-ed25519 AAAA\n`))).toThrow(
      'line 2 that is no public key',
    )
  })
})

describe('the file', () => {
  it('is read anew when it has changed, and fails when it is gone or broken', () => {
    const path = join(shop.folder, 'revoked')
    writeFileSync(path, '')
    const file = new RevocationFile(path)
    const first = file.current()
    expect(file.current()).toBe(first)
    expect(first.revokes(plain('user'))).toBe(false)
    writeFileSync(path, lineOf('user'))
    expect(file.current().revokes(plain('user'))).toBe(true)
    writeFileSync(path, 'nonsense')
    expect(() => file.current()).toThrow(RevocationListError)
    expect(() => file.current()).toThrow(path)
    // Read once, however many keys are offered meanwhile: the error is the very same one.
    const faults = [1, 2].map(() => {
      try {
        return file.current()
      } catch (error) {
        return error
      }
    })
    expect(faults[0]).toBeInstanceOf(RevocationListError)
    expect(faults[1]).toBe(faults[0])
    rmSync(path)
    expect(() => file.current()).toThrow('ENOENT')
    writeFileSync(path, '')
    expect(file.current().revokes(plain('user'))).toBe(false)
  })
})

/** Formats as `ssh-keygen -l` does. */
function fingerprint(name: string): string {
  const [, found = ''] = /(SHA256:\S+)/.exec(shop.fingerprint(name)) ?? []
  return found
}
