/** Exchanges with issuers by HTTPS: without redirects, of a bounded size, in a bounded time. */
import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request } from 'node:https'

/** Bytes of an answer. */
export const MAX_ANSWER = 256 * 1024
const MAX_HEADERS = 16 * 1024

export interface JsonSource {
  /** PEM of the authorities, or undefined for the system's. */
  caCertificates: string | undefined
  /** Milliseconds for all of the answer. */
  timeoutMs: number
}

export interface Question {
  method?: string
  headers?: Readonly<Record<string, string>>
  body?: string
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** No whole answer came, or none that fits. */
export class ExchangeError extends Error {
  override name = 'ExchangeError'
}

/** Returns the whole answer, whatever its status. @throws ExchangeError */
export async function exchange(
  url: URL,
  { caCertificates, timeoutMs }: JsonSource,
  signal: AbortSignal,
  { method = 'GET', headers, body }: Question = {},
): Promise<Answer> {
  const late = AbortSignal.timeout(timeoutMs)
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const call = request(url, {
    agent: false,
    method,
    headers: { accept: 'application/json', ...headers, 'user-agent': 'sallyport' },
    maxHeaderSize: MAX_HEADERS,
    minVersion: 'TLSv1.2',
    signal: AbortSignal.any([late, signal]),
    ...(caCertificates !== undefined && { ca: caCertificates }),
  })
  call.on('response', (answer) => {
    const { statusCode: status = 0, headers } = answer
    bytesOf(answer).then((bytes) => resolve({ status, headers, body: bytes }), reject)
  })
  call.on('error', reject)
  call.end(body)
  try {
    return await promise
  } catch (error) {
    const reason = late.aborted ? `no whole answer within ${timeoutMs} ms` : (error as Error).message
    throw new ExchangeError(`${url.origin}${url.pathname}: ${reason}`)
  } finally {
    call.destroy()
  }
}

/** Reads a JSON object. @throws ExchangeError that says what came instead */
export async function getJson(
  url: URL,
  source: JsonSource,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await exchange(url, source, signal)
  try {
    if (status !== 200) throw new Error(`expected status 200, got ${status}`)
    const value: unknown = JSON.parse(body.toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
    throw new Error('expected a JSON object')
  } catch (error) {
    throw new ExchangeError(`${url.href}: ${(error as Error).message}`)
  }
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of answer) {
    chunks.push(chunk)
    length += chunk.length
    if (MAX_ANSWER < length) throw new Error(`the answer is longer than ${MAX_ANSWER} bytes`)
  }
  return Buffer.concat(chunks)
}
