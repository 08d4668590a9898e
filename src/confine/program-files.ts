/** The product's own files, as a worker reads them. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Not the whole folder: in a clone, the broker's configuration and data lie beside the sources. */
const PARTS = ['package.json', 'src', 'proxies', 'recordings', 'dist']

/** Returns the files and folders of the product and of its packages. */
export function programFiles(): readonly string[] {
  let root = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(root, 'package.json')) && dirname(root) !== root) root = dirname(root)
  const parts = PARTS.map((part) => join(root, part)).filter((path) => existsSync(path))
  return [...parts, packages()]
}

/** Returns the folder of the packages, which npm puts below or beside the product. */
function packages(): string {
  const found = createRequire(import.meta.url).resolve('koffi')
  return found.slice(0, found.lastIndexOf('/node_modules/') + '/node_modules'.length)
}
