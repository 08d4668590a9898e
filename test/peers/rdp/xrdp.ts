/** xrdp with xorgxrdp on loopback: desktops of system users, who sign in by PAM. Only root can start it. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { type Daemon, freePort, isListening, startDaemon } from '../process.ts'
import { findProgram } from '../program.ts'
import { copyIni } from './ini.ts'
import { holdSesman } from './sesman.ts'

/** The programs that it needs, for describeWithPeers. */
export const XRDP_PEERS = ['xrdp', 'xrdp-sesman', 'xorgxrdp', 'xterm'] as const

const STOP_GRACE_MS = 1_000

export interface Xrdp {
  port: number
  /** Returns its own log, and the log of all desktops of the machine so far. */
  log(): string
  stop(): Promise<void>
}

/**
 * Starts it. A desktop shows its user's program (`setDesktop`). A user who returns within a minute finds the
 * desktop unchanged.
 */
export async function startXrdp(): Promise<Xrdp> {
  const sesman = await holdSesman()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-xrdp-'))
  chmodSync(folder, 0o755)
  const at = (name: string) => join(folder, name)
  let daemon: Daemon | undefined
  const stop = async (): Promise<void> => {
    await daemon?.stop()
    await sesman.release()
    rmSync(folder, { recursive: true, force: true })
  }
  const port = await freePort()
  try {
    const made = await generate([{ name: 'commonName', value: 'xrdp' }], { keySize: 2048 })
    writeFileSync(at('key.pem'), made.private, { mode: 0o600 })
    writeFileSync(at('cert.pem'), made.cert)
    copyIni('/etc/xrdp/xrdp.ini', at('xrdp.ini'), {
      port: `tcp://127.0.0.1:${port}`,
      certificate: at('cert.pem'),
      key_file: at('key.pem'),
      LogFile: at('xrdp.log'),
      EnableSyslog: 'false',
    })
    daemon = await startDaemon(findProgram('xrdp'), ['-n', '-c', at('xrdp.ini')], () => isListening(port), {
      grace: STOP_GRACE_MS,
    })
  } catch (error) {
    await stop()
    throw error
  }
  return { port, log: () => readFileSync(at('xrdp.log'), 'utf8') + sesman.log(), stop }
}
