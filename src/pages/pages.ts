/** Registers the pages, which a browser shows without a script. */
import type { Context } from '../api/access/context.ts'
import type { Api } from '../api/http/deps.ts'
import { registerAccountPage } from './account.ts'
import { registerConfirmPages } from './confirm.ts'
import { KEY_SCRIPT_FILE, PAGE_ICON, STYLE_SHEET } from './files.ts'
import { acceptForms } from './forms.ts'
import { oidcWays, registerOidcPages } from './oidc.ts'
import { registerSamlPages, samlWays } from './saml.ts'
import { registerSignInPages } from './sign-in.ts'
import { ticketWays, type WaysOfKind } from './ways.ts'

/** Ways beside the password, in the order of the page. */
const WAYS: readonly WaysOfKind[] = [ticketWays, oidcWays, samlWays]
const REGISTERED = [
  registerSignInPages,
  registerOidcPages,
  registerSamlPages,
  registerAccountPage,
  registerConfirmPages,
]

export function registerPages(app: Api, context: Context): void {
  acceptForms(app)
  for (const { path, text, type } of [STYLE_SHEET, PAGE_ICON, KEY_SCRIPT_FILE]) {
    app.get(path, { schema: { hide: true } }, async (_request, reply) =>
      reply
        .headers({
          'cache-control': 'public, max-age=31536000, immutable',
          'cross-origin-resource-policy': 'same-origin',
        })
        .type(type)
        .send(text),
    )
  }
  for (const register of REGISTERED) register(app, { ...context, ways: WAYS })
}
