/** The way to a target that shows a terminal only: what every such protocol's back has in common. */
import type { Socket } from 'node:net'
import type { OpenSession } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import type { TerminalProtocol } from '../../src/model/rights.ts'
import { LoginDialog } from './login-dialog.ts'
import { TerminalTarget } from './target.ts'
import type { Wire, WireSurroundings } from './wire.ts'

/** Connects; the login comes when the person's terminal is there. Throws TargetError. */
export type TerminalBack = (session: OpenSession, signal: AbortSignal) => Promise<TerminalTarget>

/** The ways to all of them: the proxies do not know each other. */
export type TerminalBacks = Readonly<Record<TerminalProtocol, TerminalBack>>

export interface Connected {
  session: OpenSession
  socket: Socket
  urgent: UrgentData
  name: string
  protocol: string
  /** The protocol tells the target the login. */
  isNamed?: boolean
  wire: (around: WireSurroundings) => Wire
}

/** What the user reads of the target in what went wrong. */
export function nameOf({ target }: OpenSession): string {
  return `${target.device} (${target.host}:${target.port})`
}

export function terminalTarget({ session, isNamed = false, ...connected }: Connected): TerminalTarget {
  const { target, credentials, loginOptions: options, isPersonal = false } = session
  const secretOf = (type: 'password' | 'enable') => {
    const found = credentials.find((credential) => credential.type === type)
    return found && 'password' in found ? found.password : undefined
  }
  const [password, enable] = [secretOf('password'), secretOf('enable')]
  const isLeft = isPersonal && target.login === ''
  return new TerminalTarget({
    ...connected,
    loginTimeoutMs: options.loginTimeout * 1000,
    login: isLeft
      ? undefined
      : new LoginDialog({
          name: connected.name,
          login: target.login,
          ...(password !== undefined && { password }),
          ...(enable !== undefined && { enable }),
          isNamed,
          isPersonal,
          options,
        }),
  })
}
