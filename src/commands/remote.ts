/**
 * A broker's API, for commands that work from anywhere: `--url`, and an API key from a file or the environment,
 * so that no key is in a command line, which others can read; or a sign-in, whose cookie is kept.
 */
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { rootCertificates } from 'node:tls'
import type { ParseArgsOptionsConfig } from 'node:util'
import { type Invocation, textOption, UsageError } from './command.ts'
import { keptSignIn } from './kept-sign-in.ts'

/** Options of commands that sign in. */
export const SIGN_IN_OPTIONS = {
  url: { type: 'string' },
  user: { type: 'string' },
  'ca-file': { type: 'string' },
} as const satisfies ParseArgsOptionsConfig

export const REMOTE_OPTIONS = {
  ...SIGN_IN_OPTIONS,
  'key-file': { type: 'string' },
} as const satisfies ParseArgsOptionsConfig

/** Variables for options that are not given; the key is taken from the file, if there is one. */
export const KEY_VARIABLE = 'SALLYPORT_API_KEY'
const VARIABLES: Readonly<Record<string, string>> = {
  url: 'SALLYPORT_URL',
  'key-file': 'SALLYPORT_API_KEY_FILE',
  user: 'SALLYPORT_USER',
  'ca-file': 'SALLYPORT_CA',
}

/** Milliseconds without a byte from the broker: more than it waits for its own database. */
const TIMEOUT_MS = 90_000
const MAX_ANSWER_BYTES = 1024 * 1024
const MAX_KEY_BYTES = 1024
/** The cookie of a sign-in: name and value. */
const COOKIE = /^sallyport_session=[A-Za-z0-9_-]{1,256}(?=;|$)/

/** The broker refused a request, in its own words. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError'
  readonly status: number
  /** The API's code, if the answer is one of the API. */
  readonly code: string | undefined
  /** The answer, whole. */
  readonly body: unknown

  constructor(status: number, message: string, code?: string, body?: unknown) {
    super(message)
    this.status = status
    this.code = code
    this.body = body
  }
}

type Given = (name: string) => string | undefined

function givenBy(invocation: Invocation, environment: NodeJS.ProcessEnv): Given {
  return (name) => textOption(invocation, name) ?? environment[VARIABLES[name]!]
}

/** Returns the name that the command acts for. @throws UsageError */
export function userOption(invocation: Invocation, environment: NodeJS.ProcessEnv = process.env): string {
  const user = givenBy(invocation, environment)('user')
  if (user === undefined || !/^[^\p{Cc}]+$/u.test(user))
    throw new UsageError(`expected --user NAME, or the variable ${VARIABLES['user']}`)
  return user
}

/** Returns the headers by which an API key acts, for a user if one is named. @throws UsageError, Error */
function keyHeaders(
  invocation: Invocation,
  environment: NodeJS.ProcessEnv,
  isAlone: boolean,
): Readonly<Record<string, string>> | undefined {
  const given = givenBy(invocation, environment)
  const file = given('key-file')
  const key = file === undefined ? environment[KEY_VARIABLE] : read('--key-file', file)
  if (key === undefined || key.trim() === '') return undefined
  if (key.length > MAX_KEY_BYTES || !/^[\x21-\x7e]+$/.test(key.trim()))
    throw new Error('the API key is none: expected one line, as POST /apikeys returned it')
  const own = { 'x-auth-key': key.trim() }
  if (isAlone && given('user') === undefined) return own
  // Header fields have bytes.
  return { ...own, 'x-auth-user': Buffer.from(userOption(invocation, environment)).toString('latin1') }
}

export class Remote {
  readonly #base: URL
  readonly #headers: Readonly<Record<string, string>>
  readonly #ca: string[] | undefined
  /** The cookie of a sign-in, once an answer has set one. */
  #cookie: string | undefined

  /**
   * `by`: an API key, which acts for a user, or `key alone`, which may; without one, the sign-in that `login --keep` has
   * left. Or a sign-in by the first requests.
   * @throws UsageError if an option is missing or wrong, Error if a file cannot be read
   */
  constructor(
    invocation: Invocation,
    environment: NodeJS.ProcessEnv = process.env,
    by: 'key' | 'key alone' | 'sign-in' = 'key',
  ) {
    const given = givenBy(invocation, environment)
    this.#base = baseOf(given('url'))
    this.#headers = {
      ...(by !== 'sign-in' && this.#proof(invocation, environment, by)),
      accept: 'application/json',
    }
    const ca = given('ca-file')
    this.#ca = ca === undefined ? undefined : [...rootCertificates, read('--ca-file', ca)]
  }

  #proof(invocation: Invocation, environment: NodeJS.ProcessEnv, by: 'key' | 'key alone') {
    const headers = keyHeaders(invocation, environment, by === 'key alone')
    if (headers) return headers
    this.#cookie = keptSignIn(this.#base.href)?.cookie
    if (this.#cookie !== undefined) return {}
    throw new UsageError(
      `expected an API key: --key-file FILE, or the variable ${KEY_VARIABLE}; or sign in: sallyport login --keep`,
    )
  }

