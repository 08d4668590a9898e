/** Somebody at a screen who comes to a bastion with clients of RDP. */
import { type RunResult, run } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { type RdpLogin, type RdpWindow, xfreerdp } from '../peers/rdp/viewers.ts'
import { cut, type Picture, type Screen, startScreen } from '../peers/screen.ts'
import type { Viewer } from '../peers/viewer.ts'
import type { RdpDesktop } from './rdp-desktops.ts'

/** Beside the desktop: the pointer's place while it is nobody's business. */
const MARGIN = 100

export interface Seat {
  screen: Screen
  /** xfreerdp as ops1 with the login string, or with what `login` says in place of that. */
  view(login: string | Partial<RdpLogin>, args?: readonly string[]): Promise<Viewer>
  /** Any client that a test has started: it is stopped after the test. */
  keep(viewer: Promise<Viewer>): Promise<Viewer>
  /** Stops the client; the session's id once it is closed. */
  ended(viewer: Viewer): Promise<string>
  xdotool(...args: string[]): Promise<RunResult>
  /** Types letters and digits, and presses Return. */
  enter(text: string): Promise<void>
  /** Of what is to be seen: the desktop in its corner. */
  cut(seen: Picture): Picture
  /** After each test. */
  clear(): Promise<void>
  stop(): Promise<void>
}

export async function startSeat(desktop: RdpDesktop, window: RdpWindow): Promise<Seat> {
  const screen = await startScreen(window.width + MARGIN, window.height)
  const viewers: Viewer[] = []
  const keep = async (viewer: Promise<Viewer>): Promise<Viewer> => {
    viewers.push(await viewer)
    return await viewer
  }
  const xdotool = (...args: string[]) =>
    run(findProgram('xdotool'), args, { env: { ...process.env, DISPLAY: screen.display } })
  const aside = () => xdotool('mousemove', `${window.width + MARGIN / 2}`, `${window.height / 2}`)
  await aside()
  return {
    screen,
    keep,
    xdotool,
    view: (login, args = []) => {
      const { port, password } = desktop
      const other = typeof login === 'string' ? { user: login } : login
      return keep(xfreerdp(screen, { port, password, ...other }, args, window))
    },
    ended: async (viewer) => {
      const before = (await desktop.closedSessions()).length
      await viewer.stop()
      return (await desktop.closedSessions(before + 1)).at(-1)!.id
    },
    enter: async (text) => {
      await xdotool('type', '--delay', '20', text)
      await xdotool('key', 'Return')
    },
    cut: (seen) => cut(seen, 0, 0, window.width, window.height),
    clear: async () => {
      for (const viewer of viewers.splice(0)) await viewer.stop()
      await aside()
    },
    stop: () => screen.stop(),
  }
}
