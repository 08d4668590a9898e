import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { exposedFiles } from '../../src/config/exposure.ts'
import { parseConfig } from '../../src/config/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-exposure-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function secretFile(name: string, mode: number): string {
  const file = join(folder, name)
  writeFileSync(file, 'the community\n')
  chmodSync(file, mode)
  return file
}
const parsed = (text: string) =>
  parseConfig(text, join(folder, 'sallyport.yaml'), { env: { COMMUNITY: 'x' }, hostname: 'bastion' })
const trap = (community: string) =>
  `data_dir: ${folder}\nsnmp: { traps: [ { host: 127.0.0.1, version: 2c, community: ${community} } ] }\n`

describe('files with secrets', () => {
  test('are the configuration where it holds one itself, and those that it names', () => {
    expect(parsed('data_dir: data\n').secretFiles).toEqual([])
    expect(parsed(trap('in-the-file')).secretFiles).toEqual([join(folder, 'sallyport.yaml')])
    expect(parsed(trap('{ env: COMMUNITY }')).secretFiles).toEqual([])
    const file = secretFile('community', 0o600)
    expect(parsed(trap(`{ file: ${file} }`)).secretFiles).toEqual([file])
  })

  test('are the private keys of listeners', () => {
    const { secretFiles } = parsed('data_dir: data\nlisten: { rdp: { certificate: c.pem, key: k.pem } }\n')
    expect(secretFiles).toEqual([join(folder, 'data', 'k.pem')])
  })

  test.each([0o604, 0o644, 0o606, 0o620, 0o602])('with mode %o are said, with the remedy', (mode) => {
    const file = secretFile(`mode-${mode}`, mode)
    expect(exposedFiles({ secretFiles: [file] })).toEqual([
      `${file} holds a secret and is open to other users (mode ${mode.toString(8)}): chmod 600 ${file}`,
    ])
  })

  test.each([0o600, 0o400, 0o640])('with mode %o are not', (mode) => {
    expect(exposedFiles({ secretFiles: [secretFile(`mode-${mode}`, mode)] })).toEqual([])
  })

  test.skipIf(process.geteuid?.() !== 0)('of another user are said', () => {
    const file = secretFile('foreign', 0o600)
    chownSync(file, 12_345, 12_345)
    expect(exposedFiles({ secretFiles: [file] })).toEqual([
      `${file} holds a secret and belongs to user 12345: expected user 0 or root`,
    ])
  })

  test('that are missing are for their reader to complain of', () => {
    expect(exposedFiles({ secretFiles: [join(folder, 'none')] })).toEqual([])
  })
})
