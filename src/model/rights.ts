/** The rights of a session: contract.md lists them as values of `subprotocols`. */

export const PROTOCOLS = ['SSH', 'TELNET', 'RLOGIN', 'VNC', 'RDP'] as const
export type Protocol = (typeof PROTOCOLS)[number]

/** Protocols whose sessions are one terminal. */
export type TerminalProtocol = Extract<Protocol, 'TELNET' | 'RLOGIN'>

export function isTerminalProtocol(protocol: Protocol): protocol is TerminalProtocol {
  return protocol === 'TELNET' || protocol === 'RLOGIN'
}

/** Protocols whose sessions are a desktop. */
export type DesktopProtocol = Extract<Protocol, 'VNC' | 'RDP'>

export function isDesktopProtocol(protocol: Protocol): protocol is DesktopProtocol {
  return protocol === 'VNC' || protocol === 'RDP'
}

/**
 * Whether a client of the protocol can prompt its user for more than a name and a password during sign-in.
 */
export function asksAtSignIn(protocol: Protocol): boolean {
  return protocol !== 'VNC'
}

export const RIGHTS = [
  'SSH_SHELL',
  'SSH_REMOTE_COMMAND',
  'SSH_SCP_UP',
  'SSH_SCP_DOWN',
  'SFTP_SESSION',
  'SSH_X11',
  'SSH_DIRECT_TCPIP',
  'SSH_REVERSE_TCPIP',
  'SSH_DIRECT_UNIXSOCK',
  'SSH_REVERSE_UNIXSOCK',
  'SSH_AUTH_AGENT',
  'TELNET',
  'RLOGIN',
  'VNC',
  'VNC_CLIPBOARD_UP',
  'VNC_CLIPBOARD_DOWN',
  'RDP',
  'RDP_CLIPBOARD_UP',
  'RDP_CLIPBOARD_DOWN',
  'RDP_CLIPBOARD_FILE',
  'RDP_DRIVE',
  'RDP_PRINTER',
  'RDP_COM_PORT',
  'RDP_SMARTCARD',
  'RDP_AUDIO_OUTPUT',
  'RDP_AUDIO_INPUT',
] as const
export type Right = (typeof RIGHTS)[number]

const ALIASES: Readonly<Record<string, Right>> = { SSH_SHELL_SESSION: 'SSH_SHELL' }

/** Returns the right of a name, aliases resolved, or undefined for any other string. */
export function rightNamed(name: string): Right | undefined {
  const own = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  return own ?? RIGHTS.find((right) => right === name)
}

/** The right that an authorization grants if it names none: the plain session of each protocol. */
export const PLAIN_RIGHTS: Readonly<Record<Protocol, Right>> = {
  SSH: 'SSH_SHELL',
  TELNET: 'TELNET',
  RLOGIN: 'RLOGIN',
  VNC: 'VNC',
  RDP: 'RDP',
}

/** Returns the protocol that a right belongs to. */
export function protocolOf(right: Right): Protocol {
  switch (right) {
    case 'SSH_SHELL':
    case 'SSH_REMOTE_COMMAND':
    case 'SSH_SCP_UP':
    case 'SSH_SCP_DOWN':
    case 'SFTP_SESSION':
    case 'SSH_X11':
    case 'SSH_DIRECT_TCPIP':
    case 'SSH_REVERSE_TCPIP':
    case 'SSH_DIRECT_UNIXSOCK':
    case 'SSH_REVERSE_UNIXSOCK':
    case 'SSH_AUTH_AGENT':
      return 'SSH'
    case 'TELNET':
    case 'RLOGIN':
      return right
    case 'VNC':
    case 'VNC_CLIPBOARD_UP':
    case 'VNC_CLIPBOARD_DOWN':
      return 'VNC'
    case 'RDP':
    case 'RDP_CLIPBOARD_UP':
    case 'RDP_CLIPBOARD_DOWN':
    case 'RDP_CLIPBOARD_FILE':
    case 'RDP_DRIVE':
    case 'RDP_PRINTER':
    case 'RDP_COM_PORT':
    case 'RDP_SMARTCARD':
    case 'RDP_AUDIO_OUTPUT':
    case 'RDP_AUDIO_INPUT':
      return 'RDP'
  }
}

/**
 * Returns the rights of a session on one service: the union of the rights that the authorizations grant,
 * limited to those that the service lists, if any. If a session is one channel, which needs the plain right,
 * the other rights have no effect without it.
 */
export function grantedRights(
  protocol: Protocol,
  authorizations: readonly (readonly Right[])[],
  service: readonly Right[],
): Right[] {
  const union = new Set<Right>()
  for (const rights of authorizations) {
    for (const right of rights.length > 0 ? rights : [PLAIN_RIGHTS[protocol]]) {
      if (protocolOf(right) === protocol) union.add(right)
    }
  }
  const rights = RIGHTS.filter(
    (right) => union.has(right) && (service.length === 0 || service.includes(right)),
  )
  return protocol === 'SSH' || rights.includes(PLAIN_RIGHTS[protocol]) ? rights : []
}
