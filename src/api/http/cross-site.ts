/**
 * Requests that a browser sends on another site's behalf. A plain client sends neither `Sec-Fetch-Site` nor
 * `Origin` and is not held up; a browser cannot leave them out.
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
