/** A session whose target is an RDP desktop. */

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

/** A farm sends a session on once; who is sent on and on would be kept going without end. */
const MAX_REDIRECTIONS = 4

export interface OpeningOptions extends DesktopOpeningOptions {
  client: RdpClient
}

/** A session whose target is there. */
export interface Opened {
  session: RdpSession
  target: RdpTarget
  plan: ChannelPlan
  /** The way to where the target has sent the session. Rejects with TargetError. `signal`: nobody waits for it any more. */
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
        const common = { gate, client: settings, info, channels: plan.channels }
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
        // With a notice before the target's desktop the client has its license by then.
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
