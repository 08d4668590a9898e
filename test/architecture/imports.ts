/** The imports of the product's files, types included, as in their text. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TREES = ['src', 'proxies', 'recordings'] as const
/** `from '…'`, `import '…'`, `import('…')`, `new URL('…')`, and the program of a thread. */
const SPECIFIER =
  /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*'([^']+)'|\bprogramBeside\(import\.meta\.url, '([^']+)'\)/g

export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  path: string
  /** Files of the product that it imports, likewise. */
  imports: readonly string[]
  /** Modules of Node and packages that it imports, as named. */
  modules: readonly string[]
}

/** Reads every file of the product. */
export function sourceFiles(): SourceFile[] {
  const paths = TREES.flatMap((tree) =>
    readdirSync(join(ROOT, tree), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split('\\').join('/')),
  )
  const known = new Set(paths)
  return paths.sort().map((path) => {
    const imports: string[] = []
    const modules: string[] = []
    for (const [, quoted, program] of readFileSync(join(ROOT, path), 'utf8').matchAll(SPECIFIER)) {
      const specifier = quoted ?? `./${program}.ts`
      const target = posix.join(dirname(path), specifier)
      if (!specifier.startsWith('.')) modules.push(specifier)
      else if (known.has(target)) imports.push(target)
    }
    return { path, imports, modules }
  })
}
