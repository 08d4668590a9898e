/**
 * Builds ssh2's crypto binding for the Node that runs, and tries it. Used by a clone (bin/setup.mjs), by an
 * installed package (bin/ready.mjs, its postinstall script) and by the image (the same): plain JavaScript for
 * Node 20.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const OBJECT_WRAP = join(HERE, 'object-wrap.h')

/** Whether the binding of the ssh2 that `root` uses works in this Node. */
export function bindingWorks(node, root) {
  const args = ['--expose-gc', join(HERE, 'binding-works.cjs')]
  return spawnSync(node, args, { cwd: root, stdio: 'ignore' }).status === 0
}

/**
 * Builds the binding unless it works. `node` is the program that will run, `headers` the folder with its
 * `include/node` (absent: npm fetches them), `npm` runs npm with arguments and an environment and returns its
 * output. Returns whether the binding works; if not, reports the missing programs and the cost with `say`.
 */
export function buildBinding({ node, headers, root, npm, say }) {
  if (bindingWorks(node, root)) return true
  const begin = Date.now()
  const { output } = npm(['rebuild', 'ssh2'], {
    CXXFLAGS: `${process.env.CXXFLAGS ?? ''} -include "${OBJECT_WRAP}"`,
    ...(headers && { npm_config_nodedir: headers }),
  })
  if (bindingWorks(node, root)) {
    say(`ssh2's crypto binding built and tried in ${((Date.now() - begin) / 1000).toFixed(1)} s`)
    return true
  }
  warnOfBinding(say)
  const missing = ['make', 'g++', 'python3'].filter((name) => !onPath(name))
  if (missing.length > 0) {
    say(
      `  no ${missing.join(', no ')} found; on Debian: apt-get install build-essential python3, then try again`,
    )
  } else {
    say(
      `  it was built and does not work; npm's last lines:\n${output.trim().split('\n').slice(-12).join('\n')}`,
    )
  }
  return false
}

export function warnOfBinding(say) {
  say('WARNING: ssh2 runs without its crypto binding: everything works, at less than half the speed')
}

function onPath(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && existsSync(join(folder, name)))
}
