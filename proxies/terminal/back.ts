/** Connects to a target that shows only a terminal: the common part of these protocols' backs. */
import type { Socket } from 'node:net'
import type { OpenSession } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import type { TerminalProtocol } from '../../src/model/rights.ts'
import { LoginDialog } from './login-dialog.ts'
import { TerminalTarget } from './target.ts'
import type { Wire, WireSurroundings } from './wire.ts'

/** Connects; the login follows when the user's terminal is ready. Throws TargetError. */
export type TerminalBack = (session: OpenSession, signal: AbortSignal) => Promise<TerminalTarget>

/** The backs of all of them, so that the proxies do not import each other. */
export type TerminalBacks = Readonly<Record<TerminalProtocol, TerminalBack>>

export interface Connected {
  session: OpenSession
  socket: Socket
  urgent: UrgentData
  name: string
  protocol: string
  /** Set if the protocol sends the login to the target. */
  isNamed?: boolean
  wire: (around: WireSurroundings) => Wire
}

/** Returns the target's name for error messages. */
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
