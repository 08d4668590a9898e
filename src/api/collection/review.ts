/**
 * Withdraws at once what a change has removed: sessions, tickets and invitations at the gate, and watchers
 * here.
 */
import type { FastifyRequest } from 'fastify'
import type { Context } from '../access/context.ts'

/**
 * Runs the reviews. Their failure is no failure of the change, which is made; everything is reviewed again
 * shortly.
 */
export async function reviewed(
  { deps, watchers }: Pick<Context, 'deps' | 'watchers'>,
  request: FastifyRequest,
): Promise<void> {
  await deps.sessionControl.review().catch((error: unknown) => {
    request.log.error({ err: error }, 'running sessions could not be reviewed')
  })
  await Promise.all([...watchers].map((watcher) => watcher.review()))
}
