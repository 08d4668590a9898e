/** `/signin` and `/signout`. */
import type { FastifyRequest } from 'fastify'
import { authenticateBrowser } from '../api/access/authenticate.ts'
import { byAnswers, byPassword, byTicket, end } from '../api/access/signing-in.ts'
import type { Api } from '../api/http/deps.ts'
import { ApiError } from '../api/http/errors.ts'
import { MAX_PASSWORD_BYTES } from '../identity/password.ts'
import { MAX_KEY_ANSWER } from '../identity/second-factor/security-keys.ts'
import { finishSignIn } from './finish.ts'
import { type Form, formOfRequest, ownerOf } from './forms.ts'
import { messagesOf } from './languages/languages.ts'
import { returnPath } from './return-path.ts'
import { sendSignIn } from './sign-in-views.ts'
import { PASSWORD_WAY, type PageContext } from './ways.ts'

/** Characters of a name, and answers of a round. */
const MAX_NAME = 512
const MAX_ANSWERS = 8
const hide = { schema: { hide: true } }

export function registerSignInPages(app: Api, context: PageContext): void {
  app.get('/', hide, async (_request, reply) => reply.redirect('/account', 303))

  app.get('/signin', hide, async (request, reply) => {
    const path = returnPath(wishOf(request))
    if (await signedInBrowser(context, request)) return reply.redirect(path, 303)
    return await sendSignIn(context, request, reply, { return: path })
  })

  app.post('/signin', hide, async (request, reply) => {
    let form: Form
    try {
      form = formOfRequest(request)
    } catch {
      // A form that was open while the browser closed: the person begins again.
      const { expired } = messagesOf(request).signIn
      const view = { return: returnPath(undefined), alert: expired, status: 403 }
      return await sendSignIn(context, request, reply, view)
    }
    const owner = ownerOf(request, reply)
    const method = 'page_password'
    const challenge = form.get('challenge')
    if (challenge !== undefined) {
      const judged = { ...(await byAnswers(context, { challenge, answers: answersOf(form), owner })), method }
      const finish = { return: form.get('return'), way: form.get('way') ?? PASSWORD_WAY }
      return await finishSignIn(context, request, reply, judged, finish)
    }
    const credentials = { user: form.get('user') ?? '', password: form.get('password') ?? '' }
    const { user, password } = credentials
    if (user === '' || user.length > MAX_NAME || password.length > MAX_PASSWORD_BYTES)
      throw new ApiError('invalid_field')
    const judged = { ...(await byPassword(context, request, { user, password, owner })), method }
    return await finishSignIn(context, request, reply, judged, {
      return: form.get('return'),
      way: PASSWORD_WAY,
    })
  })

  /** Browsers that trust this address show a ticket when asked; others show the page. */
  app.get('/signin/negotiate', hide, async (request, reply) => {
    const path = returnPath(wishOf(request))
    const shown = await byTicket(context, request, ownerOf(request, reply))
    if (shown) {
      const finish = { return: path, way: 'negotiate' }
      return await finishSignIn(context, request, reply, { ...shown, method: 'negotiate' }, finish)
    }
    if (await context.deps.shownTickets.areTaken()) reply.header('www-authenticate', 'Negotiate')
    const alert = messagesOf(request).signIn.noTicket
    return await sendSignIn(context, request, reply, { return: path, alert, status: 401 })
  })

  app.post('/signout', hide, async (request, reply) => {
    formOfRequest(request)
    await end(context, request, reply)
    const notice = messagesOf(request).signIn.signedOut
    return await sendSignIn(context, request, reply, { return: returnPath(undefined), notice })
  })
}

/** Whether the browser is signed in, on a page that asks for no sign-in. */
async function signedInBrowser(context: PageContext, request: FastifyRequest): Promise<boolean> {
  try {
    await authenticateBrowser(context, request)
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code === 'authentication_required') return false
    throw error
  }
}

function wishOf({ query }: FastifyRequest): unknown {
  return (query as Record<string, unknown>)['return']
}

/** @throws ApiError `invalid_field` for an answer that is too long */
function answersOf(form: Form): string[] {
  const answers: string[] = []
  for (let index = 0; index < MAX_ANSWERS; index++) {
    const answer = form.get(`answer${index}`)
    if (answer === undefined) break
    if (answer.length > MAX_KEY_ANSWER) throw new ApiError('invalid_field')
    answers.push(answer)
  }
  return answers
}
