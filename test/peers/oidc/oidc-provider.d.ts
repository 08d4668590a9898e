/** The parts of oidc-provider that the tests use: the package has no types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  interface Granted {
    oidc: {
      entities: {
        AuthorizationCode?: { sid?: string }
        Grant?: { jti?: string }
        Account?: { accountId: string }
      }
    }
  }

  export default class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
    on(event: 'grant.success', listener: (context: Granted) => void): this
    Grant: { find(id: string): Promise<{ destroy(): Promise<void> } | undefined> }
  }
}
