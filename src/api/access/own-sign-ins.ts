/** The end of a user's own sign-ins, for the API and the account page. */
import type { FastifyRequest } from 'fastify'
import type { Id } from '../../model/objects.ts'
import { callerOf, userOf } from './caller.ts'
import type { Context } from './context.ts'
import { actor, record } from './events.ts'

const ALL = { limit: -1, offset: 0 }
const REASON = 'the user has ended all sign-ins and sessions'

/** Ends one of the caller's sign-ins. Returns false if there is none of that id. */
export async function endOwnSignIn(context: Context, request: FastifyRequest, id: Id): Promise<boolean> {
  const { deps, signIns } = context
  const user = userOf(request)
  const own = await signIns.ofUser(user.id, deps.clock())
  if (!own.some((one) => one.id === id)) return false
  await record(deps.audit, request, 'auth.sign_out', { ...actor(callerOf(request)), count: 1 })
  await signIns.endOfUser(user.id, id)
  return true
}

/** Ends all of the caller's sign-ins by cookie, this one too, and the running sessions if wanted. */
export async function endOwnSignIns(
  context: Context,
  request: FastifyRequest,
  { withSessions }: { withSessions: boolean },
): Promise<void> {
  const { deps, signIns } = context
  const user = userOf(request)
  const caller = callerOf(request)
  const own = await signIns.ofUser(user.id, deps.clock())
  await record(deps.audit, request, 'auth.sign_out', { ...actor(caller), count: own.length })
  await signIns.endOfUser(user.id)
  if (!withSessions) return
  const { items } = await deps.store.sessions.list({ status: 'current' }, ALL)
  for (const { id, user: name } of items) {
    if (name === user.userName) await deps.sessionControl.kill(id, REASON, caller.name, caller.key?.keyName)
  }
}
