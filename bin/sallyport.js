#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
// The program: the built JavaScript, or the sources of a clone that were changed since its build. (Node strips no types
// under node_modules, so an installed package has no other way than the build.)
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { builtProgram } from './built.mjs'
import { LEAN } from './lean.mjs'

const MINIMUM_NODE = 24
if (Number.parseInt(process.versions.node, 10) < MINIMUM_NODE) {
  console.error(`sallyport: Node ${MINIMUM_NODE} or newer is needed, this is ${process.version}`)
  process.exit(1)
}
const root = fileURLToPath(new URL('..', import.meta.url))
const program = builtProgram(root) ?? join(root, 'src', 'main.ts')
const words = process.argv.slice(2)
if (words[0] === 'serve' && process.execve) {
  // The same process goes on (signals and supervisors keep it) with settings that only a start can make.
  process.execve(
    process.execPath,
    [process.execPath, ...process.execArgv, ...LEAN.arguments, program, ...words],
    { ...LEAN.environment, ...process.env },
  )
}
await import(pathToFileURL(program).href)
