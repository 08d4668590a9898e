/**
 * Native clients whose person signs in in a browser: OpenSSH, Telnet, rlogin and `sallyport login` wait, Chromium signs in at
 * oidc-provider or SimpleSAMLphp and confirms, and the session goes on until the provider ends it.
 */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sallyportCommand } from '../peers/broker.ts'
import type { Login } from '../peers/home.ts'
import { generateKey } from '../peers/keys.ts'
import { CLIENT_SECRET, type LoginProvider, startLogins } from '../peers/oidc/logins.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { newProfile, startPageBrowser } from '../peers/page-browser.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type SimpleSamlPhp, startSimpleSamlPhp } from '../peers/simplesamlphp.ts'
import { openTerminal, type Terminal } from '../peers/terminal.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { codesOf } from './enrolment.ts'
import { RLOGIN_CLIENTS, startClient } from './terminal-clients.ts'

const LINK = /https:\/\/localhost:\d+\/s\/[2-9A-Z]{4}-[2-9A-Z]{4}/
const CHECK = /shows ([2-9A-Z]{3}), and confirm/
const PEERS = [
  ...['chromium', 'ssh', 'sshd', 'ssh-keygen', 'rsh-redone-rlogin', 'oathtool'],
  ...['php', 'simplesamlphp'],
] as const
const ERIN = { password: 'Erin-Pass1', attributes: { uid: ['erin'], groups: ['ops'] } }

