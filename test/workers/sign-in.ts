import type { AuthenticateRequest, Source } from '../../src/contract/gate.ts'

/** Returns the sign-in of that user of the gate's world by password. */
export const signInOf = (user: 'ops1' | 'ops2', source: Source): AuthenticateRequest => ({
  protocol: 'SSH',
  source,
  login: `${user}:root@${user === 'ops1' ? 'srv1' : 'srv2'}`,
  proof: { method: 'password', password: `${user} password` },
})
