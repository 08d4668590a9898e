/** Finds RADIUS servers whose answers are believed without a signature. */
import type { Store } from '../../../store/store.ts'

/** Returns a sentence for each such object, with the remedy. */
export async function forgeableServers(store: Pick<Store, 'externalAuths'>): Promise<string[]> {
  const { items } = await store.externalAuths.list()
  return items
    .filter((auth) => auth.type === 'RADIUS' && !auth.options.requireMessageAuthenticator)
    .map(
      ({ authenticationName }) =>
        `the RADIUS servers of ${authenticationName} are believed without Message-Authenticator: whoever is on the way can turn a refusal into an accept (CVE-2024-3596): make them send it, and set require_message_authenticator`,
    )
}
