/** Debian's LemonLDAP::NG (Perl, Lasso) as a provider of OpenID Connect and SAML, on Plack's own web server by TLS. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { Browser, type Page } from './oidc/browser.ts'
import { freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import { certificateFiles } from './vnc/certificate.ts'

export const CLIENT_SECRET = 'secret-of-32-characters-or-more-for-the-bastion'

/** A person, whose password is the name: so has it the product's demonstration. */
export interface LemonPerson {
  name: string
  mail: string
  groups: readonly string[]
}

/** The services that it signs persons in to. */
export interface LemonServices {
  /** Begins the addresses of the OpenID Connect client `bastion`. */
  oidc: string
  /** Where the browser goes after a sign-out. */
  signedOut: string
  /** Metadata of the SAML service provider, as text. */
  saml: string
}

export interface LemonLdap {
  /** Its pages' URL, which is the issuer. */
  portal: string
  /** PEM of its certificate for TLS. */
  ca: string
  /** Starts it; the services have to know its address before. */
  start(services: LemonServices): Promise<void>
  /** Knows these persons, by their names, and no others from the next request on. */
  know(persons: Readonly<Record<string, LemonPerson>>): void
  newBrowser(): Browser
  /** Signs in on its form, up to the first URL that begins with `until` or a page. */
  signIn(browser: Browser, url: string, user: string, password: string, until: string): Promise<Page>
  log(): string
  stop(): Promise<void>
}

export async function layLemonLdap(): Promise<LemonLdap> {
  const files = await certificateFiles()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-lemonldap-'))
  const inside = (...names: string[]) => join(folder, ...names)
  for (const name of ['conf', 'sessions', 'locks', 'cache']) mkdirSync(inside(name))
  const port = await freePort()
  const portal = `https://127.0.0.1:${port}/`
  let daemon: Awaited<ReturnType<typeof startDaemon>> | undefined
  const newBrowser = () => new Browser(files.pem.cert)
  const peer: LemonLdap = {
    portal,
    ca: files.pem.cert,
    newBrowser,
    know(persons) {
      const groups: Record<string, string[]> = {}
      for (const [uid, person] of Object.entries(persons))
        for (const group of person.groups) groups[group] = [...(groups[group] ?? []), uid]
      const known = Object.entries(persons).map(([uid, { name: cn, mail }]) => [uid, { uid, cn, mail }])
      writeFileSync(inside('accounts.json'), JSON.stringify({ persons: Object.fromEntries(known), groups }))
    },
    async start(services) {
      writeFileSync(inside('lemonldap-ng.ini'), ini(inside('conf')))
      const storage = { Directory: inside('sessions'), LockDirectory: inside('locks') }
      const content = {
        ...{ cfgNum: 1, cfgDate: 1, domain: '127.0.0.1', portal, key: randomBytes(16).toString('hex') },
        ...{ authentication: 'Demo', userDB: 'Same', passwordDB: '', registerDB: '' },
        ...{ globalStorage: 'Apache::Session::File', globalStorageOptions: storage },
        ...{ persistentStorage: 'Apache::Session::File', persistentStorageOptions: storage },
        localSessionStorage: 'Cache::FileCache',
        localSessionStorageOptions: { cache_root: inside('cache') },
        demoExportedVars: { uid: 'uid', cn: 'cn', mail: 'mail' },
        locationRules: { '127.0.0.1': { default: 'accept' } },
        securedCookie: 1,
        ...{ notification: 0, portalDisplayResetPassword: 0, portalDisplayCertificateResetByMail: 0 },
        ...oidc(services),
        ...(await saml(services)),
      }
      writeFileSync(inside('conf', 'lmConf-1.json'), JSON.stringify(content))
      const args = ['--host', '127.0.0.1', '--port', String(port), '--no-default-middleware']
      const tls = ['--ssl', '1', '--ssl-key-file', files.key, '--ssl-cert-file', files.cert]
      const program = join(import.meta.dirname, 'lemonldap.psgi')
      const env = {
        ...process.env,
        LLNG_DEFAULTCONFFILE: inside('lemonldap-ng.ini'),
        LEMONLDAP_ACCOUNTS: inside('accounts.json'),
      }
      const options = { env, cwd: folder }
      daemon = await startDaemon(
        findProgram('plackup'),
        [...args, ...tls, program],
        /Accepting connections/,
        options,
      )
    },
    async signIn(browser, url, user, password, until) {
      const page = await browser.open(new URL(url), until)
      if (!page.text.includes('name="password"')) return page
      return await browser.submit(page, { user, password }, until)
    },
    log: () => daemon?.log() ?? '',
    async stop() {
      await daemon?.stop()
      files.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  peer.know({})
  return peer
}

const ini = (folder: string) => `
[all]
logLevel = warn
[configuration]
type = File
dirName = ${folder}
[portal]
staticPrefix = /static
templateDir = /usr/share/lemonldap-ng/portal/templates
languages = en
`

function oidc({ oidc: below, signedOut }: LemonServices) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const client = {
    ClientID: 'bastion',
    ClientSecret: CLIENT_SECRET,
    IDTokenSignAlg: 'RS256',
    RequirePKCE: 1,
    RedirectUris: `${below}/callback`,
    PostLogoutRedirectUris: signedOut,
    BypassConsent: 1,
    AllowOffline: 1,
    LogoutBypassConfirm: 1,
  }
  const options = Object.entries(client).map(([name, value]) => [`oidcRPMetaDataOptions${name}`, value])
  return {
    issuerDBOpenIDConnectActivation: 1,
    oidcServicePrivateKeySig: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    oidcServicePublicKeySig: publicKey.export({ type: 'spki', format: 'pem' }),
    oidcServiceKeyIdSig: 'lemon',
    oidcRPMetaDataOptions: { bastion: Object.fromEntries(options) },
    oidcRPMetaDataExportedVars: {
      bastion: { preferred_username: 'uid', name: 'cn', email: 'mail', groups: 'groups;array;always' },
    },
    oidcRPMetaDataOptionsExtraClaims: { bastion: { profile: 'preferred_username name groups' } },
  }
}

async function saml({ saml: metadata }: LemonServices) {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'lemon' }], {
    keyType: 'rsa',
    keySize: 2048,
    algorithm: 'sha256',
  })
  const checks = {
    SignSSOMessage: 1,
    SignSLOMessage: 1,
    CheckSSOMessageSignature: 1,
    CheckSLOMessageSignature: 1,
    EncryptionMode: 'none',
  }
  const options = Object.entries(checks).map(([name, value]) => [`samlSPMetaDataOptions${name}`, value])
  return {
    issuerDBSAMLActivation: 1,
    samlServicePrivateKeySig: key,
    samlServicePublicKeySig: cert,
    samlServiceSignatureMethod: 'RSA_SHA256',
    samlSPMetaDataXML: { bastion: { samlSPMetaDataXML: metadata } },
    samlSPMetaDataOptions: { bastion: Object.fromEntries(options) },
    samlSPMetaDataExportedAttributes: {
      // Whether it is mandatory, and its name.
      bastion: { uid: '1;uid;;', cn: '0;displayName;;', mail: '0;mail;;', groups: '0;groups;;' },
    },
  }
}
