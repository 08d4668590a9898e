/** Reads a JSON object by HTTPS: without redirects, of a bounded size, in a bounded time. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
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

/** @throws Error that says what came instead */
export async function getJson(
  url: URL,
  { caCertificates, timeoutMs }: JsonSource,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const late = AbortSignal.timeout(timeoutMs)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const call = request(url, {
    agent: false,
    headers: { accept: 'application/json', 'user-agent': 'sallyport' },
    maxHeaderSize: MAX_HEADERS,
    minVersion: 'TLSv1.2',
    signal: AbortSignal.any([late, signal]),
    ...(caCertificates !== undefined && { ca: caCertificates }),
  })
  call.on('response', (answer) => bytesOf(answer).then(resolve, reject))
  call.on('error', reject)
  call.end()
  try {
    const value: unknown = JSON.parse((await promise).toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
    throw new Error('expected a JSON object')
  } catch (error) {
    const reason = late.aborted ? `no whole answer within ${timeoutMs} ms` : (error as Error).message
    throw new Error(`${url.href}: ${reason}`)
  } finally {
    call.destroy()
  }
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const { statusCode } = answer
  if (statusCode !== 200) throw new Error(`expected status 200, got ${statusCode}`)
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of answer) {
    chunks.push(chunk)
    length += chunk.length
    if (MAX_ANSWER < length) throw new Error(`the answer is longer than ${MAX_ANSWER} bytes`)
  }
  return Buffer.concat(chunks)
}
