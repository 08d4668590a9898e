/**
 * Desktops behind Kerberos through a whole bastion: xfreerdp as the client, MIT's KDC and MIT's GSS-API at the target,
 * and xrdp behind that.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { Canaries } from '../attacks/canaries.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type KerberosTarget, startKerberosTarget } from '../peers/rdp/gssapi.ts'
import { setDesktop } from '../peers/rdp/sesman.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import { RDP_VIEWER_PEERS } from '../peers/rdp/viewers.ts'
import { startXrdp, XRDP_PEERS, type Xrdp } from '../peers/rdp/xrdp.ts'
import { SCREEN_PEERS, shows } from '../peers/screen.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'
import { createIdentity } from '../proxies/rdp/credssp/connections.ts'
import { PERSON } from './desktop-targets.ts'
import { type RdpDesktop, type ShadowTarget, startRdpDesktop, startShadowTarget } from './rdp-desktops.ts'
import { type Seat, startSeat } from './rdp-seat.ts'

const PEERS = [
  ...RDP_VIEWER_PEERS,
  ...SCREEN_PEERS,
  ...SHADOW_PEERS,
  ...XRDP_PEERS,
  'krb5kdc',
  'kdb5_util',
  'kadmin.local',
  'python3',
  'python3-gssapi',
] as const
const SIZE = { width: 800, height: 600 }
const DOMAIN = 'corp'

describeWithPeers('Kerberos at targets of RDP', PEERS, () => {
  let desktop: RdpDesktop
  let seat: Seat
  let kdc: MitKdc
  let xrdp: Xrdp
  let user: SystemUser
  let target: KerberosTarget
  let stranger: KerberosTarget
  let shadow: ShadowTarget
  let dead: number

  /** Adds a target of the domain's account at localhost, and returns the login string. */
  async function add(
    name: string,
    port: number,
    fields: { ntlm: boolean; password?: string },
  ): Promise<string> {
    const { must } = desktop.broker
    const { ntlm, password = user.password } = fields
    await must('POST', '/connectionpolicies', {
      policy_name: name,
      protocol: 'RDP',
      session_notice: false,
      security: ['credssp'],
      ntlm,
    })
    await must('POST', '/devices', { device_name: name, host: 'localhost' })
    const service = { service_name: 'rdp', protocol: 'RDP', port, connection_policy: name }
    await must('POST', `/devices/${name}/services`, service)
    await must('POST', '/domains', {
      domain_name: `${DOMAIN}-${name}`,
      kerberos: { realm: REALM, kdcs: [`127.0.0.1:${dead}`, `127.0.0.1:${kdc.port}`], timeout: 2 },
    })
    await must('POST', '/accounts', {
      account_name: user.name,
      domain: `${DOMAIN}-${name}`,
      credentials: [{ type: 'password', password }],
    })
    const account = `${user.name}@${DOMAIN}-${name}:${name}:rdp`
    await must('POST', '/targetgroups', { group_name: name, session: { accounts: [account] } })
    await must('POST', '/authorizations', {
      user_group: 'people',
      target_group: name,
      authorize_sessions: true,
      subprotocols: ['RDP'],
    })
    return `${PERSON.user}+${user.name}@${name}`
  }
  const closed = async (before: number) => (await desktop.closedSessions(before + 1)).at(-1)!
  const lastOf = async (code: string) => (await desktop.events(code, 1)).at(-1)!

  beforeAll(async () => {
    dead = await freePort()
    ;[desktop, kdc, user] = await Promise.all([startRdpDesktop(), startKdc(), createSystemUser()])
    seat = await startSeat(desktop, SIZE)
    setDesktop(user, 'exec xterm -geometry 130x45+0+0')
    await kdc.admin(`addprinc +requires_preauth -pw "${user.password}" ${user.name}`)
    await kdc.admin('addprinc -randkey TERMSRV/localhost')
    await kdc.admin('addprinc -randkey TERMSRV/other')
    const [own, other] = [kdc.file('own'), kdc.file('other')]
    await kdc.admin(`ktadd -k ${own} TERMSRV/localhost`)
    await kdc.admin(`ktadd -k ${other} TERMSRV/other`)
    xrdp = await startXrdp()
    const { env } = kdc
    target = await startKerberosTarget(await createIdentity(), { env, keytab: own, onward: xrdp.port })
    stranger = await startKerberosTarget(await createIdentity(), { env, keytab: other })
    shadow = await startShadowTarget('nla', SIZE, { name: user.name, password: user.password })
  }, 300_000)
  afterEach(async () => {
    await seat.clear()
  })
  afterAll(async () => {
    target?.stop()
    stranger?.stop()
    await seat?.stop()
    await desktop?.stop()
    await shadow?.stop()
    await xrdp?.stop()
    await kdc?.stop()
    await user?.remove()
  })

  test('a desktop opens by a ticket of the second KDC; no log, recording or database has password, ticket or keys', async () => {
    const viewer = await seat.view(await add('win1', target.port, { ntlm: false }))
    const found = await target.next()
    if ('error' in found) throw new Error(found.error)
    const { keys, ticket, ...who } = found
    const { name, password } = user
    expect(who).toEqual({ domain: '', user: name, password, principal: `${name}@${REALM}` })
    expect([keys.map(({ length }) => length), ticket.length]).toEqual([[64], 128])
    await shows(
      seat.screen.display,
      ({ width, rgb }) => rgb.readUIntBE((400 * width + 400) * 3, 3) === 0xffffff,
    )
    expect(await lastOf('session.kerberos')).toMatchObject({
      device: 'win1',
      result: 'success',
      object: `TERMSRV/localhost@${REALM}`,
      destination: `127.0.0.1:${kdc.port}`,
      reason: expect.stringContaining(`127.0.0.1:${dead}`),
    })
    await seat.ended(viewer)
    const canaries = new Canaries()
    canaries.add('the password', password)
    for (const key of keys) canaries.add('the key of the context', Buffer.from(key, 'hex'))
    canaries.add('the ticket', Buffer.from(ticket, 'hex'))
    const { id } = (await desktop.closedSessions(1)).at(-1)!
    const recording = String(await desktop.broker.must('GET', `/sessions/${id}/recording.json`))
    expect(recording).toContain('"type":"channel_open"')
    expect(canaries.in(recording)).toEqual([])
    expect(canaries.below(desktop.broker.dataFolder)).toEqual([])
    expect(canaries.in(desktop.broker.log())).toEqual([])
    expect(await desktop.events('session.fallback')).toEqual([])
  })

  test('a target that has not the key of the ticket is refused in words', async () => {
    const before = (await desktop.closedSessions()).length
    await seat.view(await add('stranger', stranger.port, { ntlm: false }))
    expect(await stranger.next()).toHaveProperty('error')
    const { result, reason } = await closed(before)
    expect([result, reason]).toEqual([
      'failure',
      expect.stringMatching(/Kerberos.*does not allow NTLM instead/),
    ])
  })

  test('a target that has NTLM alone: refused, unless the policy allows NTLM, which is an event', async () => {
    const before = (await desktop.closedSessions()).length
    await seat.view(await add('strict', shadow.port, { ntlm: false }))
    expect((await closed(before)).reason).toMatch(/Kerberos.*does not allow NTLM instead/)
    await seat.clear()
    await seat.view(await add('lenient', shadow.port, { ntlm: true }))
    expect(await lastOf('session.fallback')).toMatchObject({
      device: 'lenient',
      reason: expect.stringContaining('Kerberos: '),
    })
    await shadow.paint(white())
    await shows(
      seat.screen.display,
      ({ width, rgb }) => rgb.readUIntBE((400 * width + 400) * 3, 3) === 0xffffff,
    )
    // The next test counts those that have closed.
    await seat.clear()
    await closed(before + 1)
  })

  test('a wrong password is said by the KDC, and the target is not tried', async () => {
    const before = (await desktop.closedSessions()).length
    await seat.view(await add('wrong', target.port, { ntlm: true, password: 'canary-Pass9' }))
    expect((await closed(before)).reason).toContain("the KDC refused the account's password")
    expect(await lastOf('session.kerberos')).toMatchObject({
      result: 'failure',
      reason: expect.stringMatching(/^wrong_password: /),
    })
    expect(desktop.broker.log()).not.toContain('canary-Pass9')
  })
})

const white = () => ({ ...SIZE, rgb: Buffer.alloc(SIZE.width * SIZE.height * 3, 0xff) })
