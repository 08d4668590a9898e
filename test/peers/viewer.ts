/** A program with a desktop in a window: a viewer of VNC, a client of RDP. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, startDaemon } from './process.ts'
import type { Screen } from './screen.ts'

/** The screen's display shows a viewer's window, or its message. */
export interface Viewer {
  /** Returns its stderr. */
  log(): string
  ended: Promise<number | null>
  stop(): Promise<void>
}

/** Starts a viewer with an empty home folder, without waiting for it. */
export async function startViewer(
  command: string,
  args: (home: string) => readonly string[],
  screen: Screen,
  env: NodeJS.ProcessEnv = {},
): Promise<Viewer> {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-viewer-'))
  const daemon: Daemon = await startDaemon(command, args(home), () => true, {
    env: { PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: home, DISPLAY: screen.display, ...env },
  })
  return {
    log: () => daemon.log(),
    ended: daemon.ended,
    stop: async () => {
      await daemon.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Time until the bastion's farewell screen accepts a key: it accepts none while the user is typing. */
const PAUSE_MS = 1_500

/** Presses a key that closes the bastion's farewell screen, until the viewer has ended. */
export async function endsBy(viewer: Viewer, press: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 10; tries++) {
    await press()
    const hasEnded = viewer.ended.then(() => true)
    if (await Promise.race([hasEnded, sleep(PAUSE_MS, false)])) return
  }
  throw new Error(`the viewer does not end: ${viewer.log()}`)
}
