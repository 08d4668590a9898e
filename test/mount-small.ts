/** A small volume, for tests of a disk that is full. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { makeRoot } from './recordings/support.ts'

/**
 * Mounts a volume of this size, as `1m`. Returns no path if this process may not mount, which CI must be able
 * to do.
 */
export function mountSmall(size: string): { path: string | undefined; why: string; release: () => void } {
  const path = makeRoot()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'pipe' })
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    rmSync(path, { recursive: true })
    return {
      path: undefined,
      why: ' (skipped: mounting a tmpfs is not permitted here)',
      release: () => undefined,
    }
  }
  return { path, why: '', release: () => execFileSync('umount', ['--lazy', path]) }
}
