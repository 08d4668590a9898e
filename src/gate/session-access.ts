/** How a session signs in at its target: the connection policy's terms, the credentials, the answer to the proxy. */
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import { canonicalName, type Target } from '../access/targets.ts'
import type { OpenSession, SessionLimits } from '../contract/gate.ts'
import type { CertificateLimits } from '../identity/certificate-options.ts'
import type { AuthenticationMethod } from '../model/authentication-methods.ts'
import { type ConnectionPolicy, FACTORY_CONNECTION_POLICIES } from '../model/objects.ts'
import { usableTypes, type VncOptions } from '../model/vnc-options.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { credentialsFor, isCredentialOptional, methodsFor, type SessionCredentials } from './credentials.ts'
import { Denial } from './denial.ts'
import { holdOf } from './holds.ts'
import { knownTypes } from './host-keys.ts'
import { logsInItself, type ReadyLogon } from './logons.ts'
import type { RunningSession } from './running.ts'

const NO_SECURITY_TYPE =
  'of the security_types in the connection policy none is left that goes with the stored credential and with the host keys that are pinned'

/** Connection policy of a target, and the policy's methods that can be used there. */
export interface Terms {
  policy: ConnectionPolicy
  methods: readonly AuthenticationMethod[]
}

type OwnLogon = Extract<ReadyLogon, { password: string }>

/** Credentials of a session, and the types of keys and security by which its target is accepted. */
export type SessionAccess = Omit<Extract<SessionCredentials, { result: 'found' }>, 'result'> & {
  hostKeyTypes: string[]
  securityTypes: VncOptions['securityTypes']
}

/** Returns the terms for a target. @throws Denial */
export async function termsFor(store: Store, target: Target): Promise<Terms> {
  const policy = await store.connectionPolicies.find(
    target.connectionPolicyId ?? FACTORY_CONNECTION_POLICIES[target.protocol],
  )
  if (!policy) throw new Denial('the connection policy of the service is gone')
  const methods = methodsFor(target, policy.ssh.authenticationMethods)
  if (methods.length === 0) {
    throw new Denial('the connection policy of the service names no method to sign in at this target')
  }
  return { policy, methods }
}

/** Returns the access of a session; `logon` is used where no account is stored. @throws Denial */
export async function accessFor(
  { store, vault }: { store: Store; vault: Vault },
  session: RunningSession,
  { policy, methods }: Terms,
  logon: OwnLogon | undefined,
): Promise<SessionAccess> {
  const { target } = session
  const signIn = await credentialsFor(vault, session, methods, {
    isOptional: isCredentialOptional(target.protocol, methods, policy.vnc),
    ...(logon && { logon }),
  })
  if (signIn.result === 'refused') throw new Denial(signIn.message)
  const hostKeyTypes = await knownTypes(store.hostKeys, target)
  const securityTypes = usableTypes(policy.vnc.securityTypes, {
    hasCredential: signIn.credentials.length > 0,
    hasToShowKey: target.hostKeyPolicy === 'pinned',
    keyTypes: hostKeyTypes,
  })
  if (target.protocol === 'VNC' && securityTypes.length === 0) throw new Denial(NO_SECURITY_TYPE)
  const { credentials, serial } = signIn
  return { credentials, hostKeyTypes, securityTypes, ...(serial !== undefined && { serial }) }
}

/** Returns whether a target of RDP is signed in to by Kerberos. */
export async function hasKerberos(
  store: Store,
  { accountId, protocol }: Target,
  { policy }: Terms,
): Promise<boolean> {
  if (protocol !== 'RDP' || !policy.rdp.kerberos || accountId === undefined) return false
  const account = await store.accounts.find(accountId)
  const domain = account && (await store.domains.find(account.domainId))
  return domain?.kerberos !== undefined
}

/** Returns the session in the form that its proxy needs. */
export function openSession(
  { id, user, target, holds, hasKerberos }: RunningSession,
  { policy, methods }: Terms,
  { credentials, hostKeyTypes, securityTypes }: SessionAccess,
  {
    logon,
    limits,
    recording,
  }: {
    logon: OwnLogon | undefined
    limits: CertificateLimits | undefined
    recording: RecordingGrant | undefined
  },
): OpenSession {
  const held = holdOf({ ...(holds && { holds }) })
  return {
    id,
    user,
    ...(held && { isSuspended: { reason: held.reason } }),
    target: {
      canonical: canonicalName(target),
      protocol: target.protocol,
      host: target.host,
      port: target.port,
      login: target.accountLogin,
      device: target.deviceName,
      service: target.serviceName,
    },
    credentials,
    ...(target.accountId === undefined && logsInItself(target) && { isPersonal: true as const }),
    ...(logon && { question: logon.question }),
    hostKeyTypes,
    wantsHostCertificate: target.hostKeyPolicy === 'ca',
    rights: target.rights,
    ...(limits && { limits: sessionLimits(limits) }),
    options: { ...policy.ssh, authenticationMethods: methods },
    loginOptions: policy.login,
    vncOptions: { ...policy.vnc, securityTypes },
    rdpOptions: policy.rdp,
    ...(hasKerberos && { hasKerberos: true as const }),
    ...(recording && { recording }),
    ...(target.isStrict && { isStrict: true as const }),
  }
}

function sessionLimits({ forcedCommand, noTerminal }: CertificateLimits): SessionLimits {
  return { noTerminal, ...(forcedCommand && { forcedCommand: Uint8Array.from(forcedCommand) }) }
}
