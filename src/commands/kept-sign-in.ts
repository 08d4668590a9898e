/**
 * A sign-in that `sallyport login --keep` has left for other commands of the same user of this machine: its cookie, in a
 * file that nobody else reads. It ends by itself at the broker.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

interface KeptSignIn {
  /** The API's base, as text. */
  url: string
  user: string
  cookie: string
}

/** Permission bits of others. */
const OTHERS = 0o077

export function keptPath(environment: NodeJS.ProcessEnv = process.env): string {
  const state = environment['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state')
  return join(state, 'sallyport', 'sign-in.json')
}

export function keepSignIn(kept: KeptSignIn, path = keptPath()): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(`${path}.new`, JSON.stringify(kept), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

export function forgetSignIn(path = keptPath()): void {
  rmSync(path, { force: true })
}

/** Returns the cookie for the broker, if there is one. @throws Error if others could read the file */
export function keptSignIn(url: string, path = keptPath()): KeptSignIn | undefined {
  let text: string
  try {
    const { mode, uid } = statSync(path)
    if ((mode & OTHERS) !== 0 || uid !== process.getuid?.())
      throw new Error(`${path}: others may have read this sign-in: remove it, and sign in again`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const { url: of, user, cookie } = parsed(text)
  return of === url && typeof user === 'string' && typeof cookie === 'string'
    ? { url, user, cookie }
    : undefined
}

function parsed(text: string): Partial<KeptSignIn> {
  try {
    return (JSON.parse(text) ?? {}) as Partial<KeptSignIn>
  } catch {
    return {}
  }
}
