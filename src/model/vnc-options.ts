/**
 * What a connection policy says of VNC sessions beside what all have: stored as JSON that holds what differs from the
 * defaults, and handed to the proxy with the session.
 */
import { DESKTOP_OPTIONS, type DesktopOptions } from './desktop-options.ts'
import { formatOptions, storedOptions } from './stored-options.ts'

/**
 * Ways to secure a connection to a target and to sign in there (RFB's security types, and VeNCrypt's and Tight's within),
 * the strongest first. Those of `x509` show a certificate, those of `ra2` an RSA key, which are pinned; the rest show
 * nothing, so that somebody in between can be the target.
 */
export const VNC_SECURITY_TYPES = [
  'x509plain',
  'x509vnc',
  'ra2_256',
  'ra2',
  'x509none',
  'tlsplain',
  'tlsvnc',
  'tlsnone',
  'apple_dh',
  'mslogon2',
  'vncauth',
  'plain',
  'none',
] as const
export type VncSecurityType = (typeof VNC_SECURITY_TYPES)[number]

/**
 * What the bastion can offer to viewers, the strongest first: each with a credential, which it can check. By a certificate
 * or in RA2 a viewer can know the bastion; by anonymous TLS it cannot.
 */
export const VNC_OFFERED_TYPES = [
  'x509plain',
  'x509vnc',
  'tlsplain',
  'tlsvnc',
  'ra2_256',
  'ra2',
  'apple_dh',
  'plain',
  'vncauth',
] as const satisfies readonly VncSecurityType[]
export type VncOfferedType = (typeof VNC_OFFERED_TYPES)[number]

export interface VncOptions extends DesktopOptions {
  /** Of those that the target offers the first one is taken; others are refused. */
  securityTypes: readonly VncSecurityType[]
}

/** Left out is what has no password, sends it in clear, or (`mslogon2`) by an exchange of 64 bits. */
export const VNC_OPTIONS: Readonly<VncOptions> = {
  ...DESKTOP_OPTIONS,
  securityTypes: ['x509plain', 'x509vnc', 'ra2_256', 'ra2', 'tlsplain', 'tlsvnc', 'apple_dh', 'vncauth'],
}

/** What a security type shows of the target's identity: the kind of key that is pinned. */
export const VNC_KEY_TYPES = ['x509', 'rsa'] as const
export type VncKeyType = (typeof VNC_KEY_TYPES)[number]

/** undefined: the type shows no key. */
export function keyTypeOf(type: VncSecurityType): VncKeyType | undefined {
  if (type.startsWith('x509')) return 'x509'
  return type.startsWith('ra2') ? 'rsa' : undefined
}

/** Whether somebody without a credential can come in by it. */
export function needsNoCredential(type: VncSecurityType): boolean {
  return type.endsWith('none')
}

/** Those of a policy's types that a session may use, in their order. */
export function usableTypes(
  types: readonly VncSecurityType[],
  {
    hasCredential,
    hasToShowKey,
    keyTypes,
  }: {
    hasCredential: boolean
    /** A target without a key is not believed. */
    hasToShowKey: boolean
    /** Of the keys that are pinned: with any of them, nothing else will do, or it would be the way around. */
    keyTypes: readonly string[]
  },
): VncSecurityType[] {
  return types.filter((type) => {
    const shown = keyTypeOf(type)
    if (shown === undefined ? hasToShowKey || keyTypes.length > 0 : !isWanted(shown)) return false
    return hasCredential || needsNoCredential(type)
  })
  function isWanted(type: VncKeyType): boolean {
    return keyTypes.length === 0 || keyTypes.includes(type)
  }
}

/** For the database: only what is no default. */
export function formatVncOptions(options: VncOptions): string {
  return formatOptions(options, VNC_OPTIONS)
}

/** @throws Error for an option or a security type that this program does not know: it could not be enforced */
export function parseVncOptions(text: string): VncOptions {
  const given = storedOptions(text, VNC_OPTIONS)
  const type = given.securityTypes?.find((name) => !VNC_SECURITY_TYPES.includes(name))
  if (type !== undefined)
    throw new Error(`a connection policy has the security type "${type}", which this program does not know`)
  return { ...VNC_OPTIONS, ...given }
}
