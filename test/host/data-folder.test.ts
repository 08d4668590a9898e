import { X509Certificate } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { holdKeys, holdRotation, openDataFolder, shareKeys } from '../../src/host/data-folder.ts'
import { selfSigned } from '../../src/host/front-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-data-folder-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a data folder', () => {
  test('that others can read is refused', () => {
    const path = join(folder, 'open')
    mkdirSync(path)
    chmodSync(path, 0o750)
    expect(() => openDataFolder(path)).toThrow(`chmod 700 ${path}`)
  })

  test.skipIf(process.geteuid?.() !== 0)('of another user is refused, by root too', () => {
    const path = join(folder, 'foreign')
    mkdirSync(path, { mode: 0o700 })
    chownSync(path, 12_345, 12_345)
    expect(() => openDataFolder(path)).toThrow(
      `the data folder ${path} belongs to user 12345, and this is user 0`,
    )
  })

  test('that is made is nobody else’s', () => {
    const path = join(folder, 'made')
    openDataFolder(path)
    expect(() => openDataFolder(path)).not.toThrow()
  })
})

test('the self-signed certificate is no authority: its key can vouch for no other host', async () => {
  const { cert } = await selfSigned('bastion.example.com')
  const made = new X509Certificate(cert)
  expect(made.ca).toBe(false)
  expect(made.checkHost('bastion.example.com')).toBe('bastion.example.com')
  expect(made.verify(made.publicKey)).toBe(true)
})

describe('the keys of a data folder', () => {
  const path = join(folder, 'keys')
  beforeAll(() => openDataFolder(path))

  test('are used by any number of processes, and replaced by one that is alone with them', () => {
    const releases = [shareKeys(path), shareKeys(path)]
    expect(() => holdKeys(path)).toThrow('stop the broker first')
    for (const release of releases) release()
    const release = holdKeys(path)
    expect(() => shareKeys(path)).toThrow('its keys are being replaced')
    release()
    shareKeys(path)()
  })

  test('have one replacement at a time, whoever uses them', () => {
    const users = shareKeys(path)
    const release = holdRotation(path)
    expect(() => holdRotation(path)).toThrow('its master key is being replaced already')
    release()
    holdRotation(path)()
    users()
  })
})
