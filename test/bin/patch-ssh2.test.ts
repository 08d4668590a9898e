/** The patch of ssh2: applied once, completely, and only to its version; and the start checks it. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { applyHunks, PATCH, parsePatch, patchSsh2, ssh2Folder } from '../../bin/patch-ssh2.mjs'
import { requirePatchedSsh2 } from '../../proxies/ssh/transport/ssh2.ts'
import { run } from '../peers/process.ts'

const ROOT = join(import.meta.dirname, '..', '..')

const files = parsePatch(readFileSync(PATCH, 'utf8'))

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-patch-'))
  cpSync(join(ssh2Folder(), 'package.json'), join(folder, 'package.json'))
  cpSync(join(ssh2Folder(), 'lib'), join(folder, 'lib'), { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const textOf = (path: string) => readFileSync(join(folder, path), 'utf8')

/** Restores the folder's ssh2 to the published one. */
function unpatch(): Map<string, string> {
  const published = new Map<string, string>()
  for (const { path, hunks } of files) {
    let moved = 0
    const back = hunks.map(({ at, before, after }) => {
      const hunk = { at: at + moved, before: after, after: before }
      moved += after.length - before.length
      return hunk
    })
    const text = applyHunks(textOf(path), back)
    if (text === undefined) throw new Error(`${path} is not patched here`)
    writeFileSync(join(folder, path), text)
    published.set(path, text)
  }
  return published
}

test('is what the tests run with', () => {
  expect(() => requirePatchedSsh2()).not.toThrow()
  expect(patchSsh2(ssh2Folder())).toBe(false)
})

test('makes the patched files of the published ones, and nothing of the patched ones', () => {
  const patched = new Map(files.map(({ path }) => [path, textOf(path)]))
  const published = unpatch()
  expect([...published.values()]).not.toEqual([...patched.values()])
  expect(patchSsh2(folder)).toBe(true)
  expect(new Map(files.map(({ path }) => [path, textOf(path)]))).toEqual(patched)
  const stamps = files.map(({ path }) => statSync(join(folder, path)).mtimeMs)
  expect(patchSsh2(folder)).toBe(false)
  expect(files.map(({ path }) => statSync(join(folder, path)).mtimeMs)).toEqual(stamps)
  expect(readdirSync(join(folder, 'lib', 'protocol')).filter((name) => name.endsWith('.new'))).toEqual([])
})

test('finishes what was cut off in the middle; the marker is in the last file', () => {
  const patched = files.map(({ path }) => textOf(path))
  unpatch()
  writeFileSync(join(folder, files[0]!.path), patched[0]!)
  expect(patchSsh2(folder)).toBe(true)
  expect(files.map(({ path }) => textOf(path))).toEqual(patched)
  expect(files.at(-1)!.hunks.some(({ after }) => after.join('').includes('SALLYPORT_PATCH'))).toBe(true)
})

test('touches nothing when one file is another than published', () => {
  const published = unpatch()
  const [first, last] = [files[0]!.path, files.at(-1)!.path]
  writeFileSync(join(folder, last), `// changed by hand\n${published.get(last)}`)
  expect(() => patchSsh2(folder)).toThrow(`${last} is not as ssh2 1.17.0 has it`)
  expect(textOf(first)).toBe(published.get(first))
})

test('is for this version only', () => {
  const manifest = JSON.parse(textOf('package.json')) as Record<string, unknown>
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version: '1.18.0' }))
  expect(() => patchSsh2(folder)).toThrow('expected ssh2 1.17.0')
})

test('runs by hand, without git and without other programs', async () => {
  const patched = files.map(({ path }) => textOf(path))
  unpatch()
  const home = join(folder, 'package')
  cpSync(join(ROOT, 'bin'), join(home, 'bin'), { recursive: true })
  cpSync(join(ROOT, 'patches'), join(home, 'patches'), { recursive: true })
  const modules = join(home, 'node_modules', 'ssh2')
  cpSync(join(folder, 'lib'), join(modules, 'lib'), { recursive: true })
  cpSync(join(folder, 'package.json'), join(modules, 'package.json'))
  const script = join(home, 'bin', 'patch-ssh2.mjs')
  const done = await run(process.execPath, [script], { env: { PATH: '' } })
  expect(done).toMatchObject({ code: 0, stdout: '' })
  expect(files.map(({ path }) => readFileSync(join(modules, path), 'utf8'))).toEqual(patched)
  expect((await run(process.execPath, [script])).stderr).toContain('was patched already')
})

test('the broker does not start without it, and says what to do', async () => {
  const config = join(folder, 'sallyport.yaml')
  writeFileSync(
    config,
    'listen: { https: off, telnet: off, rlogin: off, vnc: off, rdp: off, metrics: off, ssh: { host: 127.0.0.1, port: 0 } }\n',
  )
  const preload = join(folder, 'unpatched.cjs')
  const constants = createRequire(import.meta.url).resolve('ssh2/lib/protocol/constants.js')
  writeFileSync(preload, `delete require(${JSON.stringify(constants)}).SALLYPORT_PATCH\n`)
  const main = join(ROOT, 'src', 'main.ts')
  for (const command of ['serve', 'check']) {
    const args = [
      '--disable-warning=ExperimentalWarning',
      '--require',
      preload,
      main,
      command,
      '--config',
      config,
    ]
    const done = await run(process.execPath, args)
    expect(done.code).toBe(1)
    expect(done.stdout + done.stderr).toMatch(
      /without Sallyport's patch of this release.*run bin\/patch-ssh2\.mjs/,
    )
  }
})
