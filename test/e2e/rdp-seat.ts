/** A user at a screen who connects to a bastion with clients of RDP. */
import { type RunResult, run } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { type RdpLogin, type RdpWindow, xfreerdp } from '../peers/rdp/viewers.ts'
import { cut, type Picture, type Screen, startScreen } from '../peers/screen.ts'
import type { Viewer } from '../peers/viewer.ts'
import type { RdpDesktop } from './rdp-desktops.ts'

/** Space beside the desktop, where the pointer rests while it must not affect the picture. */
const MARGIN = 100

export interface Seat {
  screen: Screen
  /** Starts xfreerdp as ops1 with the login string, or with the fields of `login`. */
  view(login: string | Partial<RdpLogin>, args?: readonly string[]): Promise<Viewer>
  /** Registers any other client of a test: it is stopped after the test. */
  keep(viewer: Promise<Viewer>): Promise<Viewer>
  /** Stops the client; returns the session's id once it is closed. */
  ended(viewer: Viewer): Promise<string>
  xdotool(...args: string[]): Promise<RunResult>
  /** Types letters and digits, and presses Return. */
  enter(text: string): Promise<void>
  /** Cuts the desktop out of the screen. */
  cut(seen: Picture): Picture
  /** Cleans up after each test. */
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
