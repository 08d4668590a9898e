/**
 * Applies patches/ssh2-1.17.0.patch to the ssh2 that this package uses. Does nothing if it is already
 * applied. Runs in bin/setup.mjs, as the package's postinstall script, or by hand; plain JavaScript for Node
 * 20, without other programs.
 */
import { readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSION = '1.17.0'
export const PATCH = fileURLToPath(new URL(`../patches/ssh2-${VERSION}.patch`, import.meta.url))

/** Returns the folder of ssh2 as Node finds it from here. Throws if there is none. */
export function ssh2Folder() {
  return dirname(createRequire(import.meta.url).resolve('ssh2/package.json'))
}

/**
 * Parses a patch, file by file: `{ path, hunks: [{ at, before, after }] }`, lines with their ends. Reads
 * unified diffs without renames, new or deleted files.
 */
export function parsePatch(text) {
  const files = []
  for (const line of text.split(/(?<=\n)/)) {
    const file = files.at(-1)
    const hunk = file?.hunks.at(-1)
    const missing = hunk !== undefined && (hunk.before.length < hunk.old || hunk.after.length < hunk.new)
    const header = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line)
    if (missing) {
      if (!/^[ +-]/.test(line)) throw new Error(`the patch is malformed at ${JSON.stringify(line)}`)
      if (line[0] !== '+') hunk.before.push(line.slice(1))
      if (line[0] !== '-') hunk.after.push(line.slice(1))
    } else if (line.startsWith('+++ b/')) files.push({ path: line.slice('+++ b/'.length).trim(), hunks: [] })
    else if (header && file) {
      const [, at, old = '1', count = '1'] = header
      file.hunks.push({ at: Number(at) - 1, old: Number(old), new: Number(count), before: [], after: [] })
    }
  }
  return files
}

/** Returns the text with the hunks applied, or undefined if they are for another text. */
export function applyHunks(text, hunks) {
  const lines = text.split(/(?<=\n)/)
  // a hunk's position is in the file without the hunks before it
  for (const { at, before, after } of hunks.toReversed()) {
    if (before.some((line, i) => lines[at + i] !== line)) return undefined
    lines.splice(at, before.length, ...after)
  }
  return lines.join('')
}

/** Returns the hunks that undo these. */
function inverse(hunks) {
  let moved = 0
  return hunks.map(({ at, before, after }) => {
    const hunk = { at: at + moved, before: after, after: before }
    moved += after.length - before.length
    return hunk
  })
}

/**
 * Patches the ssh2 in this folder, and returns whether that was needed. Throws if it is of another version,
 * or its files are neither the published nor the patched ones.
 */
export function patchSsh2(folder) {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (version !== VERSION) throw new Error(`expected ssh2 ${VERSION} in ${folder}, found ${version}`)
  const drafts = []
  for (const { path, hunks } of parsePatch(readFileSync(PATCH, 'utf8'))) {
    const file = join(folder, path)
    const text = readFileSync(file, 'utf8')
    const patched = applyHunks(text, hunks)
    if (patched !== undefined) drafts.push({ file, patched })
    else if (applyHunks(text, inverse(hunks)) === undefined) {
      throw new Error(`${file} is not as ssh2 ${VERSION} has it: install it anew, then try again`)
    }
  }
  for (const { file, patched } of drafts) {
    // a new file in its place: the old one may be linked into a store of packages
    writeFileSync(`${file}.new`, patched)
    renameSync(`${file}.new`, file)
  }
  return drafts.length > 0
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    const folder = ssh2Folder()
    process.stderr.write(`sallyport: ${folder} ${patchSsh2(folder) ? 'patched' : 'was patched already'}\n`)
  } catch (error) {
    process.stderr.write(`sallyport: ssh2 cannot be patched: ${error.message}\n`)
    process.exit(1)
  }
}
