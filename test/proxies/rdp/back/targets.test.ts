/** The back against real targets: accepted and refused logons. */
import { X509Certificate } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { CredentialRefusedError, TargetError } from '../../../../proxies/wording/errors.ts'
import { describeWithPeers } from '../../../peers/program.ts'
import { SHADOW_PEERS, type Shadow, startShadow } from '../../../peers/rdp/shadow.ts'
import { startWeston, WESTON_PEERS } from '../../../peers/rdp/weston.ts'
import { startXrdp, XRDP_PEERS, type Xrdp } from '../../../peers/rdp/xrdp.ts'
import { SCREEN_PEERS, type Screen, startScreen } from '../../../peers/screen.ts'
import { createSystemUser, type SystemUser } from '../../../peers/users.ts'
import { until } from '../../../until.ts'
import { type Desktop, openTarget, takeDesktop } from '../sessions.ts'

const desktops: Desktop[] = []

afterEach(() => {
  for (const desktop of desktops.splice(0)) desktop.close()
})

/** The target's desktop, once it has drawn. */
async function drawn(target: Awaited<ReturnType<typeof openTarget>>): Promise<Desktop> {
  const desktop = takeDesktop(target)
  desktops.push(desktop)
  await until(
    () => `a bitmap; came: ${JSON.stringify(desktop)}`,
    () => desktop.updates.some(({ code }) => code === UPDATE.bitmap) || undefined,
  )
  return desktop
}

const judged = (desktop: Desktop) =>
  until(
    () => `a judgement of the logon; came: ${JSON.stringify(desktop)}`,
    () => desktop.judgement,
  )

describeWithPeers('xrdp', [...XRDP_PEERS, ...SCREEN_PEERS], () => {
  let user: SystemUser
  let xrdp: Xrdp

  beforeAll(async () => {
    user = await createSystemUser()
    xrdp = await startXrdp()
  })
  afterAll(async () => {
    await xrdp?.stop()
    await user?.remove()
  })

  test('the account is in as soon as a program of its session speaks', async () => {
    const keys: Uint8Array[] = []
    const login = { login: user.name, password: user.password }
    const target = await openTarget({ port: xrdp.port, ...login }, { keys })
    expect(target).toMatchObject({ protocol: 'tls', isLogonProven: false })
    expect(target.watch?.isIn).toBe(false)
    expect(keys.map((key) => new X509Certificate(key).subject)).toEqual(['CN=xrdp'])
    const desktop = await drawn(target)
    expect(desktop.size).toEqual({ width: 800, height: 600, depth: 32 })
    expect(await judged(desktop)).toBe('in')
    expect(target.watch?.isIn).toBe(true)
    expect(desktop.error).toBeUndefined()
    expect(desktop.isClosed).toBe(false)
  })

  test('a wrong password is told by its connection log, long before the time is over', async () => {
    const login = { login: user.name, password: 'wrong' }
    const target = await openTarget({ port: xrdp.port, ...login, rdp: { colourDepth: 16 } })
    const desktop = await drawn(target)
    expect(await judged(desktop)).toEqual({
      refused: `win1 (127.0.0.1:${xrdp.port}) shows its connection log in place of the account's desktop: most likely the user name or the password is wrong, or it can start no session`,
    })
    expect(target.watch?.isIn).toBe(false)
  })
})

describeWithPeers('weston', WESTON_PEERS, () => {
  test('which insists on surface commands, closes as soon as the desktop is agreed on', async () => {
    const weston = await startWeston(320, 240)
    try {
      const target = await openTarget({ port: weston.port, login: 'nobody', password: 'x' })
      const desktop = takeDesktop(target)
      desktops.push(desktop)
      await until('the end of the connection', () => desktop.isClosed || undefined)
      // An orderly close is not reported as a broken connection.
      expect(target.stream.failure).toBeUndefined()
      expect(desktop).toMatchObject({ size: { width: 800, height: 600 }, updates: [], errorInfo: [] })
      expect(weston.log()).toContain("client doesn't support required SurfaceCommands")
    } finally {
      await weston.stop()
    }
  })
})

describeWithPeers('FreeRDP’s shadow', [...SHADOW_PEERS, ...SCREEN_PEERS], () => {
  const login = { login: 'administrator', password: 'Target-Pass1' }
  let screen: Screen
  const shadows: Partial<Record<'nla' | 'tls', Shadow>> = {}

  beforeAll(async () => {
    screen = await startScreen(640, 480)
    const users = [{ name: login.login, password: login.password }]
    for (const security of ['nla', 'tls'] as const) {
      shadows[security] = await startShadow({ screen, security, users })
    }
  })
  afterAll(async () => {
    for (const shadow of Object.values(shadows)) await shadow.stop()
    await screen?.stop()
  })

  test('network level authentication proves the logon', async () => {
    const { port } = shadows.nla!
    const keys: Uint8Array[] = []
    const target = await openTarget({ port, ...login }, { keys })
    expect(target).toMatchObject({ protocol: 'credssp', isLogonProven: true, watch: undefined })
    expect(keys).toHaveLength(1)
    const desktop = await drawn(target)
    expect(desktop.error).toBeUndefined()
    expect(desktop.isClosed).toBe(false)
  })

  test('a wrong password, and it just closes', async () => {
    const { port } = shadows.nla!
    const refused = await openTarget({ port, ...login, password: 'wrong' }).catch((error) => error)
    expect(refused).toBeInstanceOf(CredentialRefusedError)
    expect(refused.message).toBe(
      `win1 (127.0.0.1:${port}): the target closed the connection instead of letting the account in, and gave no reason: most likely the user name or the password is wrong`,
    )
  })

  test.each([
    [{ security: ['tls'] as const }, 'requires network level authentication'],
    [{ ntlm: false }, 'requires network level authentication'],
    [{ ntlm: false, security: ['credssp'] as const }, 'does not allow NTLM'],
  ])('%o: not by the policy', async (rdp, words) => {
    const { port } = shadows.nla!
    const refused = await openTarget({ port, ...login, rdp }).catch((error) => error)
    expect(refused).toBeInstanceOf(TargetError)
    expect(refused).not.toBeInstanceOf(CredentialRefusedError)
    expect(refused.message).toContain(`win1 (127.0.0.1:${port})`)
    expect(refused.message).toContain(words)
  })

  test('TLS alone, where nobody is asked for a password, and no sign of a logon comes', async () => {
    const { port } = shadows.tls!
    const target = await openTarget({ port, ...login, rdp: { logonWait: 0 } })
    expect(target).toMatchObject({ protocol: 'tls', isLogonProven: true })
    await drawn(target)
    const watched = await openTarget({ port, ...login, rdp: { logonWait: 1 } })
    const desktop = await drawn(watched)
    expect(await judged(desktop)).toEqual({
      refused: expect.stringContaining('has not reported within 1 s that the account is logged in'),
    })
  })
})
