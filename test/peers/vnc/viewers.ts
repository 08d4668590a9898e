/** Real VNC viewers for a loopback port, on their own screen if they have a window. */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../process.ts'
import { findProgram } from '../program.ts'
import { type Picture, readPpm, type Screen } from '../screen.ts'
import { openTerminal } from '../terminal.ts'
import type { SystemUser } from '../users.ts'
import { startViewer, type Viewer } from '../viewer.ts'
import { passwordFile } from './servers.ts'

/** The programs that they need, for describeWithPeers. */
export const TIGER_VIEWER_PEERS = ['xtigervncviewer', 'tigervncpasswd', 'Xvfb', 'import'] as const
export const GVNC_PEERS = ['gvnccapture', 'convert', 'python3'] as const
export const REMMINA_PEERS = ['remmina', 'remmina-plugin-vnc', 'dbus-launch', 'Xvfb', 'import'] as const
export const SNAPSHOT_PEERS = ['vncsnapshot', 'tigervncpasswd', 'convert'] as const

const VNC_BASE_PORT = 5900

export interface ViewerLogin {
  port: number
  user?: string
  password?: string
}

export interface TigerOptions extends ViewerLogin {
  /** Security types, by TigerVNC's names; absent: all that it has, in its own order. */
  types?: readonly string[]
  /** PEM file of the authority that issued the server's certificate. */
  ca?: string
  args?: readonly string[]
}

/** Starts TigerVNC's viewer, in its lossless encoding: its window is in the screen's upper left corner. */
export function tigerViewer(
  screen: Screen,
  { port, user, password, types, ca, args = [] }: TigerOptions,
): Promise<Viewer> {
  return startViewer(
    findProgram('xtigervncviewer'),
    () => [
      ...['-Log', '*:stderr:30', '-AlertOnFatalError=0', '-ReconnectOnError=0', '-MenuKey', ''],
      ...['-AutoSelect=0', '-NoJPEG', '-PreferredEncoding', 'Tight'],
      ...(types ? ['-SecurityTypes', types.join(',')] : []),
      ...(ca === undefined ? [] : ['-X509CA', ca]),
      ...args,
      `127.0.0.1::${port}`,
    ],
    screen,
    {
      ...(user !== undefined && { VNC_USERNAME: user }),
      ...(password !== undefined && { VNC_PASSWORD: password }),
    },
  )
}

/** Starts Remmina, whose window has its own bar above the desktop. */
export function remmina(screen: Screen, { port, user = '', password = '' }: ViewerLogin): Promise<Viewer> {
  const who = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  return startViewer(
    findProgram('dbus-launch'),
    () => ['--exit-with-session', findProgram('remmina'), '-c', `vnc://${who}@127.0.0.1:${port}`],
    screen,
  )
}

export interface Capture {
  /** The picture; absent if it did not get that far. */
  picture?: Picture
  said: string
}

export interface GvncOptions {
  /**
   * The user to run it as, with a trusted authority; absent: the user who runs the test, with the system's.
   */
  as?: { user: SystemUser; ca: string }
  timeout?: number
}

/** Runs gtk-vnc without a window: signs in, takes a picture, and disconnects. */
export async function gvncCapture(
  { port, user = '', password = '' }: ViewerLogin,
  { as, timeout = 20_000 }: GvncOptions = {},
): Promise<Capture> {
  const home = as?.user.home ?? mkdtempSync(join(tmpdir(), 'sallyport-gvnc-'))
  const file = join(home, 'picture.png')
  let command = [findProgram('gvnccapture'), `127.0.0.1:${port - VNC_BASE_PORT}`, file]
  if (as) {
    // The program looks for the authority in the home folder that the system knows, whatever HOME is.
    const folder = join(home, '.pki', 'CA')
    mkdirSync(folder, { recursive: true })
    copyFileSync(as.ca, join(folder, 'cacert.pem'))
    command = ['runuser', '-u', as.user.name, '--', ...command]
  }
  const terminal = openTerminal(command[0]!, command.slice(1), {
    env: { PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: home },
  })
  try {
    for (;;) {
      const asked = await terminal.expect(/Username: |[Pp]assword: /, timeout)
      const answer = asked.endsWith('Username: ') ? user : password
      // The program discards input that arrives before it has switched off the echo for a password.
      do terminal.send(`${answer}\r`)
      while ((await terminal.expect(/\n/, timeout)).includes(answer) && answer !== user)
    }
  } catch {
    // No further prompt: the program has ended, or it hangs.
  }
  const picture = existsSync(file) ? await convert(file) : undefined
  await terminal.close()
  rmSync(as ? file : home, { recursive: true, force: true })
  return { said: terminal.output(), ...(picture && { picture }) }
}

/**
 * Signs in without a user name, by classic VNC authentication, and takes one picture, which JPEG makes
 * inexact.
 */
export async function vncSnapshot({ port, password }: ViewerLogin): Promise<Capture> {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-snapshot-'))
  const file = join(home, 'picture.jpg')
  const secret = await passwordFile(password ?? '')
  try {
    // With other encodings vncsnapshot never ends: "Zero size rect".
    const args = ['-encodings', 'raw', '-quality', '100', '-passwd', secret.path]
    const server = `127.0.0.1:${port - VNC_BASE_PORT}`
    const done = await run(findProgram('vncsnapshot'), [...args, server, file])
    const picture = existsSync(file) ? await convert(file) : undefined
    return { said: `${done.stdout}${done.stderr}`, ...(picture && { picture }) }
  } finally {
    secret.remove()
    rmSync(home, { recursive: true, force: true })
  }
}

async function convert(file: string): Promise<Picture> {
  const done = await run(findProgram('convert'), [file, '-depth', '8', 'ppm:-'])
  if (done.code !== 0) throw new Error(`convert: ${done.stderr}`)
  return readPpm(done.bytes)
}
