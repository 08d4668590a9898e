/**
 * Subsystems beside sftp: those that the connection policy lists, for users with the right to run commands.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sftp, ssh } from '../peers/openssh.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'
import { framesOf, streamOf } from './recorded.ts'

const PAIR = 'ops1-srv1-users:ops1-srv1-targets'
const HELLO = '<?xml version="1.0"?><hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"/>]]>]]>'

let bastion: Bastion

beforeAll(async () => {
  // it answers the first message, as a NETCONF server does
  bastion = await startBastion({
    sshd: { sftp: false, extraConfig: ['Subsystem netconf /bin/cat', 'Subsystem other id'] },
  })
  await bastion.broker.must('PUT', '/connectionpolicies/SSH', {
    subsystems: ['netconf', 'missing'],
    command_rules: ['notify ^subsystem netconf$'],
  })
})
afterAll(() => bastion.stop())

const ask = (name: string) => ssh(bastion.home, bastion.login(), [name], { flags: ['-s'], input: HELLO })

test('one that is named is opened, recorded whole, and a command to the audit and its rules', async () => {
  expect(await ask('netconf')).toMatchObject({ code: 0, stdout: HELLO })
  const session = (await bastion.closedSessions(1)).at(-1)!
  expect(session).toMatchObject({ subprotocols: ['SSH_REMOTE_COMMAND'], recording: { state: 'sealed' } })
  const frames = await framesOf(bastion.broker, session.id)
  expect(frames[0]?.data).toMatchObject({ kind: 'subsystem', command: 'netconf' })
  expect(streamOf(frames, 'input').toString()).toBe(HELLO)
  expect(streamOf(frames, 'output').toString()).toBe(HELLO)
  expect((await bastion.events('command', 1)).at(-1)).toMatchObject({
    object: 'subsystem netconf',
    rule: 'notify ^subsystem netconf$',
  })
})

test('one that is not named, or not without blanks, is refused here; one that the target lacks, there', async () => {
  for (const name of ['other', 'netconf ', 'Netconf', '/bin/cat']) {
    const refused = await ask(name)
    expect(refused.code).toBe(255)
    expect(refused.stderr).toContain(`subsystem ${JSON.stringify(name)} is not allowed here`)
  }
  const missing = await ask('missing')
  expect(missing.stderr).toContain('subsystem request failed')
})

test('SFTP that the target lacks is an event', async () => {
  expect((await sftp(bastion.home, bastion.login(), ['ls'])).code).not.toBe(0)
  expect((await bastion.events('file.failed', 1)).at(-1)).toMatchObject({
    severity: 'notice',
    user: 'ops1',
    subprotocol: 'SFTP_SESSION',
    reason: 'sftp: the request was refused',
  })
})

test('without the right to run commands none is', async () => {
  const rights = ALL_RIGHTS.filter((right) => right !== 'SSH_REMOTE_COMMAND')
  await bastion.broker.must('PUT', `/authorizations/${PAIR}`, { subprotocols: rights })
  const refused = await ask('netconf')
  expect(refused.code).toBe(255)
  expect(refused.stderr).toContain('the right SSH_REMOTE_COMMAND is missing')
})
