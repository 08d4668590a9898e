/** Redirection of a session by its target: connects to the next one, and logs it in the audit log. */
import { TargetError } from '../../wording/errors.ts'
import { RedirectionRefusedError } from '../back/destination.ts'
import type { RdpTarget } from '../back/target.ts'
import type { Redirection } from '../codec/redirection.ts'
import type { SessionFilter } from '../connection/session-filter.ts'
import type { RdpClient } from '../front/client.ts'
import { takeAway } from './client-desktop.ts'
import type { RdpSession } from './session.ts'

/** Characters of a destination: addresses are shorter, and a target may send anything. */
const DESTINATION_LIMIT = 255

export interface SentOnOptions {
  client: RdpClient
  /** Filter of the previous target. */
  filter: SessionFilter
  session: RdpSession
  redirection: Redirection
  /** As Opened.redirect. */
  redirect: (redirection: Redirection, signal: AbortSignal) => Promise<RdpTarget>
  signal: AbortSignal
}

/** Rejects with TargetError, or with the error of the audit log; the new target is destroyed then. */
export async function sentOn(options: SentOnOptions): Promise<RdpTarget> {
  const { client, filter, session, redirection, redirect, signal } = options
  const destination = destinationText(redirection)
  let target: RdpTarget | undefined
  try {
    if (!(await takeAway(client, filter))) {
      throw new TargetError(
        'the client did not confirm the desktop that it was offered, so no other can be offered',
      )
    }
    target = await redirect(redirection, signal)
    await session.audit('session.redirect', { destination, result: 'success' })
    if (signal.aborted) throw new TargetError(String(signal.reason))
    return target
  } catch (error) {
    target?.stream.destroy()
    if (error instanceof TargetError && !signal.aborted) {
      const result = error instanceof RedirectionRefusedError ? 'refused' : 'failure'
      session.tell('session.redirect', { destination, result, reason: error.message })
    }
    throw error
  }
}

/** Returns the destination of a redirection for the audit log. */
function destinationText({ address, routingToken }: Redirection): string {
  const cut = (text: string) => text.slice(0, DESTINATION_LIMIT)
  if (routingToken !== undefined) return `routing token ${JSON.stringify(cut(routingToken.trim()))}`
  return address === undefined ? 'not said where' : cut(address)
}
