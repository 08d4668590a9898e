/** `/account`: the person that is signed in. */
import { callerOf } from '../api/access/caller.ts'
import type { Api } from '../api/http/deps.ts'
import { tokenField } from './forms.ts'
import { html } from './html.ts'
import { messagesOf } from './languages/languages.ts'
import { sendPage } from './page.ts'

export function registerAccountPage(app: Api): void {
  app.get('/account', { schema: { hide: true } }, async (request, reply) => {
    const { account } = messagesOf(request)
    const { name, profile } = callerOf(request)
    const body = html`<div class="sheet">
<h1>${account.title}</h1>
<dl><dt>${account.signedInAs}</dt><dd>${name}</dd><dt>${account.profile}</dt><dd>${profile}</dd></dl>
<form method="post" action="/signout">${tokenField(request, reply)}<button class="plain">${account.signOut}</button></form>
</div>`
    return sendPage(request, reply, { title: account.title, body, path: '/account' })
  })
}
