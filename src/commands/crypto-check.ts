/** The finding of `sallyport check` about ssh2: its patch, and its crypto binding's own probe. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { nativeCryptoAvailable, requirePatchedSsh2 } from '../../proxies/ssh/transport/ssh2.ts'
import type { Finding } from './finding.ts'

/** Milliseconds for the probe; a machine may be busy. */
const PROBE_MS = 60_000
const REMEDY =
  'install g++, make and python3, then remove node_modules and start again; of an installed package run its bin/ready.mjs'

export function crypto(): Finding {
  const subject = 'crypto'
  try {
    requirePatchedSsh2()
  } catch (error) {
    return { level: 'error', subject, text: (error as Error).message }
  }
  if (!nativeCryptoAvailable()) {
    const text = `ssh2's native binding is missing: SSH runs at less than half its speed; ${REMEDY}`
    return { level: 'warning', subject, text }
  }
  const { status, signal } = spawnSync(process.execPath, ['--expose-gc', probe()], {
    stdio: 'ignore',
    timeout: PROBE_MS,
    killSignal: 'SIGKILL',
  })
  if (status === 0)
    return { level: 'ok', subject, text: "ssh2's native binding is in use, and its probe passed" }
  const text = `ssh2's native binding was built for another Node: its probe ended with ${signal ?? status}, and the broker would so in the middle of sessions; ${REMEDY}`
  return { level: 'error', subject, text }
}

/** The probe is in bin/, two folders higher than this one, or four in a build. */
function probe(): string {
  const places = ['../../bin/binding-works.cjs', '../../../../bin/binding-works.cjs']
  const files = places.map((place) => fileURLToPath(new URL(place, import.meta.url)))
  return files.find((file) => existsSync(file)) ?? files[0]!
}
