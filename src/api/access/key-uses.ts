/** Logs the use of keys and tokens now and then, per user and address, since they come with every request. */
import type { FastifyRequest } from 'fastify'
import { KEY_USE_INTERVAL, MAX_KEY_USES } from '../http/limits.ts'
import type { Caller } from './caller.ts'
import type { Context } from './context.ts'
import { actor, addressOf, record } from './events.ts'

/** `used`: id of the key, or what stands for the token. */
export async function noteUse(
  { deps, keyUses }: Context,
  request: FastifyRequest,
  used: string,
  caller: Caller,
  method: string,
): Promise<void> {
  const use = `${used} ${caller.user?.id ?? ''} ${addressOf(request)}`
  const now = deps.clock()
  const last = keyUses.get(use)
  if (last !== undefined && now - last < KEY_USE_INTERVAL) return
  await record(deps.audit, request, 'auth.success', { ...actor(caller), method, protocol: 'HTTPS' })
  if (keyUses.size >= MAX_KEY_USES) keyUses.clear()
  keyUses.set(use, now)
}
