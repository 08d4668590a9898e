import { expect, test } from 'vitest'
import { statement } from '../../../proxies/rotation/mysql.ts'
import { signInOf } from './targets.ts'

const PASSWORD = `it's "\\'; drop`
const QUOTED = `'it''s "\\''; drop'`
const own = { account: signInOf('al"ice', 'Old-Pass1'), isAdministrator: false }
const statementFor = (change: typeof own, version: string, parameters = {}) =>
  statement({ parameters }, change, version, PASSWORD)

test('each server gets the statement by which a user may change its own password', () => {
  expect(statementFor(own, '5.5.5-10.11.18-MariaDB-0+deb12u1')).toBe(`set password = password(${QUOTED})`)
  expect(statementFor(own, '8.0.36')).toBe(`alter user current_user() identified by ${QUOTED}`)
})

test('an administrator changes the users at all hosts that are named', () => {
  const change = { ...own, isAdministrator: true }
  expect(statementFor(change, '8.0.36')).toBe(`alter user 'al"ice'@'%' identified by ${QUOTED}`)
  expect(statementFor(change, '8.0.36', { account_hosts: "localhost, o'host" })).toBe(
    `alter user 'al"ice'@'localhost' identified by ${QUOTED}, 'al"ice'@'o''host' identified by ${QUOTED}`,
  )
})
