/**
 * Probes for balancers, orchestrators and supervisors, beside the API and without sign-in. They read what the broker
 * knows already, so that asking often costs nothing, and name parts only: an answer tells a stranger nothing more.
 */
import type { Api, ApiDeps } from './http/deps.ts'

/** Paths of the probes: they are answered while the database is away. */
export const PROBES: readonly string[] = ['/healthz', '/readyz']

export function registerHealth(app: Api, { obstacles }: Pick<ApiDeps, 'obstacles'>): void {
  // An answer is all that it takes: no restart mends what ails the parts around the process.
  app.get('/healthz', { schema: { hide: true } }, () => ({ status: 'ok' }))
  app.get('/readyz', { schema: { hide: true } }, (_request, reply) => {
    const found = obstacles()
    if (found.length === 0) return { status: 'ready' }
    reply.code(503)
    return { status: 'not_ready', obstacles: found }
  })
}
