/** The pages in a real browser: with and without a script, on a phone, and with a security key. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ADMIN, type Harness, startHarness } from '../api/harness.ts'
import { newProfile, plugIn, startPageBrowser } from '../peers/page-browser.ts'
import { freePort, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'

let h: Harness
let browser: Browser
let url: string

/** Ends texts and attributes, and would be an element of its own, with a script. */
const TAGS = `'"></span><b id="planted" onclick="x()">&lt;<script>throw 1</script>`
const KEY = `blue key ${TAGS}`.slice(0, 64)

/** Folder for pictures of the pages, if they are wanted. */
const PICTURES = process.env['SALLYPORT_PAGE_PICTURES']
const picture = async (page: Page, name: string) => {
  if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true })
}

async function fillIn(page: Page, user: string, password: string): Promise<void> {
  await page.getByLabel('User name').fill(user)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

describeWithPeers('a browser', ['chromium', 'oathtool'], () => {
  beforeAll(async () => {
    const port = await freePort()
    url = `https://localhost:${port}`
    ;[h, browser] = await Promise.all([startHarness({}, url), startPageBrowser()])
    await h.api.listen({ host: '127.0.0.1', port })
  })
  afterAll(async () => {
    await browser?.close()
    await h?.close()
  })

  it('signs in without a script, and enrols for one-time codes, on a phone', async () => {
    h.clock.now = Date.now()
    await h.addUser('tina', 'user')
    const cookie = await h.signIn()
    const body = { group_name: 'codes', users: ['tina'], second_factor: 'required' }
    await h.call('POST', '/usergroups', { cookie, body })
    const profile = await newProfile(browser, {
      javaScriptEnabled: false,
      viewport: { width: 360, height: 740 },
      isMobile: true,
    })
    const page = await profile.newPage()
    await page.goto(`${url}/account`)
    await picture(page, 'sign-in-phone')
    expect(
      await page
        .locator('html')
        .evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)
        .catch(() => 0),
    ).toBe(0)
    await fillIn(page, 'tina', 'wrong')
    await expect
      .poll(() => page.getByRole('alert').textContent())
      .toContain('The user name or the password is wrong')
    await picture(page, 'wrong-phone')
    await fillIn(page, 'tina', 'tina password')
    const secret = (await page.locator('code').textContent()) ?? ''
    await picture(page, 'enrol-phone')
    const { stdout } = await run(findProgram('oathtool'), ['--totp', '--base32', secret])
    await page.getByLabel('First code').fill(stdout.trim())
    await page.getByRole('button', { name: 'Continue' }).click()
    await picture(page, 'recovery-phone')
    const code = (await page.locator('.codes li').first().textContent()) ?? ''
    await page.getByRole('button', { name: 'I have noted them down' }).click()
    expect(await page.locator('dd').first().textContent()).toBe('tina')
    await picture(page, 'account-phone')
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await fillIn(page, 'tina', 'tina password')
    await picture(page, 'code-phone')
    await page.getByLabel('One-time code').fill(code)
    await page.getByRole('button', { name: 'Continue' }).click()
    expect(new URL(page.url()).pathname).toBe('/account')
    await profile.close()
  })

  it('adds a security key, which is the second factor from then on, and a copy of it is refused', async () => {
    h.clock.now = Date.now()
    await h.addUser('kim', 'user')
    const profile = await newProfile(browser, {
      colorScheme: 'dark',
      viewport: { width: 1280, height: 800 },
      userAgent: `Agent ${TAGS}`,
    })
    const page = await profile.newPage()
    const errors: string[] = []
    page.on('console', (message) => errors.push(message.text()))
    page.on('pageerror', (error) => errors.push(String(error)))
    const key = await plugIn(page)
    await page.goto(`${url}/signin`)
    await picture(page, 'sign-in-dark')
    await fillIn(page, 'kim', 'kim password')
    await page.getByLabel('Name of a new key').fill(KEY)
    await page.locator('#proof').fill('not this')
    await page.getByRole('button', { name: 'Add a security key' }).click()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('Nothing was changed')
    await page.getByLabel('Name of a new key').fill(KEY)
    await page.locator('#proof').fill('kim password')
    await page.getByRole('button', { name: 'Add a security key' }).click()
    await picture(page, 'add-key-dark')
    await page.getByRole('button', { name: 'Ask for the key' }).click()
    await page.getByText(KEY).first().waitFor()
    await picture(page, 'account-dark')
    await page.getByText(`Agent ${TAGS}`, { exact: true }).waitFor()
    expect(await page.locator('#planted').count()).toBe(0)
    expect((await h.events('factor.key_add')).map(({ object }) => object)).toEqual([`kim ${KEY}`])

    const signInByKey = async () => {
      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
      await fillIn(page, 'kim', 'kim password')
      await picture(page, 'key-dark')
      await page.getByRole('button', { name: 'Use the security key' }).click()
      await page.waitForURL((at) => at.pathname === '/account' || at.pathname === '/signin')
    }
    await signInByKey()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    const [used] = await h.store.securityKeys.list((await h.store.users.find('kim'))!.id)
    expect(used).toMatchObject({ name: KEY, lastUse: h.clock.now })
    expect(used!.signCount).toBeGreaterThan(0)

    await key.setSignCount(0)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await fillIn(page, 'kim', 'kim password')
    await page.getByRole('button', { name: 'Use the security key' }).click()
    await expect
      .poll(() => page.getByRole('alert').textContent())
      .toContain('The user name or the password is wrong')
    expect((await h.events('auth.failure')).at(-1)).toMatchObject({
      user: 'kim',
      reason: 'copied_security_key',
    })
    expect(errors.filter((text) => !text.includes('status of 4'))).toEqual([])
    await profile.close()
  })

  it('lists where the user is signed in, and signs out everywhere', async () => {
    const [here, there] = [await newProfile(browser), await newProfile(browser, { locale: 'de-DE' })]
    const [one, other] = [await here.newPage(), await there.newPage()]
    await one.goto(`${url}/signin`)
    await fillIn(one, ADMIN.user, ADMIN.password)
    await other.goto(`${url}/signin`)
    await picture(other, 'sign-in-de')
    await other.getByLabel('Benutzername').fill(ADMIN.user)
    await other.getByLabel('Passwort').fill(ADMIN.password)
    await other.getByRole('button', { name: 'Anmelden' }).click()
    await other.getByText('dieser Browser').waitFor()
    await picture(other, 'account-de')
    await one.reload()
    expect(await one.getByText('this browser').count()).toBe(1)
    await picture(one, 'account-light')
    await one.getByRole('button', { name: 'Sign out everywhere' }).click()
    await one.getByText('You are signed out.').waitFor()
    await other.reload()
    expect(new URL(other.url()).pathname).toBe('/signin')
    await Promise.all([here.close(), there.close()])
  })
})