describeWithPeers('a person of a provider', PEERS, () => {
  let bastion: Bastion
  let peer: LoginProvider
  let idp: SimpleSamlPhp
  let site: string
  let browser: Browser
  let page: Page

  beforeAll(async () => {
    const config = { hostname: 'localhost', sign_in: { check_interval: '1s' } }
    bastion = await startBastion({ broker: { config, terminals: {} } })
    const { broker } = bastion
    site = `https://localhost:${broker.ports.https}`
    const callback = `${site}/signin/oidc/login/callback`
    ;[peer, idp, browser] = await Promise.all([
      startLogins([
        {
          client_id: 'bastion',
          redirect_uris: [callback],
          post_logout_redirect_uris: [`${site}/signin`],
          backchannel_logout_uri: `${site}/signin/oidc/login/backchannel`,
          backchannel_logout_session_required: true,
        },
      ]),
      startSimpleSamlPhp({ erin: ERIN }),
      startPageBrowser(),
    ])
    peer.persons.set('u1', { name: 'alice', groups: ['ops'] })
    page = await (await newProfile(browser)).newPage()
    await broker.must('POST', '/externalauths', {
      authentication_name: 'login',
      type: 'OIDC',
      timeout: 60,
      client_secret: CLIENT_SECRET,
      oidc: {
        issuer: peer.issuer,
        client_id: 'bastion',
        user_claim: 'preferred_username',
        ca_certificates: peer.ca,
      },
    })
    await broker.must('POST', '/authdomains', {
      domain_name: 'corp',
      type: 'OIDC',
      external_auths: ['login'],
    })
    const [group] = await broker.must<{ group_name: string }[]>('GET', '/usergroups')
    await broker.must('POST', '/authdomains/corp/mappings', {
      user_group: group!.group_name,
      external_group: 'ops',
    })
  })
  afterAll(async () => {
    hangUp()
    await browser?.close()
    await peer?.stop()
    await idp?.stop()
    await bastion?.stop()
  })

  /** Makes SimpleSAMLphp and the bastion known to each other. */
  const addSaml = async () => {
    const { must } = bastion.broker
    const saml = { idp_metadata: await (await fetch(idp.metadataUrl)).text(), user_attribute: 'uid' }
    await must('POST', '/externalauths', { authentication_name: 'idp', type: 'SAML', saml })
    await must('POST', '/authdomains', { domain_name: 'saml', type: 'SAML', external_auths: ['idp'] })
    const mapping = { user_group: 'ops1-srv1-users', external_group: 'ops' }
    await must('POST', '/authdomains/saml/mappings', mapping)
    const made = await must<{ saml: { own_certificate: string } }>('GET', '/externalauths/idp')
    const [entityId, acs, slo] = ['metadata', 'acs', 'slo'].map((place) => `${site}/signin/saml/idp/${place}`)
    idp.know([{ entityId: entityId!, acs: acs!, slo: slo!, certificate: made.saml.own_certificate }])
  }
  const login = (options: string[] = []): Login => {
    const { port, user } = bastion.login()
    return {
      port,
      user: user.replace('ops1', 'alice@corp'),
      method: 'keyboard-interactive',
      options: ['LogLevel=INFO', ...options],
    }
  }
  const linkIn = (text: string) => LINK.exec(text)?.[0] ?? ''
  const checkIn = (text: string) => CHECK.exec(text)?.[1] ?? ''
  /** Signs in at the provider, where Chromium was led. */
  const atProvider = async () => {
    await page.getByRole('link', { name: 'Sign in with login' }).click()
    await page.locator('input[name=login]').fill('u1')
    await page.locator('input[name=password]').fill('any')
    await page.locator('button[type=submit]').click()
    await page.locator('button[type=submit]').click()
  }
  const confirm = () => page.getByRole('button', { name: /let it in/ }).click()

  test('signs in in Chromium while ssh waits in a terminal, and both show the same', async () => {
    const terminal = sshTerminal(bastion.home, login(), [], { typed: true })
    const shown = await terminal.expect('three minutes')
    expect(shown).toContain('alice@corp')
    await page.goto(linkIn(shown))
    await atProvider()
    await page.getByText(checkIn(shown), { exact: true }).waitFor()
    const text = (await page.locator('main').textContent()) ?? ''
    for (const one of ['alice@corp', 'SSH', '127.0.0.1', 'srv1']) expect(text).toContain(one)
    await confirm()
    await page.getByText('It is signed in').waitFor()
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
    expect(await bastion.events('auth.success')).toContainEqual(
      expect.objectContaining({ user: 'alice@corp', protocol: 'SSH', method: 'browser', object: 'login' }),
    )
    expect((await bastion.closedSessions(1)).at(-1)).toMatchObject({ user: 'alice@corp', result: 'success' })
  })

  test('turns a client away that is not theirs', async () => {
    const terminal = sshTerminal(bastion.home, login(), [], { typed: true })
    await page.goto(linkIn(await terminal.expect('three minutes')))
    await page.getByRole('button', { name: 'No, turn it away' }).click()
    await page.getByText('It was turned away').waitFor()
    await bastion.events('auth.failure', 1)
    expect((await bastion.events('auth.failure')).at(-1)).toMatchObject({ reason: 'refused_in_browser' })
    await terminal.close()
  })

  test('is waited for at the terminal of Telnet', async () => {
    const client = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await client.sees('login: ')
    client.type(`${login().user}\r`)
    await client.sees('three minutes')
    await page.goto(linkIn(client.shown()))
    await page.getByText(checkIn(client.shown()), { exact: true }).waitFor()
    await confirm()
    await client.sees(bastion.account.prompt)
    client.type('exit\r')
    await client.closed()
  })

  test('is waited for at the terminal of rlogin', async () => {
    const terminal = startClient(RLOGIN_CLIENTS[0]!, bastion.broker.ports, login().user)
    const shown = await terminal.expect('three minutes')
    await page.goto(linkIn(shown))
    await page.getByText(checkIn(shown), { exact: true }).waitFor()
    await page.getByText('RLOGIN').waitFor()
    await confirm()
    await terminal.expect(bastion.account.prompt)
    terminal.send('exit\r')
    await terminal.exit()
    expect((await bastion.events('auth.success')).at(-1)).toMatchObject({
      ...{ user: 'alice@corp', protocol: 'RLOGIN', method: 'browser' },
    })
  })

  test('gets a certificate by sallyport login, by which ssh asks nothing', async () => {
    const key = await generateKey(bastion.home.folder)
    const [program, args] = sallyportCommand(['login', '--key', key.path, '--user', 'alice@corp'])
    const env = {
      ...process.env,
      SALLYPORT_URL: site,
      SALLYPORT_CA: join(bastion.broker.dataFolder, 'tls', 'cert.pem'),
    }
    const terminal = openTerminal(program, args, { env })
    const shown = await terminal.expect('three minutes')
    await page.goto(linkIn(shown))
    await confirm()
    await terminal.expect('-cert.pub: valid until ')
    expect(await terminal.exit()).toBe(0)
    const certified = { ...login(['BatchMode=yes']), identity: key.path }
    expect((await ssh(bastion.home, certified, ['exit 7'])).code).toBe(7)
    // The certificate is beside the key, and of no other name.
    const other = { ...certified, user: bastion.login().user }
    expect((await ssh(bastion.home, other, ['true'])).code).toBe(255)
  })

  test('whose client goes away in the middle finds nothing to confirm', async () => {
    const terminal = sshTerminal(bastion.home, login(), [], { typed: true })
    const link = linkIn(await terminal.expect('three minutes'))
    await page.goto(link)
    await terminal.close()
    await expect
      .poll(async () => (await page.goto(link))?.status(), { timeout: 300_000, interval: 200 })
      .toBe(404)
    await page.getByText('Nothing waits under this code').waitFor()
  })

  /** Opens a shell of a person that is signed in in the browser, or signs in there now. */
  const open = async (signIn: () => Promise<void> = async () => undefined): Promise<Terminal> => {
    const terminal = sshTerminal(bastion.home, login(), [], { typed: true })
    await page.goto(linkIn(await terminal.expect('three minutes')))
    await signIn()
    await confirm()
    await terminal.expect(bastion.account.prompt)
    return terminal
  }
  const endedFor = async (count: number) => (await bastion.events('session.kill', count)).at(-1)

  test('loses running sessions when a page of the provider shows the logout in a frame', async () => {
    const terminal = await open()
    const kills = (await bastion.events('session.kill')).length
    const place = `${site}/signin/oidc/login/frontchannel`
    const query = new URLSearchParams({ iss: peer.issuer, sid: peer.sids.at(-1)! })
    peer.pages.set('/leaving', `<iframe src="${place}?${String(query).replaceAll('&', '&amp;')}"></iframe>`)
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().startsWith(place)),
      page.goto(`${peer.issuer}/leaving`),
    ])
    expect(answer.status()).toBe(200)
    await terminal.exit()
    expect(await endedFor(kills + 1)).toMatchObject({ reason: expect.stringContaining('the provider') })
    expect(await bastion.events('auth.withdraw')).toContainEqual(
      expect.objectContaining({ user: 'alice@corp', reason: 'a logout at login' }),
    )
  })

  test('is asked for a second factor after the provider, where a group requires one', async () => {
    await bastion.broker.must('PUT', '/usergroups/ops1-srv1-users', { second_factor: 'required' })
    let newCode: () => Promise<string> = async () => ''
    const enrolled = await open(async () => {
      await page.getByRole('link', { name: 'Sign in with login' }).click()
      newCode = codesOf(((await page.locator('code').textContent()) ?? '').replaceAll(' ', ''))
      await page.getByLabel('First code').fill(await newCode())
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('button', { name: 'I have noted them down' }).click()
    })
    await enrolled.close()
    await page.context().clearCookies({ name: 'sallyport_session' })
    const asked = await open(async () => {
      await page.getByRole('link', { name: 'Sign in with login' }).click()
      const failures = (await bastion.events('auth.failure')).length
      await page.getByLabel('Code').fill('000000')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('alert').waitFor()
      const failed = (await bastion.events('auth.failure', failures + 1)).at(-1)
      expect(failed).toMatchObject({ reason: 'wrong_code' })
      await page.getByRole('link', { name: 'Sign in with login' }).click()
      await page.getByLabel('Code').fill(await newCode())
      await page.getByRole('button', { name: 'Continue' }).click()
    })
    await asked.close()
    await bastion.broker.must('PUT', '/usergroups/ops1-srv1-users', { second_factor: 'none' })
  })

  test('signs in by SAML while ssh waits, and loses the session by a sign-out at the identity provider', async () => {
    await addSaml()
    const own = await (await newProfile(browser)).newPage()
    const waiting = { ...login(), user: login().user.replace('alice@corp', 'erin@saml') }
    const terminal = sshTerminal(bastion.home, waiting, [], { typed: true })
    const shown = await terminal.expect('three minutes')
    await own.goto(linkIn(shown))
    await own.getByRole('link', { name: 'Sign in with idp' }).click()
    await own.locator('input[name=username]').fill('erin')
    await own.locator('input[name=password]').fill(ERIN.password)
    await own.locator('button[type=submit], input[type=submit]').first().click()
    await own.getByText(checkIn(shown), { exact: true }).waitFor()
    await own.getByRole('button', { name: /let it in/ }).click()
    await terminal.expect(bastion.account.prompt)
    expect(await bastion.events('auth.success')).toContainEqual(
      expect.objectContaining({ user: 'erin@saml', protocol: 'SSH', method: 'browser', object: 'idp' }),
    )
    const kills = (await bastion.events('session.kill')).length
    await own.goto(`${idp.base}/saml2/idp/SingleLogoutService.php?ReturnTo=${idp.base}/`)
    await terminal.exit()
    expect(await endedFor(kills + 1)).toMatchObject({ reason: expect.stringContaining('the provider') })
    await own.goto(`${site}/account`)
    await own.getByRole('link', { name: 'Sign in with idp' }).waitFor()
    await own.context().close()
  })

  test('loses running sessions when the provider withdraws the person', async () => {
    const terminal = await open()
    const kills = (await bastion.events('session.kill')).length
    await peer.disable('u1')
    await terminal.exit()
    expect(await endedFor(kills + 1)).toMatchObject({ reason: expect.stringContaining('the provider') })
    await page.goto(`${site}/account`)
    await page.getByRole('link', { name: 'Sign in with login' }).waitFor()
  })
})
