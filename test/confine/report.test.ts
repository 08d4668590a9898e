import { expect, test } from 'vitest'
import { boundaryOf, type CageReport } from '../../src/confine/report.ts'

const WHOLE: CageReport = {
  uid: 990,
  gid: 985,
  capabilities: false,
  noNewPrivileges: true,
  landlock: 7,
  seccomp: true,
  dumpable: false,
  permission: true,
  missing: [],
}
const HELD =
  "they have no new privileges, Landlock 7, a filter of system calls, closed memory, Node's permissions"

test('workers of their own user are behind a boundary', () => {
  expect(boundaryOf(WHOLE, 0)).toEqual({
    holds: true,
    isWhole: true,
    text: `session workers run as user 990: ${HELD}`,
  })
})

test('what the system lacks is named', () => {
  const { landlock: _, ...rest } = WHOLE
  expect(boundaryOf({ ...rest, missing: ['this kernel has no Landlock'] }, 0)).toEqual({
    holds: true,
    isWhole: false,
    text: "session workers run as user 990: they have no new privileges, a filter of system calls, closed memory, Node's permissions; missing: this kernel has no Landlock",
  })
})

test.each([
  [
    "the broker's own user",
    { uid: 990 },
    990,
    /^no boundary: without root, .* own user \(990\), and the kernel's separation of users is missing: start as root, or with the capabilities CAP_SETUID, CAP_SETGID and CAP_KILL, with run_as; they have/,
  ],
  ['root', { uid: 0 }, 0, /^no boundary: session workers run as root: set run_as; they have/],
  [
    'a user with capabilities',
    { capabilities: true },
    0,
    /^no boundary: session workers \(user 990\) have some of root's capabilities/,
  ],
])('workers as %s are behind none, and the rest is still named', (_, change, broker, text) => {
  const boundary = boundaryOf({ ...WHOLE, ...change }, broker)
  expect(boundary).toMatchObject({ holds: false, isWhole: false, text: expect.stringMatching(text) })
  expect(boundary.text).toContain(HELD)
})

test('with nothing at all it says so', () => {
  const bare: CageReport = {
    uid: 990,
    gid: 985,
    capabilities: false,
    noNewPrivileges: false,
    seccomp: false,
    dumpable: true,
    permission: false,
    missing: ['not known how on darwin'],
  }
  expect(boundaryOf(bare, 990).text).toMatch(/; nothing else holds them; missing: not known how on darwin$/)
})
