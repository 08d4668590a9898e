/** Collects the credentials for the sign-in at the target, in the form that the proxy needs. */
import { canonicalName } from '../access/targets.ts'
import type { SessionCredential } from '../contract/gate.ts'
import type { AuthenticationMethod } from '../model/authentication-methods.ts'
import type { TargetKind } from '../model/objects.ts'
import { isTerminalProtocol, type Protocol } from '../model/rights.ts'
import { needsNoCredential, type VncOptions } from '../model/vnc-options.ts'
import { type Credential as Stored, wipe } from '../vault/credentials.ts'
import type { Vault } from '../vault/vault.ts'
import { type CertifiedSession, certificateFor } from './certificates.ts'

export type SessionCredentials =
  /** `serial`: serial number of the certificate, if there is one. */
  | { result: 'found'; credentials: SessionCredential[]; serial?: bigint }
  /** `message` is for the user. */
  | { result: 'refused'; message: string }

/**
 * Returns the credentials in the order of the methods; only those that a method names leave the vault. A
 * certificate by the domain's authority precedes the account's key. Without a stored account it is the
 * password of `logon`. `isOptional` allows an empty result.
 */
export async function credentialsFor(
  vault: Vault,
  session: CertifiedSession,
  methods: readonly AuthenticationMethod[],
  { isOptional, logon }: { isOptional: boolean; logon?: { password: string } },
): Promise<SessionCredentials> {
  const { accountId } = session.target
  if (accountId === undefined) {
    return { result: 'found', credentials: logon ? [{ type: 'password', password: logon.password }] : [] }
  }
  const credentials: SessionCredential[] = []
  let serial: bigint | undefined
  const stored = await vault.credentials(accountId)
  try {
    for (const method of methods) {
      if (method === 'PUBKEY_VAULT') {
        const certificate = await certificateFor(vault, session)
        if (certificate.result === 'refused') return certificate
        if (certificate.result === 'made') {
          credentials.push(certificate.credential)
          serial = certificate.serial
        }
      }
      for (const one of stored) {
        const isMeant = one.type !== 'enable' || isTerminalProtocol(session.target.protocol)
        if (isMeant && METHOD_OF[one.type] === method) credentials.push(given(one))
      }
    }
  } finally {
    for (const one of stored) wipe(one)
  }
  if (credentials.length === 0 && !isOptional) {
    const left = stored.length > 0 ? ` for ${methods.join(', ')}, which its connection policy names` : ''
    return {
      result: 'refused',
      message: `no credential is stored for ${canonicalName(session.target)}${left}`,
    }
  }
  return { result: 'found', credentials, ...(serial !== undefined && { serial }) }
}

/** Methods by what the user forwards. */
const FORWARDED: readonly AuthenticationMethod[] = ['PUBKEY_AGENT_FORWARDING', 'KERBEROS_FORWARDING']

/** Whether a session may begin without any credential. */
export function isCredentialOptional(
  protocol: Protocol,
  methods: readonly AuthenticationMethod[],
  { securityTypes }: Pick<VncOptions, 'securityTypes'>,
): boolean {
  if (protocol === 'VNC') return securityTypes.some(needsNoCredential)
  // Some network devices need no password, and some servers trust hosts.
  return isTerminalProtocol(protocol) || methods.some((one) => FORWARDED.includes(one))
}

const PERSONAL: Readonly<Record<Exclude<TargetKind, 'account'>, AuthenticationMethod>> = {
  mapping: 'PASSWORD_MAPPING',
  interactive: 'PASSWORD_INTERACTIVE',
}

/** Returns the methods of a policy that apply to such a target, in their order. */
export function methodsFor(
  { kind, protocol }: { kind: TargetKind; protocol: Protocol },
  methods: readonly AuthenticationMethod[],
): readonly AuthenticationMethod[] {
  if (kind !== 'account') return methods.filter((one) => one === PERSONAL[kind])
  // Only SSH uses keys.
  if (protocol !== 'SSH') return methods.filter((one) => one === 'PASSWORD_VAULT')
  const personal = Object.values(PERSONAL)
  return methods.filter((one) => !personal.includes(one))
}

const METHOD_OF: Readonly<Record<Stored['type'], AuthenticationMethod>> = {
  ssh_key: 'PUBKEY_VAULT',
  password: 'PASSWORD_VAULT',
  enable: 'PASSWORD_VAULT',
}

function given(stored: Stored): SessionCredential {
  const { type } = stored
  if (type !== 'ssh_key') return { type, password: stored.password.revealText() }
  return {
    type: 'ssh_key',
    privateKey: stored.privateKey.revealText(),
    ...(stored.passphrase && { passphrase: stored.passphrase.revealText() }),
  }
}
