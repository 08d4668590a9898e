import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { userOf } from '../../src/confine/run-as.ts'

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

describe('run_as', () => {
  test("is a user's number and that of its first group", () => {
    expect(userOf('sallyport-session', passwd)).toEqual({ uid: 990, gid: 985 })
  })

  test.each(['nobody-here', 'sallyport-sess', '', 'broken', '.*'])(
    '%j is no user: the error has the remedy',
    (name) => {
      expect(() => userOf(name, passwd)).toThrow(
        `run_as: ${passwd} has no user ${name}: useradd --system --no-create-home --shell /usr/sbin/nologin ${name}`,
      )
    },
  )

  test.each(['root', 'toor'])('is not %s, whose number is 0', (name) => {
    expect(() => userOf(name, passwd)).toThrow(`run_as: ${name} is root`)
  })
})
