/** A browser without a script for the pages: keeps cookies, and sends the forms that a page has shown. */
import type { Harness } from '../api/harness.ts'

export interface Shown {
  status: number
  headers: Record<string, string | string[] | number | undefined>
  text: string
}

export interface Sent {
  headers?: Record<string, string>
  /** Fields of a form, or a body as it is. */
  form?: Record<string, string>
  raw?: string
}

export class FormBrowser {
  readonly cookies = new Map<string, string>()
  readonly #api: Harness['api']
  /** Header fields of each request. */
  headers: Record<string, string> = {}

  constructor(api: Harness['api']) {
    this.#api = api
  }

  async get(url: string, headers: Record<string, string> = {}): Promise<Shown> {
    return await this.send('GET', url, { headers })
  }

  /** Sends the form of the page that leads to `action`, with these fields changed. */
  async submit(page: Shown, action: string, fields: Record<string, string> = {}): Promise<Shown> {
    return await this.send('POST', action, { form: { ...fieldsOf(page.text, action), ...fields } })
  }

  async send(method: string, url: string, { headers = {}, form, raw }: Sent = {}): Promise<Shown> {
    const payload = raw ?? (form && new URLSearchParams(form).toString())
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await this.#api.inject({
      method: method as 'GET',
      url,
      headers: {
        ...(payload === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(cookie === '' ? {} : { cookie }),
        ...this.headers,
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
    })
    for (const { name, value } of answer.cookies) {
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return { status: answer.statusCode, headers: answer.headers, text: answer.body }
  }
}

/** Returns the fields of a page's form as it was shown. */
export function fieldsOf(text: string, action: string): Record<string, string> {
  const form = text
    .split('<form ')
    .find((part) => part.includes(` action="${action}"`) || part.startsWith(`action="${action}"`))
  if (form === undefined) throw new Error(`no form leads to ${action}: ${text}`)
  const [own = ''] = form.split('</form>')
  const inputs = [...own.matchAll(/<input [^>]*>/g)].map(([input]) => input)
  return Object.fromEntries(
    inputs.map((input) => [
      / name="([^"]*)"/.exec(input)?.[1] ?? '',
      / value="([^"]*)"/.exec(input)?.[1] ?? '',
    ]),
  )
}
