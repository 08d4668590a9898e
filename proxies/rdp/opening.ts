/** Opens a session with an RDP desktop as target. */

import { type DesktopOpeningOptions, openDesktop } from '../desktop/opening.ts'
import type { Choice, Refusal } from '../desktop/target-choice.ts'
import { TargetError } from '../wording/errors.ts'
import { openRdpTarget } from './back/back.ts'
import type { RdpTarget } from './back/target.ts'
import { type ChannelPlan, planChannels } from './channels/plan.ts'
import type { Redirection } from './codec/redirection.ts'
import type { RdpClient } from './front/client.ts'
import { channelPolicy } from './relay/channel-rights.ts'
import { RdpSession } from './relay/session.ts'

/** Redirections per session: a farm sends one, and the limit prevents loops. */
const MAX_REDIRECTIONS = 4

export interface OpeningOptions extends DesktopOpeningOptions {
  client: RdpClient
}

/** A session with its connected target. */
export interface Opened {
  session: RdpSession
  target: RdpTarget
  plan: ChannelPlan
  /** Connects to the server of a redirection. Rejects with TargetError. `signal` aborts the attempt. */
  redirect: (redirection: Redirection, signal: AbortSignal) => Promise<RdpTarget>
}

/** As `openDesktop`. */
export async function openSession(
  options: OpeningOptions,
  choice: Choice,
  signal: AbortSignal,
): Promise<Opened | Refusal> {
  const { gate, client } = options
  const { settings, info } = client
  let way: Pick<Opened, 'plan' | 'redirect'> | undefined
  const opened = await openDesktop(
    options,
    {
      protocol: 'RDP',
      begin: (answer) => RdpSession.of(answer, gate),
      reach: (session, answer, either) => {
        const plan = planChannels(settings.channels, channelPolicy(session.rights, session.rdp))
        const common = {
          gate,
          client: settings,
          info,
          channels: plan.channels,
          onFallback: (reason: string) => session.audit('session.fallback', { reason }),
        }
        let redirections = 0
        way = {
          plan,
          redirect: async (redirection, over) => {
            redirections++
            if (MAX_REDIRECTIONS < redirections) {
              throw new TargetError(`the target has sent the session on more than ${MAX_REDIRECTIONS} times`)
            }
            return await openRdpTarget(answer, {
              ...common,
              signal: over,
              licensing: 'answered',
              redirection,
            })
          },
        }
        // A notice is shown on a desktop, so the client is licensed by then.
        const isLicensed = client.isLicensed || (session.isRecorded && session.rdp.sessionNotice)
        return openRdpTarget(answer, {
          ...common,
          signal: either,
          licensing: isLicensed ? 'answered' : 'relayed',
        })
      },
    },
    choice,
    signal,
  )
  return 'message' in opened ? opened : { ...opened, ...way! }
}
