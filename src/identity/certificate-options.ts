/**
 * Options of a user certificate (PROTOCOL.certkeys): critical options, all of which must be known and
 * satisfied, and extensions, each of which permits something.
 */
import type { Buffer } from 'node:buffer'
import { isFrom, networkError } from '../model/networks.ts'
import type { Right } from '../model/rights.ts'
import type { Certificate, CertificateFlaw } from './certificate-parts.ts'
import { PublicKeyError } from './public-key.ts'
import { Reader } from './reader.ts'

/** Limits that a certificate sets for its user's sessions; the authorizations decide within them. */
export interface CertificateLimits {
  /** Command, as exact bytes, that replaces any request of the client. */
  forcedCommand?: Uint8Array
  /** `permit-pty` is missing. */
  noTerminal: boolean
  /** Rights whose extension is missing. */
  withheld: readonly Right[]
}

/**
 * Rights that each extension permits. `permit-user-rc` is left out: it concerns the target, which does not
 * see the certificate.
 */
const RIGHTS_BY_EXTENSION: readonly (readonly [extension: string, rights: readonly Right[]])[] = [
  ['permit-X11-forwarding', ['SSH_X11']],
  ['permit-agent-forwarding', ['SSH_AUTH_AGENT']],
  // Covers sockets too, as in OpenSSH's server.
  [
    'permit-port-forwarding',
    ['SSH_DIRECT_TCPIP', 'SSH_REVERSE_TCPIP', 'SSH_DIRECT_UNIXSOCK', 'SSH_REVERSE_UNIXSOCK'],
  ],
]

/** Returns the limits of a certificate that was found valid. */
export function limitsOf({ criticalOptions, extensions }: Certificate): CertificateLimits {
  const forced = criticalOptions.get('force-command')
  const forcedCommand = forced && stringIn(forced)
  return {
    noTerminal: !extensions.has('permit-pty'),
    withheld: RIGHTS_BY_EXTENSION.flatMap(([name, rights]) => (extensions.has(name) ? [] : rights)),
    ...(forcedCommand && { forcedCommand }),
  }
}

/** Whether every signature needs user verification, by PIN or finger at the token: `verify-required`. */
export function mustVerifyUser({ criticalOptions }: Certificate): boolean {
  return criticalOptions.has('verify-required')
}

/** Returns why the critical options refuse this source address, or undefined if they do not. */
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

/** Reads networks separated by commas. An invalid list matches no address. */
function isListed(data: Buffer, source: string): boolean {
  const networks = stringIn(data)?.toString('latin1').split(',')
  if (networks === undefined) return false
  return networks.every((network) => networkError(network) === undefined) && isFrom(source, networks)
}

/** Returns the single `string` in an option's data, or undefined if the data is something else. */
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
