/** Debian's haproxy with a configuration of the test, whose frontends bind free ports of 127.0.0.1. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isListening, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

export interface Haproxy {
  /** Returns what it has said so far: how health checks went. */
  log(): string
  stop(): Promise<void>
}

/** Starts it, and waits until it listens on the ports. Rejects with its words about a wrong configuration. */
export async function startHaproxy(configuration: string, ports: readonly number[]): Promise<Haproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-haproxy-'))
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, configuration)
  try {
    const program = findProgram('haproxy')
    const checked = await run(program, ['-c', '-f', file])
    if (checked.code !== 0) throw new Error(`haproxy refuses its configuration: ${checked.stderr}`)
    const listens = async () => (await Promise.all(ports.map((port) => isListening(port)))).every(Boolean)
    // In the foreground.
    const daemon = await startDaemon(program, ['-db', '-f', file], listens)
    return {
      log: daemon.log,
      stop: async () => {
        await daemon.stop()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Writes a certificate of its own with its key, for a proxy that ends TLS; returns the path. */
export async function makeCertificate(path: string): Promise<string> {
  const { stdout } = await run(findProgram('openssl'), [
    ...[
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      '/CN=proxy',
    ],
    ...['-keyout', '-', '-out', '-'],
  ])
  writeFileSync(path, stdout, { mode: 0o600 })
  return path
}
