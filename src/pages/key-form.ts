/** The form that asks the browser for a security key, by the script. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { KeyRequest } from '../identity/round-form.ts'
import type { KeyCreation } from '../identity/second-factor/security-keys.ts'
import { tokenField } from './forms.ts'
import { type Html, html } from './html.ts'
import { messagesOf } from './languages/languages.ts'

/** `hidden`: further fields. Without the script its button does nothing, and says so. */
export function keyForm(
  request: FastifyRequest,
  reply: FastifyReply,
  form: {
    action: string
    key: KeyRequest | KeyCreation
    hidden: Readonly<Record<string, string>>
    label: string
  },
): Html {
  const { keys } = messagesOf(request)
  const hidden = Object.entries({ ...form.hidden, answer0: '' })
  return html`<form method="post" action="${form.action}" data-key="${JSON.stringify(form.key)}">
${tokenField(request, reply)}${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<p class="alert" role="alert" hidden>${keys.failed}</p>
<noscript><p class="alert">${keys.needsScript}</p></noscript>
<button disabled autofocus>${form.label}</button>
</form>`
}
