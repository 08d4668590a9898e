/**
 * The built JavaScript in dist/, in few files (bundle.mjs): it starts faster and in less memory than the sources, whose
 * types Node strips at each start. A clone's build is used only if it was made of the present sources. Plain JavaScript
 * for Node 20.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCES = ['src', 'proxies', 'recordings']
const SETTINGS = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json', 'bin/bundle.mjs']
/** In dist/: the fingerprint of the sources that it was built from. */
const STAMP = '.sources'

/** Returns a hash of every file that a build depends on, with its path. */
function fingerprint(root) {
  const hash = createHash('sha256')
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  )
  for (const file of [...SETTINGS, ...files.sort()]) {
    const content = readFileSync(join(root, file))
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** Whether dist/ can be run: it is of the present sources, or of a package, which has no sources. */
export function isBuilt(root) {
  if (!existsSync(join(root, 'src'))) return true
  try {
    return readFileSync(join(root, 'dist', STAMP), 'utf8') === fingerprint(root)
  } catch {
    return false
  }
}

/**
 * Builds dist/ anew, so that no output of a removed source stays. Throws if the compiler reports an error: of types
 * only with `checks`.
 */
export function build(root, { checks }) {
  const made = join(root, '.dist.new')
  const dist = join(root, 'dist')
  // Taken first: a source that is changed meanwhile makes the build an old one.
  const stamp = fingerprint(root)
  rmSync(made, { recursive: true, force: true })
  try {
    const programs = join(root, 'node_modules', '.bin')
    const options = { cwd: root, stdio: ['ignore', 2, 2] }
    if (checks) execFileSync(join(programs, 'tsc'), ['-p', 'tsconfig.build.json'], options)
    const packaged = join(programs, 'node')
    const node = existsSync(packaged) ? packaged : process.execPath
    execFileSync(node, [join(root, 'bin', 'bundle.mjs'), root, made], options)
    writeFileSync(join(made, STAMP), stamp)
    rmSync(dist, { recursive: true, force: true })
    renameSync(made, dist)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  build(fileURLToPath(new URL('..', import.meta.url)), { checks: true })
}
