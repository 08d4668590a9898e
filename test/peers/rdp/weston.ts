/** Weston's RDP backend on loopback: a target that rejects clients without surface commands. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening, startDaemon } from '../process.ts'
import { findProgram } from '../program.ts'
import { certificateFiles } from '../vnc/certificate.ts'

/** The programs that it needs, for describeWithPeers. */
export const WESTON_PEERS = ['weston', 'weston-rdp'] as const

export interface Weston {
  port: number
  log(): string
  stop(): Promise<void>
}

/** Starts Weston, which has no sign-in: every client sees its desktop. */
export async function startWeston(width = 800, height = 600): Promise<Weston> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-weston-'))
  const certificate = await certificateFiles()
  const port = await freePort()
  const daemon = await startDaemon(
    findProgram('weston'),
    [
      ...['--backend=rdp-backend.so', '--address=127.0.0.1', `--port=${port}`, '--no-config'],
      ...[`--rdp-tls-cert=${certificate.cert}`, `--rdp-tls-key=${certificate.key}`],
      ...[`--width=${width}`, `--height=${height}`, '--socket=sallyport'],
    ],
    () => isListening(port),
    { env: { PATH: process.env.PATH, HOME: folder, XDG_RUNTIME_DIR: folder } },
  )
  return {
    port,
    log: () => daemon.log(),
    stop: async () => {
      await daemon.stop()
      certificate.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
