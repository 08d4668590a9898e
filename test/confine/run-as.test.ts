import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { maySetUser, workerUser } from '../../src/confine/run-as.ts'

let folder: string
let passwd: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-as-'))
  passwd = join(folder, 'passwd')
  const lines = [
    'root:x:0:0:root:/root:/bin/bash',
    '# sallyport-session:x:1:1::/:',
    'sallyport-session:x:990:985:a comment: with more:/nonexistent:/usr/sbin/nologin',
    'toor:x:0:985::/:',
    'broken:x::985::/:',
    'sallyport:x:991:986::/:',
  ]
  writeFileSync(passwd, lines.join('\n'))
})
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(() => vi.restoreAllMocks())

describe('run_as', () => {
  test("is a user's number and that of its first group", () => {
    expect(workerUser('sallyport-session', passwd)).toEqual({ uid: 990, gid: 985 })
  })

  test.each(['nobody-here', 'sallyport-sess', 'broken', '.*'])(
    '%j is no user: the error has the remedy',
    (name) => {
      expect(() => workerUser(name, passwd)).toThrow(
        `run_as: ${passwd} has no user ${name}: useradd --system --no-create-home --shell /usr/sbin/nologin ${name}`,
      )
    },
  )

  test('is sallyport-session if the configuration names none', () => {
    expect(workerUser(undefined, passwd)).toEqual({ uid: 990, gid: 985 })
  })

  test("without that user is an id that is nobody's", () => {
    const without = join(folder, 'without')
    writeFileSync(without, 'root:x:0:0::/:\nlast:x:65533:100::/:\nother:x:100:65532::/:\n')
    expect(workerUser(undefined, without)).toEqual({ uid: 65_531, gid: 65_531 })
    const all = Array.from({ length: 14 }, (_, index) => `u${index}:x:${65_520 + index}:1::/:`)
    writeFileSync(without, all.join('\n'))
    expect(() => workerUser(undefined, without)).toThrow('name a user for session workers')
  })

  test.each(['root', 'toor'])('is not %s, whose number is 0', (name) => {
    expect(() => workerUser(name, passwd)).toThrow(`run_as: ${name} is root`)
  })
})

describe('whether this process may set the user of others', () => {
  const statusOf = (effective: string): string => {
    const file = join(folder, `status-${effective}`)
    writeFileSync(file, `Name:\tnode\nCapInh:\tffffffff\nCapEff:\t${effective}\nCapBnd:\tffffffff\n`)
    return file
  }

  test.each([
    ['00000000000004e0', true],
    ['00000000000004c0', false],
    ['0000000000000080', false],
    ['0000000000000040', false],
    ['0000000000000400', false],
  ])('capabilities %s: %s', (effective, may) => {
    vi.spyOn(process, 'getuid').mockReturnValue(990)
    expect(maySetUser(statusOf(effective))).toBe(may)
  })

  test('root may', () => {
    vi.spyOn(process, 'getuid').mockReturnValue(0)
    expect(maySetUser(statusOf('0000000000000000'))).toBe(true)
  })

  test('a system without such a file has no capabilities', () => {
    vi.spyOn(process, 'getuid').mockReturnValue(990)
    expect(maySetUser(join(folder, 'nowhere'))).toBe(false)
  })
})
