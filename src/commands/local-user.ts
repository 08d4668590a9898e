/** Who runs a command: what the system says, and what `sudo` has left in the environment. */
import { userInfo } from 'node:os'

/** As events name them. */
export interface LocalActor {
  user: string
  uid: number
  sudo_user?: string
}

/** The user of this machine, as events name them. */
export const localUser = (): string => `local:${systemName()}`

/** The uid is the system's; `SUDO_USER` is a hint, which whoever runs the command can set. */
export function localActor(env: NodeJS.ProcessEnv = process.env): LocalActor {
  const by = env['SUDO_USER']
  return {
    user: localUser(),
    // every system that this runs on has it
    uid: process.getuid?.() ?? -1,
    ...(by !== undefined && by !== '' && { sudo_user: by }),
  }
}

function systemName(): string {
  try {
    return userInfo().username
  } catch {
    // a uid without a name, as in a container
    return String(process.getuid?.() ?? '?')
  }
}
