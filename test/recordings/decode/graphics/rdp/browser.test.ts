/** The decoders of RDP's pictures also run in browsers: none of their modules is Node's. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..', '..', '..', '..', '..')

/** Returns the files that a file needs at run time, including itself: imports of types do not count. */
function closure(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found
  found.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'/gms)
  for (const [, name] of imports) {
    if (name!.startsWith('.')) closure(join(file, '..', name!), found)
    else found.add(name!)
  }
  return found
}

test('it needs no module of Node and no package', () => {
  const needed = [...closure(join(ROOT, 'recordings', 'decode', 'graphics', 'rdp', 'desktop.ts'))]
  const files = needed.filter((name) => name.startsWith(ROOT))
  expect(files.map((file) => relative(ROOT, file))).toContain('recordings/decode/graphics/rdp/interleaved.ts')
  expect(needed.filter((name) => !name.startsWith(ROOT))).toEqual([])
})
