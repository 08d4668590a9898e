/**
 * Makes what is handed out, in packages/: the package of npm, the one of Debian, the bill of materials, and the checksums
 * of them. `main.mjs [deb]`: with `deb` that package alone. Run by npm, with the Node of the packages.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from '../bin/built.mjs'
import { buildDeb } from './deb.mjs'
import { layOutProgram } from './program.mjs'
import { sbom } from './sbom.mjs'

const ROOT = join(import.meta.dirname, '..')
const OUT = join(ROOT, 'packages')
const description = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Returns the time of all files: that of the last commit, unless the environment names another one. */
function sourceDate() {
  const { SOURCE_DATE_EPOCH: given } = process.env
  const text = given ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' })
  const epoch = Number(text)
  if (!Number.isSafeInteger(epoch)) throw new Error(`SOURCE_DATE_EPOCH: expected seconds, got ${text}`)
  return epoch
}

function tarball() {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', OUT]
  const [{ filename }] = JSON.parse(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' }))
  return join(OUT, filename)
}

const epoch = sourceDate()
rmSync(OUT, { recursive: true, force: true })
mkdirSync(OUT)
build(ROOT, { checks: true, keptMs: 0 })
const { version } = description
const deb = () =>
  buildDeb({
    root: ROOT,
    layOut: (into) => layOutProgram(ROOT, into),
    version,
    cpu: process.arch,
    out: OUT,
    epoch,
  })
const materials = () => {
  const file = join(OUT, `sallyport-${version}.cdx.json`)
  writeFileSync(file, sbom(ROOT, description, epoch))
  return file
}
const files = process.argv[2] === 'deb' ? [deb()] : [tarball(), deb(), materials()]
const sums = files.map((file) => {
  const sum = createHash('sha256').update(readFileSync(file)).digest('hex')
  return `${sum}  ${basename(file)}\n`
})
writeFileSync(join(OUT, 'SHA256SUMS'), sums.join(''))
for (const file of [...files, join(OUT, 'SHA256SUMS')]) console.log(file)
