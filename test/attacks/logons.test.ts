/**
 * Users who type a login at a target: changes in the meantime, hostile input, and the information that they
 * could gain.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildData, buildPtyRequest, buildShell } from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { ASKED_PASSWORD, type LogonBastion, startLogonBastion } from '../e2e/logons.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import {
  AUTH,
  connectToSignIn,
  interactiveRequest,
  methodsOf,
  passwordRequest,
  type RawClient,
  signInRaw,
} from './raw.ts'
import { noSession, openSession, PEERS } from './setting.ts'

const MENU = 'q to leave: '
const LOGIN = 'Login at srv1:ssh: '

let bastion: LogonBastion

describeWithPeers('a login that is asked for', PEERS, () => {
  beforeAll(async () => {
    bastion = await startLogonBastion()
  })
  afterAll(async () => {
    await noSession(bastion)
    await bastion.stop()
  })

  const authorization = async () => {
    const q = encodeURIComponent('user_group=interactive')
    const [one] = await bastion.broker.must<{ id: string }[]>('GET', `/authorizations?q=${q}`)
    return `/authorizations/${one?.id}`
  }
  const changed = async (path: string, change: object, back: object, work: () => Promise<void>) => {
    await bastion.broker.must('PUT', path, change)
    try {
      await work()
    } finally {
      await bastion.broker.must('PUT', path, back)
    }
  }
  const hold = (interactive_logins: string[]) => ({ session: { interactive_logins } })

  async function inTheMenu() {
    const terminal = sshTerminal(bastion.home, bastion.asked({ user: 'asked' }))
    await terminal.expect(MENU)
    terminal.send('1\r')
    await terminal.expect(LOGIN)
    return terminal
  }

  test('the right is withdrawn while it is asked: the connection ends, and nothing is connected', async () => {
    const before = (await bastion.events('session.open')).length
    const terminal = await inTheMenu()
    const path = await authorization()
    await changed(path, { authorize_sessions: false }, { authorize_sessions: true }, async () => {
      await terminal.expect('nothing is left that you may open')
    })
    await terminal.exit()
    expect((await bastion.events('session.open')).length).toBe(before)
  })

  test('the target is gone from the group while it is asked: the connection ends', async () => {
    const terminal = await inTheMenu()
    await changed('/targetgroups/interactive', hold([]), hold(['srv1:ssh']), async () => {
      await terminal.expect('nothing is left that you may open')
    })
    await terminal.exit()
  })

  test('the user is disabled while it is asked: the connection ends', async () => {
    const terminal = await inTheMenu()
    await changed('/users/asked', { is_disabled: true }, { is_disabled: false }, async () => {
      await terminal.expect('the user is disabled')
    })
    await terminal.exit()
  })

  test('control bytes typed into the login do not reach log, events or terminal', async () => {
    const terminal = await inTheMenu()
    terminal.send('no\x00bo\x1b]0;evil\x07dy\x1b[2J\u202e\r')
    const shown = await terminal.expect('at srv1:ssh: ')
    expect(shown).not.toContain('\x1b')
    terminal.send('canary-typed-password\r')
    await terminal.expect('refused the password')
    await terminal.close()
    await noSession(bastion)
    const opened = (await bastion.events('session.open')).at(-1)
    expect(String(opened?.['account'])).toMatch(/^no[a-z0-9;]*$/)
    expect(bastion.broker.log()).not.toContain('canary-typed-password')
  })

  test('answers without end are held in bounds, and told to be too long', async () => {
    const client = await signInRaw({
      port: bastion.broker.ports.ssh,
      user: 'asked',
      password: ASKED_PASSWORD,
    })
    const id = await openSession(client)
    const pty = {
      terminal: 'x',
      columns: 80,
      rows: 24,
      widthPixels: 0,
      heightPixels: 0,
      modes: Buffer.alloc(0),
    }
    client.send(buildPtyRequest(id, true, pty), buildShell(id, true))
    await shows(client, MENU)
    client.send(buildData(id, '1\r'))
    await shows(client, LOGIN)
    for (let round = 0; round < 30; round++) {
      // More than half of the window, which is then enlarged again.
      client.send(...Array.from({ length: 3 }, () => buildData(id, 'x'.repeat(1000))))
      await client.next(MSG.channelWindowAdjust)
    }
    client.send(buildData(id, '\rpw\r'))
    await shows(client, 'the login must not be longer than 128 bytes')
    client.destroy()
  })

  test('only who has the right learns that a target is asked for', async () => {
    const failure = async (user: string, password: string) => {
      const client = await connectToSignIn({ port: bastion.broker.ports.ssh })
      client.send(passwordRequest(user, password))
      const answer = await client.next(AUTH.failure, AUTH.success)
      client.destroy()
      return [answer[0], answer[0] === AUTH.failure ? methodsOf(answer) : '', answer.at(-1)]
    }
    const refused = await failure('asked+@nowhere', 'wrong')
    expect(await failure('asked+@srv1', 'wrong')).toEqual(refused)
    expect(await failure('nobody+@srv1', 'wrong')).toEqual(refused)
    expect(await failure('asked+@srv1', ASKED_PASSWORD)).toEqual([AUTH.failure, 'keyboard-interactive', 1])
    // ops1 has a stored account there, and no right to any other.
    expect(await failure('ops1+other@srv1', bastion.password)).toEqual(
      await failure('ops1+other@nowhere', bastion.password),
    )
    const answer = async (device: string) => {
      const { stderr } = await ssh(bastion.home, bastion.login({ user: `ops1+other@${device}` }), ['id'])
      return stderr.replaceAll(device, 'X')
    }
    expect(await answer('srv1')).toBe(await answer('nowhere'))
  })

  test('the first half of a sign-in opens nothing', async () => {
    const client = await connectToSignIn({ port: bastion.broker.ports.ssh })
    client.send(passwordRequest(bastion.asked().user, ASKED_PASSWORD))
    await client.next(AUTH.failure)
    client.send(interactiveRequest(bastion.asked().user))
    await client.next(AUTH.infoRequest)
    client.send(
      new Writer().byte(MSG.channelOpen).string('session').uint32(0).uint32(1000).uint32(1000).finish(),
    )
    await client.untilClosed()
    expect(client.received.map(([type]) => type)).not.toContain(MSG.channelOpenConfirmation)
  })

  /** Reads data until the text has come. */
  async function shows(client: RawClient, text: string): Promise<void> {
    for (let seen = ''; !seen.includes(text); ) seen += (await client.next(MSG.channelData)).toString()
  }
})
