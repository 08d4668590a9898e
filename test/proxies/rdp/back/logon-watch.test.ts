/** Signs of a successful and of a failed logon without NLA. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type LogonJudgement, LogonWatch } from '../../../../proxies/rdp/back/logon-watch.ts'
import { ERROR_INFO, LOGON_ERROR, LOGON_NOTIFICATION } from '../../../../proxies/rdp/codec/session-pdus.ts'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function watch(): { watch: LogonWatch; judged: LogonJudgement[] } {
  const watch = new LogonWatch({ name: 'win1', seconds: 30 })
  const judged: LogonJudgement[] = []
  watch.onJudged = (judgement) => judged.push(judgement)
  watch.start()
  return { watch, judged }
}

/** Bitmaps without pixels at these positions. */
function bitmaps(...places: [left: number, top: number, right: number, bottom: number][]): Buffer {
  const words = places.flatMap((place) => [...place, 1, 1, 32, 0, 0])
  return Buffer.from(Uint16Array.of(UPDATE.bitmap, places.length, ...words).buffer)
}

const failed = LOGON_ERROR.failedOther

test.each<[string, (watch: LogonWatch) => void]>([
  ['somebody has logged in', (watch) => watch.sessionInfo({ kind: 'logon' })],
  ['a program of the session speaks', (watch) => watch.sessionSpoke()],
  [
    'which session is meant is asked',
    (watch) => watch.sessionInfo({ kind: 'logon-error', type: LOGON_NOTIFICATION.reconnectOptions, data: 7 }),
  ],
])('in: %s', (_, tell) => {
  const { watch: watched, judged } = watch()
  expect(watched.isIn).toBe(false)
  tell(watched)
  expect(watched.isIn).toBe(true)
  // Later signs do not change the judgement.
  watched.errorInfo(ERROR_INFO.insufficientPrivileges)
  vi.advanceTimersByTime(60_000)
  expect(judged).toEqual(['in'])
})

test.each<[string, (watch: LogonWatch) => void, string]>([
  [
    'a status of Windows',
    (watch) => watch.sessionInfo({ kind: 'logon-error', type: 0xc0000234, data: failed }),
    'refused the logon: the account is locked',
  ],
  [
    'a status that nobody knows, and a password',
    (watch) =>
      watch.sessionInfo({ kind: 'logon-error', type: 0xc0ffee00, data: LOGON_ERROR.failedBadPassword }),
    'refused the logon: the user name or the password is wrong',
  ],
  [
    'a password to be changed',
    (watch) => watch.sessionInfo({ kind: 'logon-error', type: 1, data: LOGON_ERROR.failedUpdatePassword }),
    "refused the logon: the account's password must be changed first",
  ],
  [
    'nothing that is known',
    (watch) => watch.sessionInfo({ kind: 'logon-error', type: 0xc0ffee00, data: failed }),
    'refused the logon: the reason is not known here (0xc0ffee00)',
  ],
  [
    'no right',
    (watch) =>
      watch.sessionInfo({ kind: 'logon-error', type: LOGON_NOTIFICATION.noPermission, data: failed }),
    'has no right to log in by remote desktop',
  ],
  [
    'error information',
    (watch) => watch.errorInfo(ERROR_INFO.serverDenied),
    'refused the logon: it accepts no connections now',
  ],
  [
    'time',
    () => vi.advanceTimersByTime(30_000),
    'has not reported within 30 s that the account is logged in',
  ],
  [
    'the connection log of xrdp, in pieces',
    (watch) => {
      watch.update({ code: UPDATE.bitmap, data: bitmaps([13, 21, 407, 30], [340, 377, 400, 399]) })
      watch.update({ code: UPDATE.bitmap, data: bitmaps([10, 10, 409, 143], [10, 144, 409, 409]) })
    },
    "shows its connection log in place of the account's desktop",
  ],
  [
    'the connection log of xrdp, where a dense screen has it larger',
    (watch) => watch.update({ code: UPDATE.bitmap, data: bitmaps([10, 10, 609, 309], [10, 310, 609, 609]) }),
    "shows its connection log in place of the account's desktop",
  ],
])('refused: %s', (_, tell, words) => {
  const { watch: watched, judged } = watch()
  tell(watched)
  watched.sessionInfo({ kind: 'logon' })
  expect(watched.isIn).toBe(false)
  expect(judged).toEqual([{ refused: expect.stringMatching(/^win1 /) }])
  expect(judged).toEqual([{ refused: expect.stringContaining(words) }])
})

test('what goes on is no judgement', () => {
  const { watch: watched, judged } = watch()
  watched.sessionInfo({ kind: 'other' })
  watched.sessionInfo({ kind: 'logon-error', type: LOGON_NOTIFICATION.continueLogon, data: failed })
  watched.sessionInfo({ kind: 'logon-error', type: 0xc0000071, data: LOGON_ERROR.warning })
  watched.errorInfo(ERROR_INFO.none)
  // A desktop is larger than the log's window, and begins elsewhere.
  watched.update({ code: UPDATE.bitmap, data: bitmaps([10, 10, 73, 73]) })
  watched.update({ code: UPDATE.bitmap, data: bitmaps([0, 0, 799, 31]) })
  watched.update({ code: UPDATE.bitmap, data: bitmaps([10, 10, 409, 409]) })
  watched.update({ code: UPDATE.pointerDefault, data: new Uint8Array(0) })
  expect(judged).toEqual([])
  watched.stop()
  vi.advanceTimersByTime(60_000)
  expect(judged).toEqual([])
})
