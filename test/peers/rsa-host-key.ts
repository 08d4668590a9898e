/**
 * An RSA host key for the brokers of tests: generating one needs half a second of processor time, and there
 * are hundreds of brokers. Their other keys are their own, and so are all keys of a broker outside vitest.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newSshKey } from '../../src/host/ssh-keys.ts'

const FOLDER = 'SALLYPORT_TEST_RSA_HOST_KEY'
const FILES = ['ssh_host_rsa_key', 'ssh_host_rsa_key.pub'] as const

/** Generates it before the first test file. Returns a function that removes it after the last. */
export function makeRsaHostKey(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-rsa-'))
  const pair = newSshKey('rsa')
  writeFileSync(join(folder, FILES[0]), pair.private, { mode: 0o600 })
  writeFileSync(join(folder, FILES[1]), `${pair.public}\n`)
  process.env[FOLDER] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/** Copies the key into the data folder of a broker that has never run. */
export function layRsaHostKey(dataFolder: string): void {
  const folder = process.env[FOLDER]
  if (folder === undefined || existsSync(dataFolder)) return
  mkdirSync(join(dataFolder, 'ssh'), { recursive: true, mode: 0o700 })
  for (const file of FILES) copyFileSync(join(folder, file), join(dataFolder, 'ssh', file))
}
