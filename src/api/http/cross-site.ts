/**
 * Requests that a browser sends on another site's behalf. Other clients send neither `Sec-Fetch-Site` nor
 * `Origin` and are not affected; a browser cannot omit them.
 */
import type { FastifyRequest } from 'fastify'
import { ApiError } from './errors.ts'

/** Whether a browser opens the URL in a tab of its own, by a link of any site: not for a frame, a picture or a script. */
export function isLinkFollowed({ headers, method }: FastifyRequest): boolean {
  const isRead = method === 'GET' || method === 'HEAD'
  return isRead && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
}

/** @throws ApiError `cross_site` */
export function refuseCrossSite(request: FastifyRequest): void {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new ApiError('cross_site')
  const origin = request.headers.origin
  if (
    origin !== undefined &&
    origin.toLowerCase() !== `https://${request.headers.host ?? ''}`.toLowerCase()
  ) {
    throw new ApiError('cross_site')
  }
}
