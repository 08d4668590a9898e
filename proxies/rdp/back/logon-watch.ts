/**
 * Detects whether the account is logged on if NLA has not proven it: the target may show its own sign-in
 * screen before the account's desktop, and the protocol does not say so. Signs of a logon are Save Session
 * Info (Windows) and a clipboard message, since the program that sends it runs in the account's session
 * (rdpclip of Windows, chansrv of xrdp). Until then no user input may reach the target.
 */
import { LOGON_ERROR, LOGON_NOTIFICATION, type SessionInfo } from '../codec/session-pdus.ts'
import type { Update } from '../codec/updates.ts'
import { wordsOfErrorInfo } from '../connection/error-info.ts'
import { wordsOfStatus } from '../credssp/status.ts'
import { XrdpLogDetector } from './xrdp-log.ts'

/** `refused` is a text for the user. */
export type LogonJudgement = 'in' | { refused: string }

export interface LogonWatchOptions {
  /** The target's name for the user. */
  name: string
  /** Seconds to wait for a sign. */
  seconds: number
}

export class LogonWatch {
  /** Called once, with the first judgement. */
  onJudged: ((judgement: LogonJudgement) => void) | undefined
  readonly #options: LogonWatchOptions
  readonly #log = new XrdpLogDetector()
  #timer: NodeJS.Timeout | undefined
  #judgement: LogonJudgement | undefined

  constructor(options: LogonWatchOptions) {
    this.#options = options
  }

  /** User input may be sent to the target. */
  get isIn(): boolean {
    return this.#judgement === 'in'
  }

  /** Starts the time limit. */
  start(): void {
    const { name, seconds } = this.#options
    this.#timer = setTimeout(
      () =>
        this.#refuse(
          `${name} has not reported within ${seconds} s that the account is logged in: most likely the user name or the password is wrong, or it requires more before the logon`,
        ),
      seconds * 1000,
    )
  }

  /** Stops the time limit; called when the session ends. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  /** A program of the account's session has sent data. */
  sessionSpoke(): void {
    this.#judge('in')
  }

  /** Checks an update of the picture, until judged. Throws MalformedError. */
  update(update: Update): void {
    if (this.#judgement !== undefined || !this.#log.update(update)) return
    this.#refuse(
      `${this.#options.name} shows its connection log in place of the account's desktop: most likely the user name or the password is wrong, or it can start no session`,
    )
  }

  /** Handles Save Session Info. */
  sessionInfo(info: SessionInfo): void {
    if (info.kind === 'logon') this.#judge('in')
    if (info.kind === 'logon-error') this.#notified(info)
  }

  /** Handles Set Error Info. */
  errorInfo(code: number): void {
    if (code !== 0) this.#refuse(`${this.#options.name} refused the logon: ${wordsOfErrorInfo(code)}`)
  }

  /** Handles a logon in progress or failed. `type` is a notification or an NTSTATUS (2.2.10.1.1.4.1.1). */
  #notified({ type, data }: { type: number; data: number }): void {
    const { name } = this.#options
    switch (type) {
      case LOGON_NOTIFICATION.continueLogon:
        return
      case LOGON_NOTIFICATION.bumpOptions:
      case LOGON_NOTIFICATION.reconnectOptions:
        // The target asks which session to use, after it has accepted the password.
        this.#judge('in')
        return
      case LOGON_NOTIFICATION.noPermission:
        this.#refuse(`${name} refused the logon: the account has no right to log in by remote desktop`)
        return
      case LOGON_NOTIFICATION.disconnectRefused:
        this.#refuse(`${name} refused the logon: another user is logged in there and did not agree to leave`)
        return
      case LOGON_NOTIFICATION.sessionTerminate:
        this.#refuse(`${name} refused the logon: it ends the session`)
        return
      default:
        if (data !== LOGON_ERROR.warning) this.#refuse(`${name} refused the logon: ${wordsOf(type, data)}`)
    }
  }

  #refuse(words: string): void {
    this.#judge({ refused: words })
  }

  #judge(judgement: LogonJudgement): void {
    if (this.#judgement !== undefined) return
    this.#judgement = judgement
    this.stop()
    this.onJudged?.(judgement)
  }
}

function wordsOf(status: number, data: number): string {
  const words = wordsOfStatus(status)
  if (words !== undefined) return words
  switch (data) {
    case LOGON_ERROR.failedBadPassword:
      return 'the user name or the password is wrong'
    case LOGON_ERROR.failedUpdatePassword:
      return "the account's password must be changed first"
    default:
      return `the reason is not known here (0x${status.toString(16)})`
  }
}
