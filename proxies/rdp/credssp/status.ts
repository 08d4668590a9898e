/** Codes of refused sign-ins, sent and received: NTSTATUS and SECURITY_STATUS (MS-ERREF 2.3, 2.1). */
import { CredSspError, type RefusalReason } from '../gss/errors.ts'

/** Codes that this server sends. */
export const STATUS = {
  /** STATUS_LOGON_FAILURE */
  LOGON_FAILURE: 0xc000006d,
  /** STATUS_NO_LOGON_SERVERS */
  NO_LOGON_SERVERS: 0xc000005e,
  /** SEC_E_MESSAGE_ALTERED */
  MESSAGE_ALTERED: 0x8009030f,
  /** SEC_E_UNSUPPORTED_FUNCTION */
  UNSUPPORTED_FUNCTION: 0x80090302,
} as const

type Meaning = [reason: RefusalReason, words: string]

const PASSWORD: Meaning = ['password', 'the user name or the password is wrong']
const EXPIRED: Meaning = ['password_expired', "the account's password has expired"]
const NTLM_OFF: Meaning = ['ntlm_off', 'it does not allow NTLM, or not for this account']
const DELEGATION: Meaning = ['delegation', 'a policy forbids handing the password over']
const AUTHORITY: Meaning = ['no_authority', 'it reaches no domain controller']
const CLOCK: Meaning = ['clock', "its clock differs too much from the domain controller's"]
const ALTERED: Meaning = [
  'altered',
  'the bytes that it received are not those that were sent: there may be a man in the middle',
]
const NO_RIGHT: Meaning = ['no_right', 'the account has no right to log in by remote desktop']

const MEANINGS: ReadonlyMap<number, Meaning> = new Map([
  [0xc0000064, PASSWORD],
  [0xc000006a, PASSWORD],
  [STATUS.LOGON_FAILURE, PASSWORD],
  [0x8009030c, PASSWORD],
  [0xc0000071, EXPIRED],
  [0xc0000224, ['password_must_change', "the account's password must be changed first"]],
  [0xc0000234, ['locked', 'the account is locked']],
  [0xc0000072, ['disabled', 'the account is disabled']],
  [0xc0000193, ['account_expired', 'the account has expired']],
  [0xc000006f, ['hours', 'the account may not log in at this time']],
  [0xc0000070, ['workstation', 'the account may not log in from here']],
  [0xc000006e, ['restricted', 'the account is restricted (no password, or one of its policies)']],
  [0xc000015b, NO_RIGHT],
  [0xc0000022, NO_RIGHT],
  [0xc0000413, NO_RIGHT],
  [0xc0000418, NTLM_OFF],
  [0xc00000bb, NTLM_OFF],
  [STATUS.UNSUPPORTED_FUNCTION, NTLM_OFF],
  [0x8009035e, DELEGATION],
  [0x8009035f, DELEGATION],
  [STATUS.NO_LOGON_SERVERS, AUTHORITY],
  [0xc000018d, AUTHORITY],
  [0x80090311, AUTHORITY],
  [0xc0000133, CLOCK],
  [0x80090324, CLOCK],
  [STATUS.MESSAGE_ALTERED, ALTERED],
  [0x80090346, ALTERED],
])

/** Returns the text of a status, or undefined if the bastion does not know it. */
export function wordsOfStatus(status: number): string | undefined {
  return MEANINGS.get(status)?.[1]
}

/** Returns the error for a status sent by a target. */
export function refusalOf(status: number): CredSspError {
  const [reason, words] = MEANINGS.get(status) ?? ['other', 'the reason is not known here']
  return new CredSspError(
    reason,
    `the target refused the sign-in: ${words} (0x${status.toString(16)})`,
    status,
  )
}
