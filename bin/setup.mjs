/**
 * Makes a clone ready to run: packages as in the lock file, ssh2 patched and its crypto binding built for the
 * Node that runs, with `--build` the built JavaScript, and with `--peers` the real programs that the tests
 * use. Runs before every npm script, so it is plain JavaScript for the system's Node (20 or newer), uses nothing from node_modules, and is quick if
 * all is in place. It writes to stderr only: a program may read a command's stdout.
 */
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, builtProgram } from './built.mjs'
import { withLock } from './lock.mjs'
import { runNpm } from './npm.mjs'
import { PATCH, patchSsh2, ssh2Folder } from './patch-ssh2.mjs'
import { bindingWorks, buildBinding, warnOfBinding } from './ssh2-binding.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const STAMP = join(MODULES, '.sallyport-setup')
const LOCK = join(ROOT, '.setup.lock')
const MINIMUM_NODE = 24
const WANTS_BUILD = process.argv.includes('--build')

/** Prevents the start, with a message for the person who typed the command. */
class SetupError extends Error {}

const say = (text) => process.stderr.write(`sallyport: ${text}\n`)

/** Returns the folder of the lock file's Node for this system, or undefined if there is none. */
function packagedNode() {
  const folder = join(MODULES, `node-${process.platform}-${process.arch}`)
  return existsSync(join(folder, 'bin', 'node')) ? folder : undefined
}

/** Returns a hash of all inputs of node_modules: if it is unchanged, they stay. */
function fingerprint() {
  const hash = createHash('sha256')
  for (const file of ['package-lock.json', 'bin/object-wrap.h', 'bin/binding-works.cjs']) {
    hash.update(readFileSync(join(ROOT, file)))
  }
  hash.update(readFileSync(PATCH))
  const lock = hash.digest('hex')
  const node = packagedNode() ? 'packaged' : process.version
  return JSON.stringify({ lock, platform: process.platform, arch: process.arch, node })
}

function stamped() {
  try {
    return JSON.parse(readFileSync(STAMP, 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * Whether npm's own record of node_modules has every package of the lock file that belongs on this system.
 */
function packagesMatch() {
  let wanted
  let present
  try {
    wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages
    present = JSON.parse(readFileSync(join(MODULES, '.package-lock.json'), 'utf8')).packages
  } catch {
    return false
  }
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true
    const found = present[path]
    if (found === undefined) return entry.optional === true && !belongsHere(entry)
    return (
      found.version === entry.version && found.integrity === entry.integrity && existsSync(join(ROOT, path))
    )
  })
}

/** Whether an optional package is for this system; npm continues without one that it could not download. */
function belongsHere({ os, cpu, libc }) {
  return (
    os !== undefined && [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch) && !libc
  )
}

/**
 * The environment of child processes: in PATH the packages' programs come first, as npm does for its scripts.
 */
function environment(extra = {}) {
  return { ...process.env, PATH: `${join(MODULES, '.bin')}${delimiter}${process.env.PATH ?? ''}`, ...extra }
}

function npm(args, extra) {
  try {
    return runNpm(args, { cwd: ROOT, env: environment(extra) })
  } catch (error) {
    throw new SetupError(`npm cannot be started (${error.message}): install npm, then try again`)
  }
}

/** Turns npm's many errors into a sentence with the remedy. */
function explain(output) {
  const tail = output.trim().split('\n').slice(-12).join('\n')
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET|ENETUNREACH|ERR_SOCKET_TIMEOUT/.test(output)) {
    return `the package registry cannot be reached: check the network, or npm's "registry" and "proxy" settings\n${tail}`
  }
  if (/EACCES|EPERM|EROFS/.test(output)) {
    return `no permission to write in ${ROOT}: run as the owner of this folder, or clone into one of your own\n${tail}`
  }
  if (/ENOSPC/.test(output)) return `the disk is full: free some space for ${MODULES} (about 400 MB)\n${tail}`
  if (/EINTEGRITY/.test(output)) {
    return `a package differs from what the lock file says, and was not installed; try another network or registry\n${tail}`
  }
  return `the packages could not be installed\n${tail}`
}

function installPackages() {
  try {
    mkdirSync(MODULES, { recursive: true })
    accessSync(MODULES, constants.W_OK)
  } catch (error) {
    throw new SetupError(explain(String(error.code ?? error)))
  }
  say('installing the packages of the lock file (takes about 15 seconds, once) …')
  const begin = Date.now()
  const done = npm(['ci', '--ignore-scripts', '--include=dev', '--include=optional'])
  if (!done.ok) throw new SetupError(explain(done.output))
  say(`packages installed in ${seconds(begin)}`)
}

const seconds = (begin) => `${((Date.now() - begin) / 1000).toFixed(1)} s`

/** Throws if the Node that would run the broker is too old. */
function requireNode() {
  if (packagedNode()) return
  if (Number.parseInt(process.versions.node, 10) >= MINIMUM_NODE) return
  const name = `node-${process.platform}-${process.arch}`
  const inLock = readFileSync(join(ROOT, 'package-lock.json'), 'utf8').includes(`"node_modules/${name}"`)
  throw new SetupError(
    `Node ${MINIMUM_NODE} or newer is needed, this is ${process.version}, and ` +
      (inLock
        ? `npm could not download the package ${name} that carries one: try again`
        : `no package carries one for ${process.platform} ${process.arch}: install Node ${MINIMUM_NODE} and put it first in PATH`),
  )
}

/** Builds ssh2's crypto binding against the headers of the Node that runs. Returns true if it works. */
function binding() {
  return buildBinding({ node: runningNode(), headers: packagedNode(), root: ROOT, npm, say })
}

/** The Node that will run the broker. */
function runningNode() {
  return packagedNode() ? join(MODULES, '.bin', 'node') : process.execPath
}

/**
 * Patches ssh2. A copy that is neither the published nor the patched one, as after the patch of another
 * release, is reinstalled.
 */
function patch() {
  try {
    patchSsh2(ssh2Folder())
  } catch {
    installPackages()
    patchSsh2(ssh2Folder())
  }
}

function complete() {
  const stamp = stamped()
  return stamp !== undefined && stamp.fingerprint === fingerprint() && stamp.binding
}

/** Builds if the sources have changed. Without a build the broker runs from its sources. */
function rebuild() {
  if (builtProgram(ROOT)) return
  say('building the changed sources …')
  try {
    build(ROOT, { checks: false })
  } catch (error) {
    say(`not built, so it runs from its sources: ${error.message}`)
  }
}

function setUp() {
  if (!complete()) {
    if (!packagesMatch()) installPackages()
    patch()
    requireNode()
    const works = binding()
    writeFileSync(STAMP, `${JSON.stringify({ fingerprint: fingerprint(), binding: works })}\n`)
  }
  if (WANTS_BUILD) rebuild()
}

/**
 * The start by a user without write access here (a service's user): everything must have been prepared
 * before.
 */
function checkOnly() {
  if (!packagesMatch()) throw new SetupError(explain('EACCES'))
  patchSsh2(ssh2Folder())
  requireNode()
  if (!bindingWorks(runningNode(), ROOT)) warnOfBinding(say)
}

async function main() {
  if (!complete() || (WANTS_BUILD && !builtProgram(ROOT))) {
    try {
      await withLock(LOCK, say, setUp)
    } catch (error) {
      if (!['EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error
      checkOnly()
    }
  }
  if (process.argv.includes('--peers')) {
    const { installPeers } = await import('./peers.mjs')
    await installPeers(say)
  }
}

main().catch((error) => {
  say(error instanceof SetupError ? error.message : (error.stack ?? String(error)))
  process.exit(1)
})
