/** What the bastion offers one target: its own choice, with what the connection policy and the known host keys add. */
import type { Algorithms, ServerHostKeyAlgorithm } from 'ssh2'
import {
  LEGACY_CIPHERS,
  LEGACY_HOST_KEYS,
  LEGACY_KEX,
  LEGACY_MACS,
  type LegacyAlgorithm,
} from '../../../src/model/legacy-algorithms.ts'
import { BACK_ALGORITHMS, HOST_CERTIFICATES } from './algorithms.ts'

/** Everything is a list here, as BACK_ALGORITHMS has it. */
type Lists = { [K in keyof Algorithms]-?: Extract<Algorithms[K], unknown[]> }

/**
 * @param legacy what the policy allows beside; it comes after everything that is good
 * @param known types of the host keys that are accepted: a target with several shows one of these, when it still has it
 * @param wantsCertificate one about the host key is preferred; a plain key is still taken, for the gate to say no to
 */
export function targetAlgorithms(
  legacy: readonly LegacyAlgorithm[],
  known: readonly string[],
  wantsCertificate: boolean,
): Pick<Lists, 'kex' | 'cipher' | 'hmac' | 'serverHostKey' | 'compress'> {
  const { kex, cipher, hmac, serverHostKey, compress } = BACK_ALGORITHMS as Lists
  const allowed = <T extends LegacyAlgorithm>(names: readonly T[]): T[] =>
    names.filter((name) => legacy.includes(name))
  const hostKeys = [...serverHostKey, ...allowed(LEGACY_HOST_KEYS)]
  const isKnown = (algorithm: ServerHostKeyAlgorithm) => known.includes(keyTypeOf(algorithm))
  return {
    kex: [...kex, ...allowed(LEGACY_KEX)],
    cipher: [...cipher, ...allowed(LEGACY_CIPHERS)],
    hmac: [...hmac, ...allowed(LEGACY_MACS)],
    serverHostKey: [
      ...(wantsCertificate ? HOST_CERTIFICATES : []),
      ...hostKeys.filter(isKnown),
      ...hostKeys.filter((one) => !isKnown(one)),
    ],
    compress,
  }
}

/** The type of the key that an algorithm signs with (RFC 8332 3). */
function keyTypeOf(algorithm: ServerHostKeyAlgorithm): string {
  return algorithm.startsWith('rsa-sha2-') ? 'ssh-rsa' : algorithm
}

/** What a failed negotiation means for the user, by ssh2's words for it; undefined for another error. */
export function negotiationFailure(message: string): string | undefined {
  const what = /^Handshake failed: no matching (.+)$/.exec(message)?.[1]
  if (what === undefined) return undefined
  return (
    `it and the bastion have no ${what} in common: old algorithms have to be named in the connection policy ` +
    'of the service (legacy_algorithms)'
  )
}
