/**
 * Prepares the ssh2 of an installed package or of an image for the Node that runs this: patched, its crypto
 * binding built and tried. It is the package's postinstall script. With `--strict`, as in the image, a
 * binding that does not work is an error. In a clone it only patches: bin/setup.mjs builds for the clone's
 * own Node. Plain JavaScript for Node 20.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runNpm } from './npm.mjs'
import { patchSsh2, ssh2Folder } from './patch-ssh2.mjs'
import { buildBinding } from './ssh2-binding.mjs'

const say = (text) => process.stderr.write(`sallyport: ${text}\n`)

const isStrict = process.argv.includes('--strict')
const isClone = existsSync(fileURLToPath(new URL('../package-lock.json', import.meta.url)))
/** The folder whose node_modules has ssh2: npm rebuilds it there. */
const root = dirname(dirname(ssh2Folder()))
const prefix = dirname(dirname(process.execPath))

try {
  patchSsh2(ssh2Folder())
  const works =
    (isClone && !isStrict) ||
    buildBinding({
      node: process.execPath,
      headers: existsSync(join(prefix, 'include', 'node', 'node.h')) ? prefix : undefined,
      root,
      npm: (args, extra) => runNpm(args, { cwd: root, env: { ...process.env, ...extra } }),
      say,
    })
  if (!works && isStrict) process.exitCode = 1
} catch (error) {
  say(`ssh2 cannot be made ready: ${error.message}`)
  process.exitCode = 1
}
