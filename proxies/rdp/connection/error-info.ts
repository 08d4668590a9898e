/** Texts for a target's reasons to end a session (MS-RDPBCGR 2.2.5.1.1). */
import { ERROR_INFO } from '../codec/session-pdus.ts'

const WORDS: ReadonlyMap<number, string> = new Map([
  [ERROR_INFO.administratorDisconnect, 'an administrator there has disconnected the session'],
  [ERROR_INFO.administratorLogoff, 'an administrator there has logged the account off'],
  [ERROR_INFO.idleTimeout, 'the session has been idle for too long'],
  [ERROR_INFO.logonTimeout, 'its time limit for sessions has expired'],
  [ERROR_INFO.otherConnection, 'the account has taken its session over from another connection'],
  [ERROR_INFO.outOfMemory, 'it has no memory left'],
  [ERROR_INFO.serverDenied, 'it accepts no connections now'],
  [ERROR_INFO.insufficientPrivileges, 'the account has no right to log in by remote desktop'],
  [ERROR_INFO.freshCredentialsRequired, 'it does not accept a stored password, but only one that is typed'],
  [ERROR_INFO.disconnectedByUser, 'the session was disconnected there'],
  [ERROR_INFO.loggedOffByUser, 'the account has logged off'],
  [ERROR_INFO.winlogonCrash, 'its sign-in program has crashed'],
  [ERROR_INFO.csrssCrash, 'a program of its system has crashed'],
  [ERROR_INFO.serverShutdown, 'it is shutting down'],
  [ERROR_INFO.serverReboot, 'it is restarting'],
  [ERROR_INFO.noLicenseServer, 'it finds no license server for remote desktops'],
  [ERROR_INFO.noLicense, 'there is no license for remote desktops left'],
  [ERROR_INFO.noRemoteConnections, 'its license allows no remote desktops'],
  [ERROR_INFO.destinationNotFound, 'its broker knows no server for the session'],
  [ERROR_INFO.noServerFree, 'its broker has no server free'],
  [
    ERROR_INFO.graphicsModeNotSupported,
    'it has no graphics that can be recorded: allow its older graphics (bitmaps)',
  ],
])

/** Codes of licensing without texts of their own. */
const LICENSING = { first: 0x100, last: 0x1ff }

/** Continues "web1 has ended the session: ". `code` is not 0. */
export function wordsOfErrorInfo(code: number): string {
  const words = WORDS.get(code)
  if (words !== undefined) return words
  const about =
    LICENSING.first <= code && code <= LICENSING.last ? 'its licensing fails' : 'it gives no words'
  return `${about} (error 0x${code.toString(16)})`
}

/** Shown if the target closes without a reason after a desktop was agreed and before it drew. */
export const CLOSED_BEFORE_DRAWING =
  'it closed the connection as soon as the desktop was agreed on: most likely it insists on graphics that cannot be recorded (surface commands, RemoteFX, H.264); allow plain bitmaps there'
