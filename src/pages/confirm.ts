/** `/s/CODE`: a person confirms that the native client which shows the code is theirs, or turns it away. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Caller, callerOf } from '../api/access/caller.ts'
import { addressOf } from '../api/access/events.ts'
import type { Api } from '../api/http/deps.ts'
import { shownCode, typedCode } from '../identity/browser-sign-in/codes.ts'
import type { Confirming, ShownWaiting } from '../identity/browser-sign-in/waiting.ts'
import type { User } from '../model/objects.ts'
import { formOfRequest, tokenField } from './forms.ts'
import { html } from './html.ts'
import { messagesOf } from './languages/languages.ts'
import { sendPage } from './page.ts'
import type { PageContext } from './ways.ts'

const PATH = '/s/:code'
const MAX_TYPED = 32
const hide = { schema: { hide: true } }

export function registerConfirmPages(app: Api, { deps }: PageContext): void {
  const waiting = deps.browserSignIns

  app.get('/s', hide, async (request, reply) => {
    const { code } = request.query as Record<string, unknown>
    const typed = typeof code === 'string' && code.length <= MAX_TYPED ? typedCode(code) : undefined
    if (typed !== undefined) return reply.redirect(`/s/${shownCode(typed)}`, 303)
    return sendForm(request, reply, code === undefined ? undefined : 404)
  })

  app.get(PATH, hide, async (request, reply) => {
    const code = codeOf(request)
    const shown = code === undefined ? undefined : waiting.find(code, userOf(callerOf(request)))
    if (code === undefined || !shown) return sendForm(request, reply, 404)
    return sendAsking(request, reply, code, shown)
  })

  app.post(PATH, hide, async (request, reply) => {
    const form = formOfRequest(request)
    const code = codeOf(request)
    const caller = callerOf(request)
    const user = userOf(caller)
    const wantsIn = form.get('decision') === 'confirm'
    const isThere =
      code !== undefined &&
      (wantsIn ? waiting.confirm(code, { user, ...proofOf(caller) }) : waiting.refuse(code, user))
    if (!isThere) return sendForm(request, reply, 404)
    const { confirm } = messagesOf(request)
    const body = html`<div class="sheet">
<h1>${confirm.title}</h1>
<p role="status">${wantsIn ? confirm.done : confirm.refused}</p>
</div>`
    return sendPage(request, reply, { title: confirm.title, body })
  })
}

/** Shows the client that waits; the browser's person compares what both sides show. */
function sendAsking(
  request: FastifyRequest,
  reply: FastifyReply,
  code: string,
  { check, protocol, source, target, name }: ShownWaiting,
): FastifyReply {
  const { confirm } = messagesOf(request)
  const here = addressOf(request)
  const path = `/s/${shownCode(code)}`
  const body = html`<div class="sheet">
<h1>${confirm.title}</h1>
<p>${confirm.text}</p>
<p class="check">${check}</p>
<dl>
<dt>${confirm.user}</dt><dd>${name}</dd>
<dt>${confirm.protocol}</dt><dd>${protocol}</dd>
<dt>${confirm.source}</dt><dd>${source}</dd>
${target !== undefined && html`<dt>${confirm.target}</dt><dd>${target}</dd>`}
</dl>
${source !== here && html`<p role="alert">${confirm.elsewhere(source, here)}</p>`}
<form method="post" action="${path}">${tokenField(request, reply)}
<button name="decision" value="confirm">${confirm.yes(check)}</button>
<button name="decision" value="refuse" class="plain">${confirm.no}</button>
</form>
</div>`
  return sendPage(request, reply, { title: confirm.title, body, path })
}

/** Asks for a code. `status` 404: no client waits for this person under the code that was given. */
function sendForm(request: FastifyRequest, reply: FastifyReply, status?: 404): FastifyReply {
  const { confirm } = messagesOf(request)
  const body = html`<div class="sheet">
<h1>${confirm.title}</h1>
${status !== undefined && html`<p role="alert">${confirm.unknown}</p>`}
<form method="get" action="/s">
<label for="code">${confirm.code}</label>
<input id="code" name="code" maxlength="${MAX_TYPED}" autocomplete="off" autocapitalize="characters" spellcheck="false" required autofocus>
<button>${confirm.goOn}</button>
</form>
</div>`
  return sendPage(request, reply, { title: confirm.title, body, status: status ?? 200, path: '/s' })
}

function codeOf({ params }: FastifyRequest): string | undefined {
  const { code } = params as { code: string }
  return code.length <= MAX_TYPED ? typedCode(code) : undefined
}

/** Pages are shown to users that signed in by cookie. */
const userOf = ({ user }: Caller): User => user!

function proofOf({ basis }: Caller): Omit<Confirming, 'user'> {
  const proof = basis?.proof
  const providerSession = proof?.method === 'password' ? proof.providerSession : undefined
  return providerSession === undefined ? {} : { providerSession }
}
