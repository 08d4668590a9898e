/** Addresses of this broker that a provider has to know. */

/** Returns the path below which the pages of a provider are. */
export function pathOf(authenticationName: string): string {
  return `/signin/oidc/${encodeURIComponent(authenticationName)}`
}

/** `site`: origin of this broker's pages. */
export function addressesOf(site: string, authenticationName: string) {
  const below = site + pathOf(authenticationName)
  return {
    redirectUri: `${below}/callback`,
    afterSignOut: `${site}/signin`,
    backChannel: `${below}/backchannel`,
    frontChannel: `${below}/frontchannel`,
  }
}
