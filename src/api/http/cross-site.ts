/**
 * Requests that a browser sends on another site's behalf. Other clients send neither `Sec-Fetch-Site` nor
 * `Origin` and are not affected; a browser cannot omit them.
 */
import type { FastifyRequest } from 'fastify'
import { ApiError } from './errors.ts'

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
