/** Every dependency in the lock file has a licence that is compatible with Apache-2.0; none is (A)GPL. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
  'Zlib',
])

/** Weak copyleft on its own files only: acceptable for tools that are not part of the product. */
const ALLOWED_IN_DEVELOPMENT = new Set([...ALLOWED, 'MPL-2.0', 'Python-2.0', 'CC-BY-4.0'])

interface LockEntry {
  license?: string
  dev?: boolean
}

interface Manifest {
  license?: string | { type: string }
  /** The form before SPDX: any one of them may be chosen. */
  licenses?: { type: string }[]
}

/** Returns a package's SPDX expression: from its own manifest, or from the lock file for another system's. */
function licenceOf(path: string, entry: LockEntry): string {
  const file = join(ROOT, path, 'package.json')
  if (!existsSync(file)) return entry.license ?? ''
  const { license, licenses } = JSON.parse(readFileSync(file, 'utf8')) as Manifest
  if (typeof license === 'string') return license
  return license?.type ?? licenses?.map(({ type }) => type).join(' OR ') ?? ''
}

/**
 * SPDX: AND binds tighter than OR; an alternative is allowed if every licence in it is. Parentheses are not
 * supported.
 */
function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const bare = expression.replace(/^\((.*)\)$/, '$1')
  return bare.split(' OR ').some((choice) => choice.split(' AND ').every((name) => allowed.has(name.trim())))
}

describe('licences', () => {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockEntry>
  }
  const packages = Object.entries(lock.packages).filter(([path]) => path !== '')

  test('every dependency has one that is allowed', () => {
    expect(packages.length).toBeGreaterThan(100)
    const refused = packages
      .map(([path, entry]) => ({ path, licence: licenceOf(path, entry), dev: entry.dev === true }))
      .filter(({ licence, dev }) => !isAllowed(licence, dev ? ALLOWED_IN_DEVELOPMENT : ALLOWED))
    expect(refused).toEqual([])
  })

  test.each(['AGPL-3.0', 'GPL-3.0-or-later', 'LGPL-2.1', 'SSPL-1.0', '', 'UNLICENSED', 'MIT AND GPL-2.0'])(
    '%j is not allowed',
    (expression) => expect(isAllowed(expression, ALLOWED_IN_DEVELOPMENT)).toBe(false),
  )

  test.each(['MIT', '(MIT OR GPL-3.0)', 'MIT OR Apache-2.0', 'BSD-3-Clause AND MIT'])(
    '%j is allowed',
    (expression) => expect(isAllowed(expression, ALLOWED)).toBe(true),
  )

  test('the project has the text of its own', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest
    expect(manifest.license).toBe('Apache-2.0')
    expect(readFileSync(join(ROOT, 'LICENSE'), 'utf8')).toContain('Version 2.0, January 2004')
  })
})
