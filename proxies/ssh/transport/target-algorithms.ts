/**
 * The algorithms offered to one target: the bastion's own, plus those from the connection policy and the
 * known host keys.
 */
import type { Algorithms, ServerHostKeyAlgorithm } from 'ssh2'
import {
  LEGACY_CIPHERS,
  LEGACY_HOST_KEYS,
  LEGACY_KEX,
  LEGACY_MACS,
  type LegacyAlgorithm,
} from '../../../src/model/legacy-algorithms.ts'
import { BACK_ALGORITHMS, HOST_CERTIFICATES } from './algorithms.ts'

/** All entries are lists, as in BACK_ALGORITHMS. */
type Lists = { [K in keyof Algorithms]-?: Extract<Algorithms[K], unknown[]> }

/**
 * @param legacy algorithms that the policy adds; they come after all good ones
 * @param known types of the accepted host keys: a target with several keys shows one of these, if it still
 * has it
 * @param wantsCertificate prefers a host certificate; a plain key is still accepted here, for the gate to
 * reject
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

/** Returns the type of key that an algorithm signs with (RFC 8332 3). */
function keyTypeOf(algorithm: ServerHostKeyAlgorithm): string {
  return algorithm.startsWith('rsa-sha2-') ? 'ssh-rsa' : algorithm
}

/** Explains a failed negotiation to the user, from ssh2's message. Returns undefined for another error. */
export function negotiationFailure(message: string): string | undefined {
  const what = /^Handshake failed: no matching (.+)$/.exec(message)?.[1]
  if (what === undefined) return undefined
  return (
    `it and the bastion have no ${what} in common: old algorithms have to be named in the connection policy ` +
    'of the service (legacy_algorithms)'
  )
}
