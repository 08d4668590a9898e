/** FreeRDP's shadow server on loopback: shares an existing display. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening, run, startDaemon } from '../process.ts'
import { findProgram } from '../program.ts'
import type { Screen } from '../screen.ts'

/** The programs that it needs, for describeWithPeers. */
export const SHADOW_PEERS = ['freerdp-shadow-cli', 'winpr-hash', 'Xvfb'] as const

export interface ShadowOptions {
  screen: Pick<Screen, 'display'>
  /** `tls` accepts every client. */
  security: 'nla' | 'tls'
  /** Users that may log in by NLA. */
  users?: readonly { name: string; password: string }[]
}

export interface Shadow {
  port: number
  log(): string
  stop(): Promise<void>
}

/** Starts it. It generates its key and certificate at the first connection, in some tenths of a second. */
export async function startShadow({ screen, security, users = [] }: ShadowOptions): Promise<Shadow> {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-shadow-'))
  const sam = join(home, 'sam')
  const lines = await Promise.all(users.map(({ name, password }) => samLine(name, password)))
  writeFileSync(sam, lines.join(''), { mode: 0o600 })
  const port = await freePort()
  const access = security === 'nla' ? ['/sec:nla', `/sam-file:${sam}`] : ['/sec:tls', '-auth']
  const daemon = await startDaemon(
    findProgram('freerdp-shadow-cli'),
    [`/port:${port}`, '/bind-address:127.0.0.1', ...access],
    () => isListening(port),
    { env: { PATH: process.env.PATH, HOME: home, DISPLAY: screen.display } },
  )
  return {
    port,
    log: () => daemon.log(),
    stop: async () => {
      await daemon.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Makes a line of a SAM file by FreeRDP's own program, with the NT hash. */
export async function samLine(user: string, password: string): Promise<string> {
  const made = await run(findProgram('winpr-hash'), ['-u', user, '-p', password, '-f', 'sam'])
  if (made.code !== 0) throw new Error(`winpr-hash: ${made.stdout}${made.stderr}`)
  return made.stdout
}
