/** Real VNC servers on loopback: Xtigervnc with its own display, and x11vnc for an existing display. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, run, startDaemon } from '../process.ts'
import { findProgram } from '../program.ts'
import { DISPLAY_LINE, type Screen, screenOf } from '../screen.ts'

/** The programs that they need, for describeWithPeers. */
export const XVNC_PEERS = ['Xtigervnc', 'tigervncpasswd', 'import'] as const
export const X11VNC_PEERS = ['x11vnc'] as const

/** Security types of TigerVNC 1.12: https://tigervnc.org/doc/Xvnc.html. */
export type XvncType =
  | 'None'
  | 'VncAuth'
  | 'Plain'
  | 'TLSNone'
  | 'TLSVnc'
  | 'TLSPlain'
  | 'X509None'
  | 'X509Vnc'
  | 'X509Plain'

export interface XvncOptions {
  /** In the order of preference. */
  types: readonly XvncType[]
  /** Password of VncAuth, TLSVnc and X509Vnc. Eight characters count. */
  password?: string
  /** Files of the X509 types, in PEM. */
  certificate?: { cert: string; key: string }
  width?: number
  height?: number
  depth?: 16 | 24
  /** More arguments. */
  args?: readonly string[]
}

/** The display has no access control: any local program may draw on it. */
export interface Xvnc extends Screen {
  port: number
  log(): string
}

/** The users of the Plain types are the system's: test/peers/users.ts. */
export async function startXvnc(options: XvncOptions): Promise<Xvnc> {
  const {
    types,
    password = 'not used',
    certificate,
    width = 640,
    height = 480,
    depth = 24,
    args = [],
  } = options
  const passwords = await passwordFile(password)
  const port = await freePort()
  const x509 = certificate ? ['-X509Cert', certificate.cert, '-X509Key', certificate.key] : []
  const daemon = await startDaemon(
    findProgram('Xtigervnc'),
    [
      ...['-displayfd', '1', '-rfbport', `${port}`, '-interface', '127.0.0.1', '-nolisten', 'tcp', '-ac'],
      ...['-geometry', `${width}x${height}`, '-depth', `${depth}`, '-AlwaysShared', '-UseBlacklist=0'],
      ...['-SecurityTypes', types.join(','), '-PasswordFile', passwords.path],
      ...['-PlainUsers', '*', '-PAMService', 'login', ...x509, ...args],
    ],
    // The server listens before it prints its display.
    DISPLAY_LINE,
  )
  return {
    ...screenOf(daemon),
    port,
    log: () => daemon.log(),
    stop: async () => {
      await daemon.stop()
      passwords.remove()
    },
  }
}

export interface X11vnc {
  port: number
  log(): string
  stop(): Promise<void>
}

/** Shares a display: with classic VNC authentication, or without any. */
export async function startX11vnc(
  display: string,
  options: { password?: string; args?: readonly string[] } = {},
): Promise<X11vnc> {
  const { password, args = [] } = options
  const port = await freePort()
  const secret = password === undefined ? ['-nopw'] : ['-passwd', password]
  const daemon = await startDaemon(
    findProgram('x11vnc'),
    [
      ...['-display', display, '-rfbport', `${port}`, '-localhost', '-no6', '-forever', '-shared'],
      ...['-noxdamage', '-nocursor', '-norc', ...secret, ...args],
    ],
    /^PORT=\d+$/m,
  )
  return { port, log: () => daemon.log(), stop: () => daemon.stop() }
}

/** Writes a password file in the format of VNC programs, for servers and viewers. */
export async function passwordFile(password: string): Promise<{ path: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-vnc-'))
  const path = join(folder, 'passwd')
  const made = await run(findProgram('tigervncpasswd'), ['-f'], { input: password })
  if (made.code !== 0) throw new Error(`tigervncpasswd: ${made.stderr}`)
  writeFileSync(path, made.bytes, { mode: 0o600 })
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
