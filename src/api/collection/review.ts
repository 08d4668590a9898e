/** What a change takes away ends at once: running sessions, tickets and invitations at the gate, and those who watch here. */
import type { FastifyRequest } from 'fastify'
import type { Context } from '../access/context.ts'

/** The change is made: that it cannot be reviewed now is no failure of it, everything is again in a moment. */
export async function reviewed(
  { deps, watchers }: Pick<Context, 'deps' | 'watchers'>,
  request: FastifyRequest,
): Promise<void> {
  await deps.sessionControl.review().catch((error: unknown) => {
    request.log.error({ err: error }, 'running sessions could not be reviewed')
  })
  await Promise.all([...watchers].map((watcher) => watcher.review()))
}
