/** A real browser for the pages: Chromium driven by playwright-core, with its own authenticator for security keys. */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import { findProgram } from './program.ts'

export interface Authenticator {
  /** Replaces what it knows of its keys, as a copy of it would. */
  setSignCount(count: number): Promise<void>
  remove(): Promise<void>
}

/** Starts the browser. It reaches nothing but this machine; `localhost` is 127.0.0.1. */
export async function startPageBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: findProgram('chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  })
}

/** Opens a profile of its own, which takes the broker's own certificate. */
export async function newProfile(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  return await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-GB', ...options })
}

/** Plugs a security key into the browser of the page (CDP, WebAuthn). */
export async function plugIn(page: Page): Promise<Authenticator> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: false,
      hasUserVerification: false,
      automaticPresenceSimulation: true,
    },
  })
  return {
    async setSignCount(signCount) {
      const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId })
      await session.send('WebAuthn.clearCredentials', { authenticatorId })
      for (const credential of credentials)
        await session.send('WebAuthn.addCredential', {
          authenticatorId,
          credential: { ...credential, signCount },
        })
    },
    async remove() {
      await session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
    },
  }
}
