/**
 * The options of a user certificate (PROTOCOL.certkeys): the critical ones, of which every one has to be known and to
 * hold, and the extensions, without which something is withheld.
 */
import type { Buffer } from 'node:buffer'
import { isFrom, networkError } from '../model/networks.ts'
import type { Right } from '../model/rights.ts'
import type { Certificate, CertificateFlaw } from './certificate-parts.ts'
import { PublicKeyError } from './public-key.ts'
import { Reader } from './reader.ts'

/** What a certificate holds its user's sessions to; the authorizations decide within that. */
export interface CertificateLimits {
  /** Runs instead of whatever the client asks for: exact bytes. */
  forcedCommand?: Uint8Array
  /** No terminal: `permit-pty` is missing. */
  noTerminal: boolean
  /** Rights that the certificate has no extension for. */
  withheld: readonly Right[]
}

/** What goes without the extension. `permit-user-rc` is the target's business, which does not see the certificate. */
const RIGHTS_BY_EXTENSION: readonly (readonly [extension: string, rights: readonly Right[]])[] = [
  ['permit-X11-forwarding', ['SSH_X11']],
  ['permit-agent-forwarding', ['SSH_AUTH_AGENT']],
  // of sockets too, as OpenSSH's server reads it
  [
    'permit-port-forwarding',
    ['SSH_DIRECT_TCPIP', 'SSH_REVERSE_TCPIP', 'SSH_DIRECT_UNIXSOCK', 'SSH_REVERSE_UNIXSOCK'],
  ],
]

/** The limits of a certificate without a flaw. */
export function limitsOf({ criticalOptions, extensions }: Certificate): CertificateLimits {
  const forced = criticalOptions.get('force-command')
  const forcedCommand = forced && stringIn(forced)
  return {
    noTerminal: !extensions.has('permit-pty'),
    withheld: RIGHTS_BY_EXTENSION.flatMap(([name, rights]) => (extensions.has(name) ? [] : rights)),
    ...(forcedCommand && { forcedCommand }),
  }
}

/** The one that has to hold at every signature: `verify-required`, a PIN or a finger at the token. */
export function mustVerifyUser({ criticalOptions }: Certificate): boolean {
  return criticalOptions.has('verify-required')
}

/** Why the critical options do not let somebody in from there; undefined: they do. */
export function flawOfOptions({ criticalOptions }: Certificate, source: string): CertificateFlaw | undefined {
  for (const [name, data] of criticalOptions) {
    switch (name) {
      case 'source-address':
        if (!isListed(data, source)) return 'certificate_source'
        break
      case 'verify-required':
        break
      case 'force-command': {
        const command = stringIn(data)
        if (command === undefined || command.length === 0 || command.includes(0))
          return 'certificate_force_command'
        break
      }
      default:
        return 'certificate_option'
    }
  }
  return undefined
}

/** Networks with commas between. A list with a fault lists nobody. */
function isListed(data: Buffer, source: string): boolean {
  const networks = stringIn(data)?.toString('latin1').split(',')
  if (networks === undefined) return false
  return networks.every((network) => networkError(network) === undefined) && isFrom(source, networks)
}

/** The one `string` that an option's data is; undefined: it is something else. */
function stringIn(data: Buffer): Buffer | undefined {
  try {
    const reader = new Reader(data, (message) => new PublicKeyError(`the option ${message}`))
    const value = reader.string()
    reader.end()
    return value
  } catch (error) {
    if (error instanceof PublicKeyError) return undefined
    throw error
  }
}
