/**
 * Native clients whose person signs in in a browser: OpenSSH, Telnet, rlogin and `sallyport login` wait, Chromium signs in at
 * oidc-provider and confirms, and the session goes on until the provider ends it.
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
import { openTerminal } from '../peers/terminal.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { RLOGIN_CLIENTS, startClient } from './terminal-clients.ts'

const LINK = /https:\/\/localhost:\d+\/s\/[2-9A-Z]{4}-[2-9A-Z]{4}/
const CHECK = /shows ([2-9A-Z]{3}), and confirm/
const PEERS = ['chromium', 'ssh', 'sshd', 'ssh-keygen', 'rsh-redone-rlogin'] as const

describeWithPeers('a person of a provider', PEERS, () => {
  let bastion: Bastion
  let peer: LoginProvider
  let browser: Browser
  let page: Page

  beforeAll(async () => {
    const config = { hostname: 'localhost', sign_in: { check_interval: '1s' } }
    bastion = await startBastion({ broker: { config, terminals: {} } })
    const { broker } = bastion
    const site = `https://localhost:${broker.ports.https}`
    const callback = `${site}/signin/oidc/login/callback`
    ;[peer, browser] = await Promise.all([
      startLogins([
        { client_id: 'bastion', redirect_uris: [callback], post_logout_redirect_uris: [`${site}/signin`] },
      ]),
      startPageBrowser(),
    ])
    peer.persons.set('u1', { name: 'alice', groups: ['ops'] })
    page = await (await newProfile(browser)).newPage()
    await broker.must('POST', '/externalauths', {
      authentication_name: 'login',
      type: 'OIDC',
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
    await bastion?.stop()
  })

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
      SALLYPORT_URL: `https://localhost:${bastion.broker.ports.https}`,
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
      .poll(async () => (await page.goto(link))?.status(), { timeout: 30_000, interval: 200 })
      .toBe(404)
    await page.getByText('Nothing waits under this code').waitFor()
  })

  test('loses running sessions when the provider withdraws the person', async () => {
    const terminal = sshTerminal(bastion.home, login(), [], { typed: true })
    await page.goto(linkIn(await terminal.expect('three minutes')))
    await confirm()
    await terminal.expect(bastion.account.prompt)
    const kills = (await bastion.events('session.kill')).length
    await peer.disable('u1')
    await terminal.exit()
    expect((await bastion.events('session.kill', kills + 1)).at(-1)).toMatchObject({
      reason: expect.stringContaining('the provider'),
    })
    await page.goto(`https://localhost:${bastion.broker.ports.https}/account`)
    await page.getByRole('link', { name: 'Sign in with login' }).waitFor()
  })
})
