/** Opens a session whose target is a VNC desktop. */

import { type DesktopOpeningOptions, openDesktop } from '../desktop/opening.ts'
import type { Choice, Refusal } from '../desktop/target-choice.ts'
import { openVncTarget, type VncTarget } from './back.ts'
import { VncSession } from './relay/session.ts'

export interface OpeningOptions extends DesktopOpeningOptions {
  isShared: boolean
}

/** A session with an open target. */
export interface Opened {
  session: VncSession
  target: VncTarget
}

/** See `openDesktop`. */
export function openSession(
  options: OpeningOptions,
  choice: Choice,
  signal: AbortSignal,
): Promise<Opened | Refusal> {
  const { gate, isShared } = options
  return openDesktop(
    options,
    {
      protocol: 'VNC',
      begin: (opened) => VncSession.of(opened, gate),
      reach: (_session, opened, either) => openVncTarget(opened, { gate, signal: either, isShared }),
    },
    choice,
    signal,
  )
}
