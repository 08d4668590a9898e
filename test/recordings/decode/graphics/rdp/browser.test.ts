/** What decodes RDP's pictures is for browsers too: nothing that it is made of is Node's. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..', '..', '..', '..', '..')

/** The files that a file needs when it runs, itself included: imports of types are none. */
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
