/** The user who runs a command: from the system, and from `sudo`'s variables. */
import { userInfo } from 'node:os'

/** The actor, as events name it. */
export interface LocalActor {
  user: string
  uid: number
  sudo_user?: string
}

/** Returns the user of this machine, as events name it. */
export const localUser = (): string => `local:${systemName()}`

/** The uid is the system's; `SUDO_USER` is only a hint, since the user can set it. */
export function localActor(env: NodeJS.ProcessEnv = process.env): LocalActor {
  const by = env['SUDO_USER']
  return {
    user: localUser(),
    // every supported system has it
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
