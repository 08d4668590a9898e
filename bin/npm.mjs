/** Runs npm with this process's Node; plain JavaScript for Node 20. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/**
 * Runs npm in a folder with its output collected, not shown. Returns whether it succeeded, and the output.
 * @throws Error if npm cannot be started
 */
export function runNpm(args, { cwd, env }) {
  const cli = process.env.npm_execpath
  const own = cli !== undefined && /\.[cm]?js$/.test(cli) && existsSync(cli)
  const [command, first] = own ? [process.execPath, [cli]] : ['npm', []]
  const done = spawnSync(command, [...first, ...args, '--loglevel=error', '--no-audit', '--no-fund'], {
    cwd,
    env,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (done.error) throw done.error
  return { ok: done.status === 0, output: `${done.stdout}${done.stderr}` }
}
