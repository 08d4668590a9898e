import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { closedTo } from '../../src/confine/reach.ts'

/** Neither the owner of what a test makes nor in its group. */
const OTHER = { uid: 64_999, gid: 64_999 }

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reach-'))
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'product'), { mode: 0o755 })
  file = join(folder, 'product', 'main.js')
  writeFileSync(file, '')
  chmodSync(file, 0o644)
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('what is closed to another user', () => {
  test('is nothing where all may read', () => {
    expect(closedTo(OTHER, [file, folder])).toBeUndefined()
  })

  test('is a folder on the way, as in a clone below /root', () => {
    chmodSync(folder, 0o700)
    expect(closedTo(OTHER, [file])).toBe(folder)
  })

  test('is the file itself', () => {
    chmodSync(file, 0o600)
    expect(closedTo(OTHER, [file])).toBe(file)
  })

  test('is not what its own user or group may read', () => {
    chmodSync(file, 0o640)
    chmodSync(folder, 0o750)
    const own = { uid: process.getuid!(), gid: process.getgid!() }
    expect(closedTo(own, [file])).toBeUndefined()
    expect(closedTo({ ...own, uid: OTHER.uid }, [file])).toBeUndefined()
    expect(closedTo({ ...own, gid: OTHER.gid }, [file])).toBeUndefined()
    expect(closedTo(OTHER, [file])).toBe(folder)
  })
})
