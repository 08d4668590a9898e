/** Real RDP clients for a loopback port that show a desktop in their own window. */
import { createCipheriv } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from '../program.ts'
import type { Screen } from '../screen.ts'
import { startViewer, type Viewer } from '../viewer.ts'

/** The programs that they need, for describeWithPeers. */
export const RDP_VIEWER_PEERS = ['xfreerdp', 'Xvfb', 'import', 'xdotool'] as const
export const RDESKTOP_PEERS = ['rdesktop', 'Xvfb', 'import', 'xdotool'] as const
export const REMMINA_RDP_PEERS = [
  'remmina',
  'remmina-plugin-rdp',
  'dbus-launch',
  'Xvfb',
  'import',
  'xdotool',
] as const

/** The client prompts for missing fields, or leaves them to the server. */
export interface RdpLogin {
  port: number
  user?: string
  password?: string
}

export interface RdpWindow {
  width: number
  height: number
}

const WINDOW: RdpWindow = { width: 800, height: 600 }

/** Starts FreeRDP's client, by TLS unless `args` differ: its window is in the screen's upper left corner. */
export function xfreerdp(
  screen: Screen,
  { port, user, password }: RdpLogin,
  args: readonly string[] = [],
  { width, height } = WINDOW,
): Promise<Viewer> {
  const security = args.some((arg) => arg.startsWith('/sec:')) ? [] : ['/sec:tls']
  return startViewer(
    findProgram('xfreerdp'),
    () => [
      ...[`/v:127.0.0.1:${port}`, `/w:${width}`, `/h:${height}`, '/cert:ignore', ...security],
      ...(user === undefined ? [] : [`/u:${user}`]),
      // Without a password it would prompt on a terminal, which it does not have.
      `/p:${password ?? ''}`,
      ...args,
    ],
    screen,
  )
}

/** Starts rdesktop, which supports TLS only and prompts whether the certificate is right. */
export function rdesktop(
  screen: Screen,
  { port, user, password }: RdpLogin,
  args: readonly string[] = [],
  { width, height } = WINDOW,
): Promise<Viewer> {
  return startViewer(
    '/bin/sh',
    () => [
      ...['-c', 'echo yes | exec "$@"', 'sh', findProgram('rdesktop'), '-g', `${width}x${height}`],
      ...(user === undefined ? [] : ['-u', user]),
      ...(password === undefined ? [] : ['-p', password]),
      ...['-a', '16', ...args, `127.0.0.1:${port}`],
    ],
    screen,
  )
}

/** The secret of its own settings, by which it hides the passwords of profiles. */
const REMMINA_SECRET = Buffer.alloc(32, 'remmina of a test')

/** Starts Remmina with a profile; its window has its own bar above the desktop. */
export function remminaRdp(
  screen: Screen,
  { port, user = '', password = '' }: RdpLogin,
  settings: Record<string, string> = {},
  { width, height } = WINDOW,
): Promise<Viewer> {
  const profile = {
    name: 'test',
    protocol: 'RDP',
    server: `127.0.0.1:${port}`,
    username: user,
    password: password && hidden(password),
    cert_ignore: '1',
    security: 'tls',
    colordepth: '32',
    resolution_mode: '2',
    resolution_width: `${width}`,
    resolution_height: `${height}`,
    scale: '0',
    viewmode: '1',
    ...settings,
  }
  return startViewer(
    findProgram('dbus-launch'),
    (home) => {
      const folder = join(home, '.config', 'remmina')
      mkdirSync(folder, { recursive: true })
      const preferences = { secret: REMMINA_SECRET.toString('base64'), disable_news: '1', disable_tip: '1' }
      writeFileSync(join(folder, 'remmina.pref'), section('remmina_pref', preferences))
      const file = join(home, 'test.remmina')
      writeFileSync(file, section('remmina', profile))
      return ['--exit-with-session', findProgram('remmina'), '-c', file]
    },
    screen,
    { XDG_CONFIG_HOME: '', XDG_DATA_HOME: '', NO_AT_BRIDGE: '1' },
  )
}

const section = (name: string, values: Record<string, string>): string =>
  [`[${name}]`, ...Object.entries(values).map(([key, value]) => `${key}=${value}`), ''].join('\n')

/**
 * Encrypts as Remmina does: 3DES with the first bytes of its secret as the key and the last ones as the IV.
 */
function hidden(password: string): string {
  const text = Buffer.from(password)
  const padded = Buffer.alloc(Math.ceil((text.length + 1) / 8) * 8)
  text.copy(padded)
  const cipher = createCipheriv('des-ede3-cbc', REMMINA_SECRET.subarray(0, 24), REMMINA_SECRET.subarray(24))
  cipher.setAutoPadding(false)
  return Buffer.concat([cipher.update(padded), cipher.final()]).toString('base64')
}
