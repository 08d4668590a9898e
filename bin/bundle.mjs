/**
 * Writes the sources and the packages that they use into a few files of JavaScript: every module that Node loads by
 * itself costs it some ten KiB for as long as the process runs. Run by built.mjs, with the Node of the packages:
 * `bundle.mjs ROOT FOLDER`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { rolldown } from 'rolldown'

const [root, folder] = process.argv.slice(2)

/**
 * Packages that stay as they are: they read files of their own, belong to a binding, or are loaded seldom and whole.
 */
const APART = /^(ssh2|koffi|pino|net-snmp|@aws-sdk\/[^/]+|@cwasm\/[^/]+|@xterm\/[^/]+)(\/|$)/
/** Programs of threads and processes, named beside the file that starts them: each becomes a file of its own. */
const THREAD = /programBeside\(import\.meta\.url, '([\w-]+)'\)/g
const PROGRAM = /new URL\(`([\w./-]+)\$\{extname\(import\.meta\.url\)\}`, import\.meta\.url\)/g
const OWN_URL = 'import.meta.url'
/** Stands for a module's place until the file is known that it is written to. */
const PLACE = /__placeOf\("([^"]+)"\)/g

/** Characters beyond ASCII: Node keeps the text of every file, with two bytes for each character if it has one. */
const WIDE = /[^\u0000-\u007f]/g

/** Returns where a source's JavaScript stands: a file reads others and starts programs from its own place. */
const placeOf = (source) => relative(root, source).replace(/\.ts$/, '.js')

/** Returns the name of a package, and the text that its licence asks copies to have. */
function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
  const said = texts.map((file) => readFileSync(join(folder, file), 'utf8'))
  return [`==== ${name} ${version} (${license})`, ...said].join('\n\n')
}

const ownPlaces = {
  name: 'own-places',
  transform(code, id) {
    if (id.includes('/node_modules/') || !id.endsWith('.ts') || !code.includes('import.meta.')) return null
    for (const pattern of [THREAD, PROGRAM]) {
      for (const [, name] of code.matchAll(pattern)) {
        const program = join(dirname(id), `${name}.ts`)
        this.emitFile({ type: 'chunk', id: program, fileName: placeOf(program) })
      }
    }
    // A source that is a program of its own when Node runs it is none as a part of another.
    return code.replaceAll('import.meta.main', 'false').replaceAll(OWN_URL, `__placeOf("${placeOf(id)}")`)
  },
  renderChunk(code, { fileName }) {
    return code.replace(PLACE, (_call, place) => {
      const path = relative(dirname(fileName), place)
      return `new URL(${JSON.stringify(path.startsWith('.') ? path : `./${path}`)}, import.meta.url).href`
    })
  },
  generateBundle(_options, files) {
    const packages = new Set()
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue
      for (const id of Object.keys(file.modules)) {
        const [place] = /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(id) ?? []
        if (place !== undefined) packages.add(place)
      }
      file.code = file.code.replace(WIDE, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    }
    const source = [...packages].sort().map(licenceOf).join('\n')
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
  },
}

const bundle = await rolldown({
  input: { main: join(root, 'src', 'main.ts') },
  cwd: root,
  platform: 'node',
  external: (id) => APART.test(id),
  plugins: [ownPlaces],
  logLevel: 'warn',
})
await bundle.write({
  dir: folder,
  format: 'esm',
  comments: { legal: true, annotation: false, jsdoc: false },
  entryFileNames: ({ facadeModuleId }) => placeOf(facadeModuleId),
  chunkFileNames: ({ name }) => `parts/${basename(name)}-[hash].js`,
})
await bundle.close()
