/** The files of an installed product: its build, the packages that it needs, and the Node that came with them. */
import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'

const FILES = ['bin', 'config', 'patches', 'package.json', 'LICENSE']
/** Of the clone's own scripts, the ones that an installed product uses. */
const SCRIPTS = [
  'sallyport',
  'sallyport.js',
  'built.mjs',
  'lean.mjs',
  'verify.mjs',
  'binding-works.cjs',
  'object-wrap.h',
]
/** Headers, pages and sources, which nothing reads once all is built, and koffi for another C library. */
const NEEDLESS =
  /^node-linux-[^/]+\/(include|share)(\/|$)|\.(d\.[cm]?ts|map|html|o|a)$|^ssh2\/.*\/obj\.target(\/|$)|\/musl_[^/]+(\/|$)/
/** Within a package: what its authors need, and settings of their tools. */
const OF_AUTHORS =
  /^(benchmarks?|dist-types|docs?|examples?|integration|perf|scripts|specs?|tests?)(\/|$)|(^|\/)\.[^/]+(\/|$)/

/** The first bytes of a program (elf(5)). */
const ELF = Buffer.from('\x7fELF', 'latin1')

/** Copies the product of the clone `root` into the new folder `into`. */
export function layOutProgram(root, into) {
  mkdirSync(into, { recursive: true })
  for (const name of FILES) cpSync(join(root, name), join(into, name), { recursive: true })
  for (const name of readdirSync(join(into, 'bin')))
    if (!SCRIPTS.includes(name)) rmSync(join(into, 'bin', name))
  const build = readFileSync(join(root, 'dist', 'current'), 'utf8')
  for (const name of ['current', build])
    cpSync(join(root, 'dist', name), join(into, 'dist', name), { recursive: true })
  const modules = join(root, 'node_modules')
  for (const folder of neededPackages(root)) {
    const own = realpathSync(folder)
    cpSync(own, join(into, 'node_modules', relative(modules, folder)), {
      recursive: true,
      filter: (file) => {
        const path = relative(own, file)
        // A package inside another one is in the list itself.
        const isOther = path.split('/').includes('node_modules')
        return !isOther && !NEEDLESS.test(relative(modules, file)) && !OF_AUTHORS.test(path)
      },
    })
  }
  openToAll(into)
}

/** Returns the folders of the packages that a product needs: not those for its development. */
function neededPackages(root) {
  const listed = execFileSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return listed.split('\n').filter((folder) => folder.includes(`${join(root, 'node_modules')}/`))
}

/** Others may read the product, and run the programs that its owner may run, whatever the umask was. */
export function openToAll(folder) {
  chmodSync(folder, 0o755)
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isDirectory()) openToAll(path)
    else if (stat.isFile()) chmodSync(path, (stat.mode & 0o100) !== 0 && isProgram(path) ? 0o755 : 0o644)
  }
}

/** Whether the system can run this file: some packages give that right to all that they have. */
function isProgram(path) {
  if (path.endsWith('.node')) return false
  const start = Buffer.alloc(4)
  const file = openSync(path)
  try {
    readSync(file, start)
  } finally {
    closeSync(file)
  }
  return start.toString('latin1').startsWith('#!') || start.equals(ELF)
}

/** Makes the folder of a file, and returns the file's path. */
export function within(folder, path) {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  return file
}
