/** `/account`: the person that is signed in, their sign-ins and their security keys. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf, userOf } from '../api/access/caller.ts'
import { actor, addressOf, record } from '../api/access/events.ts'
import { endOwnSignIn, endOwnSignIns } from '../api/access/own-sign-ins.ts'
import { proveAgain } from '../api/access/prove-again.ts'
import { clearCookie } from '../api/access/signing-in.ts'
import type { Api } from '../api/http/deps.ts'
import { ApiError } from '../api/http/errors.ts'
import type { Id, User } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import { keysSheet, signInsSheet } from './account-views.ts'
import { type Form, formOfRequest, tokenField } from './forms.ts'
import { html } from './html.ts'
import { keyForm } from './key-form.ts'
import { messagesOf } from './languages/languages.ts'
import { sendPage } from './page.ts'
import { PendingKeys } from './pending-keys.ts'
import { HOME } from './return-path.ts'
import { sendSignIn } from './sign-in-views.ts'
import type { PageContext } from './ways.ts'

const MAX_NAME = 64
const hide = { schema: { hide: true } }

export function registerAccountPage(app: Api, context: PageContext): void {
  const { deps, signIns } = context
  const pending = new PendingKeys(deps.clock)

  app.get('/account', hide, (request, reply) => sendAccount(request, reply))

  app.post('/account/signins/end', hide, async (request, reply) => {
    await endOwnSignIn(context, request, formOfRequest(request).get('id') ?? '')
    return reply.redirect(HOME, 303)
  })

  app.post('/account/signins/end-all', hide, async (request, reply) => {
    const withSessions = formOfRequest(request).get('sessions') === 'yes'
    await endOwnSignIns(context, request, { withSessions })
    clearCookie(request, reply)
    const notice = messagesOf(request).signIn.signedOut
    return await sendSignIn(context, request, reply, { return: HOME, notice })
  })

  app.post('/account/keys', hide, async (request, reply) => {
    const form = formOfRequest(request)
    const { keys } = messagesOf(request)
    const user = userOf(request)
    const name = nameOf(form)
    if (!(await isProved(request, user, form))) return sendAccount(request, reply, { alert: keys.notProved })
    const key = await deps.securityKeys.creation(user)
    const id = pending.open({
      userId: user.id,
      signIn: callerOf(request).signIn ?? '',
      name,
      challenge: key.challenge,
    })
    const body = html`<div class="sheet"><h1>${keys.touchTitle}</h1><p>${keys.touchText}</p>
${keyForm(request, reply, { action: '/account/keys/add', key, hidden: { id }, label: keys.touch })}
<p class="small"><a href="/account">${keys.cancel}</a></p></div>`
    return sendPage(request, reply, { title: keys.touchTitle, body, hasScript: true })
  })

  app.post('/account/keys/add', hide, async (request, reply) => {
    const form = formOfRequest(request)
    const { keys } = messagesOf(request)
    const user = userOf(request)
    const begun = pending.take(form.get('id') ?? '', {
      userId: user.id,
      signIn: callerOf(request).signIn ?? '',
    })
    if (!begun) return sendAccount(request, reply, { alert: keys.tooLate })
    const announce = () => announced(request, 'factor.key_add', user, begun.name)
    const added = await deps.securityKeys.add(user.id, begun, form.get('answer0') ?? '', announce)
    if (added === 'added') return reply.redirect(HOME, 303)
    const alert = { known: keys.known, too_many: keys.tooMany, wrong: keys.failed }[added]
    return sendAccount(request, reply, { alert })
  })

  app.post('/account/keys/remove', hide, async (request, reply) => {
    const form = formOfRequest(request)
    const user = userOf(request)
    const id: Id = form.get('id') ?? ''
    const key = (await deps.securityKeys.list(user.id)).find((one) => one.id === id)
    if (!key) throw new ApiError('not_found')
    if (!(await isProved(request, user, form)))
      return sendAccount(request, reply, { alert: messagesOf(request).keys.notProved })
    await announced(request, 'factor.key_remove', user, key.name)
    await deps.securityKeys.remove(user.id, key.id)
    return reply.redirect(HOME, 303)
  })

  async function sendAccount(
    request: FastifyRequest,
    reply: FastifyReply,
    { alert }: { alert?: string } = {},
  ): Promise<FastifyReply> {
    const { account } = messagesOf(request)
    const { name, profile, signIn } = callerOf(request)
    const user = userOf(request)
    const [own, keys, proof] = await Promise.all([
      signIns.ofUser(user.id, deps.clock()),
      deps.securityKeys.list(user.id),
      proofOf(user),
    ])
    const sheet = { request, reply }
    const body = html`<div class="sheet"><h1>${account.title}</h1>
${alert !== undefined && html`<p class="alert" role="alert">${alert}</p>`}
<dl><dt>${account.signedInAs}</dt><dd>${name}</dd><dt>${account.profile}</dt><dd>${profile}</dd></dl>
<form method="post" action="/signout">${tokenField(request, reply)}<button class="plain">${account.signOut}</button></form>
</div>
${signInsSheet(sheet, own, signIn)}
${keysSheet(sheet, keys, proof)}`
    const status = alert === undefined ? 200 : 400
    return sendPage(request, reply, { title: account.title, body, status, isWide: true, path: HOME })
  }

  async function proofOf({ id }: User): Promise<'password' | 'code'> {
    return (await deps.factors.statusOf(id)).enrolled === undefined ? 'password' : 'code'
  }

  /** Whether the person has shown the password, or a one-time code, once more: a stolen cookie is not enough. */
  async function isProved(request: FastifyRequest, user: User, form: Form): Promise<boolean> {
    const text = form.get('proof') ?? ''
    if ((await proofOf(user)) === 'password')
      return (await proveAgain(context, request, user, text, 'page_password')) === 'proved'
    const code = Secret.of(text)
    const isCode = await deps.factors.isCode(user.id, code, addressOf(request))
    code.wipe()
    if (isCode) return true
    const fields = { method: 'one_time_code', protocol: 'HTTPS', user: user.userName, reason: 'wrong_code' }
    await record(deps.audit, request, 'auth.failure', fields)
    return false
  }

  async function announced(
    request: FastifyRequest,
    event: 'factor.key_add' | 'factor.key_remove',
    { userName }: User,
    name: string,
  ): Promise<void> {
    const about = { object_type: 'security key', object: `${userName} ${name}` }
    await record(deps.audit, request, event, { ...actor(callerOf(request)), ...about })
  }
}

/** @throws ApiError `invalid_field` */
function nameOf(form: Form): string {
  const name = (form.get('name') ?? '').trim()
  if (name === '' || name.length > MAX_NAME) throw new ApiError('invalid_field')
  return name
}
