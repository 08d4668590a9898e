/** The thread that rewrites keys: the derivation of a cipher's key from a passphrase takes up to a second. */
import { parentPort } from 'node:worker_threads'
import { partsOf } from './parts.ts'
import { type KeyFormat, writeKey } from './write.ts'

export interface Rewrite {
  id: number
  file: string
  /** Of the file. */
  passphrase: string | undefined
  format: KeyFormat
  /** Of the new file. */
  newPassphrase: string | undefined
}

export type Rewritten = { id: number } & ({ file: string } | { error: string })

parentPort?.on('message', ({ id, file, passphrase, format, newPassphrase }: Rewrite) => {
  let answer: Rewritten
  try {
    answer = { id, file: writeKey(partsOf(file, passphrase), format, newPassphrase) }
  } catch (error) {
    answer = { id, error: error instanceof Error ? error.message : String(error) }
  }
  parentPort?.postMessage(answer)
})
