/**
 * The built JavaScript in dist/, in few files (bundle.mjs): it starts faster and in less memory than the sources, whose
 * types Node strips at each start. A clone's build is used only if it was made of the present sources. Each build is a
 * folder of its own, so that a broker that runs loads none of a later one: its session workers are started from its
 * files, whenever they are. Plain JavaScript for Node 20.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCES = ['src', 'proxies', 'recordings']
const SETTINGS = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json', 'bin/bundle.mjs']
/** In dist/: the name of the last build. */
const CURRENT = 'current'
/** Characters of the fingerprint in a build's name. */
const NAME_LENGTH = 16
/** Milliseconds for which a build is kept in any case: its broker may run where its process is not seen. */
const KEPT_MS = 24 * 3_600_000

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

const nameOf = (root) => fingerprint(root).slice(0, NAME_LENGTH)
const programOf = (root, name) => join(root, 'dist', name, 'src', 'main.js')

/**
 * Returns the path of the build that can be run: it is of the present sources, or of a package, which has no sources.
 * Returns undefined if there is none.
 */
export function builtProgram(root) {
  const isPackage = !existsSync(join(root, 'src'))
  const name = isPackage ? readFileSync(join(root, 'dist', CURRENT), 'utf8') : nameOf(root)
  const program = programOf(root, name)
  return existsSync(program) ? program : undefined
}

/**
 * Builds the present sources, and removes old builds that no process runs. Throws if the compiler reports an error:
 * of types only with `checks`. `keptMs`: the age from which builds are old.
 */
export function build(root, { checks, keptMs = KEPT_MS }) {
  // Another build may run at the same time.
  const made = join(root, `.dist.new.${process.pid}`)
  const dist = join(root, 'dist')
  // Taken first: a source that is changed meanwhile makes the build an old one.
  const name = nameOf(root)
  rmSync(made, { recursive: true, force: true })
  try {
    const programs = join(root, 'node_modules', '.bin')
    const options = { cwd: root, stdio: ['ignore', 2, 2] }
    if (checks) execFileSync(join(programs, 'tsc'), ['-p', 'tsconfig.build.json'], options)
    const packaged = join(programs, 'node')
    const node = existsSync(packaged) ? packaged : process.execPath
    execFileSync(node, [join(root, 'bin', 'bundle.mjs'), root, made], options)
    mkdirSync(dist, { recursive: true })
    place(made, dist, name)
    writeFileSync(join(dist, CURRENT), name)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  try {
    removeUnused(dist, name, keptMs)
  } catch (error) {
    console.error(`sallyport: old builds in ${dist} could not be removed: ${error.message}`)
  }
}

/** Puts the build in its place, also in that of a damaged one. */
function place(made, dist, name) {
  const folder = join(dist, name)
  if (existsSync(join(folder, 'src', 'main.js'))) return
  try {
    remove(dist, name)
    renameSync(made, folder)
  } catch (error) {
    // Another build of the same sources came first.
    if (!existsSync(join(folder, 'src', 'main.js'))) throw error
  }
}

/** Removes a build under another name: one that is half removed must not be run. */
function remove(dist, name) {
  const leaving = join(dist, `.${name}.${process.pid}`)
  if (!existsSync(join(dist, name))) return
  renameSync(join(dist, name), leaving)
  rmSync(leaving, { recursive: true, force: true })
}

/** Removes what is neither the present build, nor a young one, nor one that a process was started from. */
function removeUnused(dist, present, keptMs) {
  const used = commandLines()
  for (const name of readdirSync(dist)) {
    // The names are hashes; a process may see its own under another path.
    if (name === present || name === CURRENT || used.includes(`/dist/${name}/`)) continue
    const { mtimeMs } = statSync(join(dist, name), { throwIfNoEntry: false }) ?? {}
    if (mtimeMs !== undefined && Date.now() - mtimeMs >= keptMs) remove(dist, name)
  }
}

/** Returns the command lines of all processes: a broker's, and that of each worker, has the path of its program. */
function commandLines() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(join('/proc', pid, 'cmdline'), 'utf8')
      } catch {
        // It has ended.
        return ''
      }
    })
    .join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // A package gets the present build alone.
  const alone = process.argv[2] === '--alone'
  build(fileURLToPath(new URL('..', import.meta.url)), { checks: true, ...(alone && { keptMs: 0 }) })
}
