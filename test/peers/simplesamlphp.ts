/** Debian's SimpleSAMLphp as an identity provider, on PHP's own web server: plain HTTP on loopback. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

export interface IdpUser {
  password: string
  attributes: Readonly<Record<string, readonly string[]>>
}

/** A service provider, as the identity provider knows it. */
export interface KnownService {
  entityId: string
  acs: string
  slo: string
  /** PEM. */
  certificate: string
  nameIdFormat?: 'persistent' | 'transient'
  isEncrypted?: boolean
  /** Whether the response is signed, beside the assertion. */
  isResponseSigned?: boolean
}

export interface SimpleSamlPhp {
  /** Begins the URLs of its pages. */
  base: string
  /** URL of its metadata, which is its entityID. */
  metadataUrl: string
  /** PEM. */
  certificate: string
  /** Makes it know these service providers, and no others. */
  know(services: readonly KnownService[]): void
  log(): string
  stop(): Promise<void>
}

export async function startSimpleSamlPhp(users: Readonly<Record<string, IdpUser>>): Promise<SimpleSamlPhp> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-ssp-'))
  const inside = (...names: string[]) => join(folder, ...names)
  for (const name of ['config', 'metadata', 'cert', 'log', 'data', 'tmp']) mkdirSync(inside(name))
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'idp' }], {
    keyType: 'rsa',
    keySize: 2048,
    algorithm: 'sha256',
  })
  writeFileSync(inside('cert', 'idp.crt'), cert)
  writeFileSync(inside('cert', 'idp.pem'), key, { mode: 0o600 })
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const entityId = `${base}/saml2/idp/metadata.php`
  const settings = {
    baseurlpath: `${base}/`,
    certdir: `${inside('cert')}/`,
    loggingdir: `${inside('log')}/`,
    datadir: `${inside('data')}/`,
    tempdir: inside('tmp'),
    metadatadir: inside('metadata'),
    secretsalt: 'salt of the tests only',
    'auth.adminpassword': 'of the tests only',
    'enable.saml20-idp': true,
    'module.enable': { exampleauth: true, core: true, saml: true },
    'session.cookie.secure': false,
    'session.cookie.samesite': 'Lax',
    'logging.handler': 'file',
    'metadata.sources': [{ type: 'flatfile' }],
    'trusted.url.domains': null,
  }
  const merged = `<?php require '/etc/simplesamlphp/config.php'; $config = array_merge($config, ${php(settings)});`
  writeFileSync(inside('config', 'config.php'), merged)
  const passwords = Object.fromEntries(
    Object.entries(users).map(([name, { password, attributes }]) => [`${name}:${password}`, attributes]),
  )
  const sources = { users: { 0: 'exampleauth:UserPass', ...passwords } }
  writeFileSync(inside('config', 'authsources.php'), `<?php $config = ${php(sources)};`)
  const hosted = {
    [entityId]: {
      host: '__DEFAULT__',
      privatekey: 'idp.pem',
      certificate: 'idp.crt',
      auth: 'users',
      'signature.algorithm': 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
      'redirect.sign': true,
      'redirect.validate': true,
      'assertion.encryption': false,
      authproc: {
        10: {
          class: 'saml:AttributeNameID',
          attribute: 'uid',
          Format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
        },
        11: { class: 'saml:TransientNameID' },
      },
    },
  }
  writeFileSync(inside('metadata', 'saml20-idp-hosted.php'), `<?php $metadata = ${php(hosted)};`)
  const know = (services: readonly KnownService[]) => {
    const remote = Object.fromEntries(services.map((service) => [service.entityId, remoteOf(service)]))
    writeFileSync(inside('metadata', 'saml20-sp-remote.php'), `<?php $metadata = ${php(remote)};`)
  }
  know([])
  try {
    const options = ['-d', `session.save_path=${inside('tmp')}`, '-d', 'opcache.enable=0']
    const args = [...options, '-S', `127.0.0.1:${port}`, '-t', '/usr/share/simplesamlphp/www']
    const isReady = async () => (await fetch(entityId).catch(() => undefined))?.status === 200
    const env = { ...process.env, SIMPLESAMLPHP_CONFIG_DIR: inside('config') }
    const daemon = await startDaemon(findProgram('php'), args, isReady, { env })
    return {
      base,
      metadataUrl: entityId,
      certificate: cert,
      know,
      log: daemon.log,
      stop: async () => {
        await daemon.stop()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

function remoteOf({ certificate, nameIdFormat = 'persistent', ...service }: KnownService) {
  const redirect = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect'
  const post = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST'
  return {
    AssertionConsumerService: [{ Binding: post, Location: service.acs, index: 0 }],
    SingleLogoutService: [{ Binding: redirect, Location: service.slo }],
    certData: certificate.replaceAll(/-----[A-Z ]+-----|\s+/g, ''),
    NameIDFormat: `urn:oasis:names:tc:SAML:2.0:nameid-format:${nameIdFormat}`,
    'validate.authnrequest': true,
    'validate.logout': true,
    'saml20.sign.response': service.isResponseSigned ?? false,
    'saml20.sign.assertion': true,
    'assertion.encryption': service.isEncrypted ?? false,
  }
}

/** Writes a value in PHP. */
function php(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(php).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `[${Object.entries(value)
      .map(([name, one]) => `${/^\d+$/.test(name) ? name : php(name)} => ${php(one)}`)
      .join(', ')}]`
  return typeof value === 'string' ? `'${value.replaceAll(/[\\']/g, (one) => `\\${one}`)}'` : String(value)
}

/** A person's browser at the identity provider: follows redirects there, and keeps its cookies. */
export class IdpBrowser {
  readonly #cookies = new Map<string, string>()

  /** Opens a URL of the identity provider; returns the page, or the URL elsewhere that it leads to. */
  async open(url: string, form?: Readonly<Record<string, string>>): Promise<{ url: string; text: string }> {
    const base = new URL(url).origin
    let at = url
    let body = form && new URLSearchParams(form)
    for (let hop = 0; hop < 10; hop++) {
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const answer = await fetch(at, {
        redirect: 'manual',
        headers: { cookie },
        ...(body && { method: 'POST', body }),
      })
      for (const line of answer.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
        this.#cookies.set(name!, value!)
      }
      const next = answer.headers.get('location')
      const text = await answer.text()
      if (next === null) return { url: at, text }
      at = new URL(next, at).href
      body = undefined
      if (new URL(at).origin !== base) return { url: at, text: '' }
    }
    throw new Error(`the identity provider leads from page to page: ${at}`)
  }

  /** Signs in on its form. */
  async signIn(url: string, user: string, password: string): Promise<{ url: string; text: string }> {
    const page = await this.open(url)
    const state = /name="AuthState" value="([^"]+)"/.exec(page.text)?.[1]
    // A person with a session there is asked nothing.
    if (state === undefined) return page
    const fields = { username: user, password, AuthState: unescaped(state) }
    return await this.open(page.url.replace(/\?.*/, ''), fields)
  }
}

/** Returns the fields of the form by which the identity provider sends the browser back. */
export function postedFields(text: string): Record<string, string> {
  const inputs = [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
  return Object.fromEntries(inputs.map(([, name, value]) => [name!, unescaped(value!)]))
}

const unescaped = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#039;', "'")
    .replaceAll('&amp;', '&')
