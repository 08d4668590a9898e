/**
 * Rejects requests that two readers may interpret differently (RFC 9112 3.2, 6.3, 11.2): a proxy before the
 * broker, or one that logs, might have read another request. They are rejected before anything in them takes
 * effect. Faults that Node's parser rejects itself (two lengths, a length beside chunks, folded fields,
 * spaces before colons) are not checked here.
 */
import type { IncomingMessage } from 'node:http'
import { ApiError } from './errors.ts'

/** Fields that may occur once: of several, some readers use the first, some the last, and some join them. */
const SINGLE: ReadonlySet<string> = new Set([
  'authorization',
  'content-length',
  'content-type',
  'cookie',
  'host',
  'idempotency-key',
  'origin',
  'sec-fetch-site',
  'transfer-encoding',
  'upgrade',
  'x-auth-key',
  'x-auth-user',
])

/** A name or an address, and optionally a port (RFC 3986 3.2.2, 3.2.3); clients may leave it empty. */
const AUTHORITY = /^(?:(?:[A-Za-z0-9._~%!$&'()*+;=-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?)?$/
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i

/** @throws ApiError `malformed_request` */
export function refuseAmbiguous(request: IncomingMessage, url: string): void {
  const seen = new Set<string>()
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const name = request.rawHeaders[at]!.toLowerCase()
    if (!SINGLE.has(name)) continue
    if (seen.has(name)) throw malformed(`the header field ${name} stands twice`)
    seen.add(name)
  }
  const { httpVersion, headers } = request
  const { host } = headers
  if (httpVersion !== '1.1' && httpVersion !== '1.0') throw malformed('expected HTTP/1.1')
  if (httpVersion === '1.1' && host === undefined) throw malformed('the header field host is missing')
  if (host !== undefined && !AUTHORITY.test(host)) throw malformed('the header field host names no host')
  const [, authority] = ABSOLUTE.exec(url) ?? []
  if (authority !== undefined && authority.toLowerCase() !== host?.toLowerCase()) {
    throw malformed('the URL and the header field host name different hosts')
  }
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (httpVersion === '1.0' || coding.trim().toLowerCase() !== 'chunked')) {
    throw malformed('a body comes in chunks (HTTP/1.1), or with its length')
  }
}

/** Returns the path of an absolute URL (RFC 9112 3.2.2). */
export function pathOfUrl(url: string): string {
  const path = url.replace(ABSOLUTE, '')
  return path.startsWith('/') || path === url ? path : `/${path}`
}

function malformed(message: string): ApiError {
  return new ApiError('malformed_request', [{ message }])
}
