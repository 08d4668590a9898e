/** FreeRDP's client against a port of loopback. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunResult, run } from '../process.ts'
import { findProgram } from '../program.ts'
import type { Screen } from '../screen.ts'

export const XFREERDP_PEERS = ['xfreerdp', 'Xvfb'] as const

/** An exit code of FreeRDP's client for X11. */
export const LOGON_FAILURE = 134

export interface XfreerdpLogin {
  port: number
  user: string
  password: string
  domain?: string
}

/** Signs in by NLA and stops there; it shows nothing, but needs a display. */
export async function authenticateOnly(
  screen: Pick<Screen, 'display'>,
  { port, user, password, domain }: XfreerdpLogin,
  args: readonly string[] = [],
): Promise<RunResult> {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-xfreerdp-'))
  const who = [`/u:${user}`, `/p:${password}`, ...(domain === undefined ? [] : [`/d:${domain}`])]
  try {
    return await run(
      findProgram('xfreerdp'),
      [`/v:127.0.0.1:${port}`, ...who, '/cert:ignore', '/sec:nla', '+auth-only', ...args],
      { env: { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8', DISPLAY: screen.display } },
    )
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
