/** A browser without a window, for sign-ins at a provider: cookies, redirects and forms. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'

export interface Page {
  url: URL
  status: number
  headers: IncomingMessage['headers']
  text: string
}

interface Sent {
  method?: string
  body?: URLSearchParams
}

export class Browser {
  readonly #ca: (origin: string) => string
  /** Cookies by origin and name. */
  readonly #cookies = new Map<string, Map<string, string>>()

  /** `ca`: the certificate of each origin. OpenSSL finds but one of several that have the same subject. */
  constructor(ca: string | ((origin: string) => string)) {
    this.#ca = typeof ca === 'string' ? () => ca : ca
  }

  /** Sends one request, and follows no redirect. */
  async send(url: URL, { method = 'GET', body }: Sent = {}): Promise<Page> {
    const jar = this.#cookies.get(url.origin) ?? new Map<string, string>()
    this.#cookies.set(url.origin, jar)
    const { promise, resolve, reject } = Promise.withResolvers<Page>()
    const headers = {
      cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(body && { 'content-type': 'application/x-www-form-urlencoded' }),
    }
    const call = request(url, { method, headers, ca: this.#ca(url.origin), agent: false }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        for (const line of answer.headers['set-cookie'] ?? []) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
          if (/expires=Thu, 01 Jan 1970/i.test(line) || value === '') jar.delete(name)
          else jar.set(name, value)
        }
        const { statusCode: status = 0, headers: said } = answer
        resolve({ url, status, headers: said, text: Buffer.concat(chunks).toString() })
      })
    })
    call.on('error', reject)
    call.end(body?.toString())
    return await promise
  }

  /** Follows redirects up to a page, or up to the first URL that begins with `until`, which it does not open. */
  async open(start: URL, until: string, sent: Sent = {}): Promise<Page> {
    let url = start
    let how = sent
    for (let count = 0; count < 20; count++) {
      if (url.href.startsWith(until)) return { url, status: 0, headers: {}, text: '' }
      const page = await this.send(url, how)
      const { location } = page.headers
      if (location === undefined) return page
      url = new URL(location, url)
      how = {}
    }
    throw new Error('too many redirects')
  }

  /** Sends the form of a page, with its hidden fields and these. */
  async submit(page: Page, fields: Record<string, string>, until: string): Promise<Page> {
    const [, action = ''] = /<form[^>]*action="([^"]*)"/.exec(page.text) ?? []
    const body = new URLSearchParams()
    for (const [, name = '', value = ''] of page.text.matchAll(
      /<input [^>]*type="hidden" name="([^"]*)" value="([^"]*)"/g,
    ))
      body.set(name, value)
    for (const [name, value] of Object.entries(fields)) body.set(name, value)
    const to = new URL(action.replaceAll('&amp;', '&').replaceAll('&#x2F;', '/'), page.url)
    return await this.open(to, until, { method: 'POST', body })
  }
}