  /** The base and the cookie of the sign-in, for the commands after this one. */
  get signIn(): { url: string; cookie: string } | undefined {
    return this.#cookie === undefined ? undefined : { url: this.#base.href, cookie: this.#cookie }
  }

  /**
   * Sends a request under the API's base, and returns the answer's body.
   * @throws RemoteError if the broker refuses it, Error with what to do if there is no answer, or `signal` aborted it
   */
  post(path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    return this.#send('POST', path, { body, ...(signal && { signal }) })
  }

  /** Reads an object or a list, with the same errors. */
  get(path: string, query?: URLSearchParams): Promise<unknown> {
    return this.#send('GET', path, query ? { query } : {})
  }

  /** Reads a page, with the same errors; `next`: the cursor of the next one, if there is one. */
  async page(path: string, query: URLSearchParams): Promise<{ body: unknown; next?: string }> {
    let next: string | string[] | undefined
    const body = await this.#send('GET', path, {
      query,
      onHeaders: (headers) => {
        next = headers['x-next-cursor']
      },
    })
    return { body, ...(typeof next === 'string' && { next }) }
  }

  /** Deletes an object, with the same errors. */
  delete(path: string): Promise<unknown> {
    return this.#send('DELETE', path, {})
  }

  #send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    {
      body,
      query,
      signal,
      onHeaders,
    }: {
      body?: object
      query?: URLSearchParams
      signal?: AbortSignal
      onHeaders?: (headers: IncomingHttpHeaders) => void
    },
  ): Promise<unknown> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const url = new URL(this.#base)
    url.pathname += path
    if (query) url.search = query.toString()
    return new Promise((resolve, reject) => {
      const failed = (error: Error) => reject(new Error(`${this.#base.host}: ${wordsOf(error)}`))
      const sent = request(url, {
        method,
        headers: {
          ...this.#headers,
          ...(this.#cookie !== undefined && { cookie: this.#cookie }),
          ...(body !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text),
          }),
        },
        timeout: TIMEOUT_MS,
        // NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
        rejectUnauthorized: true,
        ...(signal && { signal }),
        ...(this.#ca && { ca: this.#ca }),
      })
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} seconds`)))
      sent.on('error', failed)
      sent.on('response', (answer) => {
        onHeaders?.(answer.headers)
        const [cookie] = (answer.headers['set-cookie'] ?? []).flatMap((one) => COOKIE.exec(one) ?? [])
        if (cookie !== undefined) this.#cookie = cookie
        const pieces: Buffer[] = []
        let length = 0
        answer.on('data', (piece: Buffer) => {
          length += piece.length
          if (length > MAX_ANSWER_BYTES) sent.destroy(new Error('its answer is too long for one of the API'))
          else pieces.push(piece)
        })
        answer.on('error', failed)
        answer.on('end', () => {
          try {
            resolve(bodyOf(answer.statusCode ?? 0, Buffer.concat(pieces).toString()))
          } catch (error) {
            reject(error)
          }
        })
      })
      sent.end(text)
    })
  }
}

/** @throws UsageError, which does not repeat the text: it may have a password */
function baseOf(text: string | undefined): URL {
  if (text === undefined) {
    throw new UsageError(`expected --url https://HOST, or the variable ${VARIABLES['url']}`)
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:') throw new UsageError('expected --url to begin with https://')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new UsageError('expected --url https://HOST[:PORT][/api], without a name, a password or a query')
  const path = url.pathname.replace(/\/{2,}/g, '/').replace(/\/$/, '')
  url.pathname = path === '' ? '/api' : path
  return url
}

function read(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`${option} ${file}: ${(error as NodeJS.ErrnoException).code ?? 'it cannot be read'}`)
  }
}

const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: is the broker running, and the port right?',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name cannot be resolved now',
  ECONNRESET: 'the connection was cut',
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'its certificate is self-signed: give it as --ca-file FILE (data/tls/cert.pem)',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is of an unknown authority: give that as --ca-file FILE',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is of an unknown authority: give that as --ca-file FILE',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'its certificate is of an unknown authority: give that as --ca-file FILE',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name than the one in --url',
  CERT_HAS_EXPIRED: 'its certificate has expired',
}

function wordsOf(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  return CODES[code] ?? error.message
}

/** Returns the error for an answer of another server. */
export function notOfApi(status: number): RemoteError {
  return new RemoteError(status, `the answer was ${status}, not one of a broker's API: is --url right?`)
}

function bodyOf(status: number, text: string): unknown {
  const body = parsed(text)
  if (status >= 200 && status < 300) return body
  const { error, description, details } = (body ?? {}) as {
    error?: string
    description?: string
    details?: { field?: string; message: string }[]
  }
  if (typeof description !== 'string' || !Array.isArray(details)) throw notOfApi(status)
  const more = details.map(({ field, message }) => (field === undefined ? message : `${field}: ${message}`))
  throw new RemoteError(status, [`${description} (${error})`, ...more].join('; '), error, body)
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
