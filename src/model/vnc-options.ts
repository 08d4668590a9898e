/**
 * A connection policy's options for VNC sessions only: stored as JSON that holds the values that differ from
 * the defaults, and sent to the proxy with the session.
 */
import { DESKTOP_OPTIONS, type DesktopOptions } from './desktop-options.ts'
import { formatOptions, storedOptions } from './stored-options.ts'

/**
 * Ways to secure a connection to a target and to sign in there (RFB's security types, with VeNCrypt's and
 * Tight's), the strongest first. Those of `x509` show a certificate, those of `ra2` an RSA key; both are
 * pinned. The rest show nothing, so an attacker in between can pose as the target.
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
 * Security types that the bastion can offer to viewers, the strongest first, each with a credential that the
 * bastion can check. With a certificate or in RA2 a viewer can identify the bastion; with anonymous TLS it
 * cannot.
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
  /** The first one that the target offers is used; others are refused. */
  securityTypes: readonly VncSecurityType[]
}

/** Left out: types without a password, with one in clear text, or (`mslogon2`) with a 64-bit key exchange. */
export const VNC_OPTIONS: Readonly<VncOptions> = {
  ...DESKTOP_OPTIONS,
  securityTypes: ['x509plain', 'x509vnc', 'ra2_256', 'ra2', 'tlsplain', 'tlsvnc', 'apple_dh', 'vncauth'],
}

/** The kind of key by which a security type identifies the target: this key is pinned. */
export const VNC_KEY_TYPES = ['x509', 'rsa'] as const
export type VncKeyType = (typeof VNC_KEY_TYPES)[number]

/** Returns the kind of key, or undefined if the type shows none. */
export function keyTypeOf(type: VncSecurityType): VncKeyType | undefined {
  if (type.startsWith('x509')) return 'x509'
  return type.startsWith('ra2') ? 'rsa' : undefined
}

/** Whether the type lets clients in without a credential. */
export function needsNoCredential(type: VncSecurityType): boolean {
  return type.endsWith('none')
}

/** Returns the policy's types that a session may use, in order. */
export function usableTypes(
  types: readonly VncSecurityType[],
  {
    hasCredential,
    hasToShowKey,
    keyTypes,
  }: {
    hasCredential: boolean
    /** Whether a target without a key is refused. */
    hasToShowKey: boolean
    /**
     * Kinds of the pinned keys. With any of them the other types are refused, since they would bypass the
     * pin.
     */
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

/** For the database: only the values that differ from the defaults. */
export function formatVncOptions(options: VncOptions): string {
  return formatOptions(options, VNC_OPTIONS)
}

/** @throws Error for an unknown option or security type, which could not be enforced */
export function parseVncOptions(text: string): VncOptions {
  const given = storedOptions(text, VNC_OPTIONS)
  const type = given.securityTypes?.find((name) => !VNC_SECURITY_TYPES.includes(name))
  if (type !== undefined)
    throw new Error(`a connection policy has the security type "${type}", which this program does not know`)
  return { ...VNC_OPTIONS, ...given }
}
