/** The one end of every sign-in in a browser, whichever way it took. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { begin, type Judged, recordFailure, refuse } from '../api/access/signing-in.ts'
import { ApiError } from '../api/http/errors.ts'
import { errorText } from './errors.ts'
import { messagesOf } from './languages/languages.ts'
import { returnPath } from './return-path.ts'
import { sendRound, sendSignIn } from './sign-in-views.ts'
import { keepWay, type PageContext } from './ways.ts'

export interface Finish {
  /** Path of the page after the sign-in, checked here. */
  return: string | undefined
  /** Id of the way, for the order of the ways at the next sign-in. */
  way: string
}

/** Signs the browser in, shows the next round, or says on the sign-in page why not. */
export async function finishSignIn(
  context: PageContext,
  request: FastifyRequest,
  reply: FastifyReply,
  judged: Judged,
  finish: Finish,
): Promise<FastifyReply> {
  const { outcome, method, answer, name } = judged
  const path = returnPath(finish.return)
  await recordFailure(context, request, judged)
  if (outcome.result === 'challenge')
    return sendRound(request, reply, outcome, { return: path, way: finish.way })
  if (outcome.result === 'accepted') {
    await begin(context, request, reply, { proved: outcome, method, answer })
    keepWay(request, reply, finish.way)
    return reply.redirect(path, 303)
  }
  const code = await refuse(context, request, { ...judged, outcome })
  const { status } = new ApiError(code)
  const alert = errorText(messagesOf(request), code, status)
  const user = finish.way === 'password' && name !== undefined ? { user: name } : {}
  return await sendSignIn(context, request, reply, { return: path, alert, status, ...user })
}
