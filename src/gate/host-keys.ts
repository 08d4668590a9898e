/**
 * Judges a target's host key by the service's policy: vouched for by an authority or the DNS (host-trust.ts),
 * or pinned, at first sight or by an administrator. A key that differs from the pinned ones is refused until
 * an administrator removes the old one or accepts the new one.
 */
import { Buffer } from 'node:buffer'
import type { Target } from '../access/targets.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { HostKeyAnswer, HostKeyRequest } from '../contract/gate.ts'
import { isCertificateType } from '../identity/certificate.ts'
import { fingerprintOf, flawOfRsa, MAX_RSA_BITS, PublicKeyError } from '../identity/public-key.ts'
import { Reader } from '../identity/reader.ts'
import { type HostKey, type Id, PINNING } from '../model/objects.ts'
import type { HostKeyRepository } from '../store/store.ts'
import {
  certifiedKey,
  type Doubt,
  doubtOfCertificate,
  doubtOfDns,
  doubtOfRevocation,
  type HostTrust,
  type ShownKey,
} from './host-trust.ts'
import { type RunningSession, sessionFields } from './running.ts'
import { type BareKind, publicKeyIn } from './target-keys.ts'

/** RSA keys of 8192 bits have less than 2 KiB; certificates are longer. */
const MAX_KEY = 16 * 1024
/** Number of refused keys kept per service, for an administrator to accept. */
const MAX_OFFERED = 5
/** OpenSSH's own minimum for host keys; old devices have no longer ones. */
const MIN_RSA_BITS = 1024

const UNASKED: Doubt = {
  reason: 'it came with a certificate that was not requested',
  isContradiction: false,
}

export class HostKeyJudge {
  readonly #repository: HostKeyRepository
  readonly #audit: Audit
  readonly #now: () => number
  /** Serializes judgements of one service: two first sights must not both be pinned. */
  readonly #turns = new Map<Id, Promise<unknown>>()
  /** Used for judgements from now on. */
  trust: HostTrust = {}

  constructor(repository: HostKeyRepository, audit: Audit, now: () => number) {
    this.#repository = repository
    this.#audit = audit
    this.#now = now
  }

  /** Judges the key, or its certificate, as the target showed it. */
  async judge(
    session: RunningSession,
    key: Uint8Array,
    kind: HostKeyRequest['kind'] = 'ssh',
  ): Promise<HostKeyAnswer> {
    return kind === 'ssh' ? await this.#judgeSsh(session, key) : await this.#judgeBare(session, key, kind)
  }

  /** Judges a key without a certificate: only an administrator can vouch for it. */
  async #judgeBare(session: RunningSession, key: Uint8Array, kind: BareKind): Promise<HostKeyAnswer> {
    const { deviceName, hostKeyPolicy, protocol } = session.target
    const blob = publicKeyIn(key, kind)
    if (!blob) {
      const what = kind === 'x509' ? 'certificate' : 'RSA key'
      return { result: 'refused', message: `${deviceName} showed a malformed or too weak ${what}` }
    }
    const shown: ShownKey = { type: kind, blob }
    const revoked = doubtOfRevocation(this.trust, shown)
    if (revoked) return await this.#doubted(session, shown, revoked)
    if (!PINNING.includes(hostKeyPolicy)) {
      const reason = `host_key_policy is ${hostKeyPolicy}, which does not apply to ${protocol}`
      return await this.#doubted(session, shown, { reason, isContradiction: false })
    }
    return await this.#inTurn(session.target.serviceId, () => this.#judgePinned(session, shown))
  }

  async #judgeSsh(session: RunningSession, key: Uint8Array): Promise<HostKeyAnswer> {
    const { deviceName, hostKeyPolicy } = session.target
    const type = keyType(key)
    if (type === undefined) return { result: 'refused', message: `${deviceName} showed a malformed host key` }
    let shown: ShownKey = { type, blob: Buffer.from(key) }
    if (isCertificateType(type)) {
      // Only policy `ca` offers certificate types; a pinned certificate would stand for its authority.
      if (hostKeyPolicy !== 'ca') return await this.#doubted(session, shown, UNASKED)
      try {
        shown = certifiedKey(key)
      } catch (error) {
        if (!(error instanceof PublicKeyError)) throw error
        return await this.#doubted(session, shown, { reason: error.message, isContradiction: false })
      }
    }
    const revoked = doubtOfRevocation(this.trust, shown)
    if (revoked) return await this.#doubted(session, shown, revoked)
    const flaw = shown.type === 'ssh-rsa' ? flawOf(shown.blob) : undefined
    if (flaw !== undefined)
      return await this.#doubted(session, shown, { reason: flaw, isContradiction: false })
    switch (hostKeyPolicy) {
      case 'ca':
        return await this.#doubted(session, shown, doubtOfCertificate(shown, session, this.#now()))
      case 'dns':
        return await this.#doubted(session, shown, await doubtOfDns(shown, session.target.host, this.trust))
      default:
        return await this.#inTurn(session.target.serviceId, () => this.#judgePinned(session, shown))
    }
  }

  /** Refuses a doubtful key and writes an event. */
  async #doubted(
    session: RunningSession,
    { type, blob, certificate }: ShownKey,
    doubt: Doubt | undefined,
  ): Promise<HostKeyAnswer> {
    if (!doubt) return { result: 'accepted' }
    const { reason, isContradiction } = doubt
    const digest = fingerprintOf(blob)
    const method = certificate ? `${type} certificate` : type
    const fields = { ...sessionFields(session), method, digest, reason }
    if (isContradiction) await this.#audit.record('hostkey.changed', fields)
    else await this.#audit.record('hostkey.new', { ...fields, result: 'refused' })
    return {
      result: 'refused',
      message: `the host key of ${session.target.deviceName} (${method} ${digest}) is refused: ${reason}`,
    }
  }

  #inTurn(serviceId: Id, work: () => Promise<HostKeyAnswer>): Promise<HostKeyAnswer> {
    const turn = (this.#turns.get(serviceId) ?? Promise.resolve()).catch(() => undefined).then(work)
    this.#turns.set(serviceId, turn)
    return turn.finally(() => {
      if (this.#turns.get(serviceId) === turn) this.#turns.delete(serviceId)
    })
  }

  async #judgePinned(session: RunningSession, { type, blob }: ShownKey): Promise<HostKeyAnswer> {
    const { target } = session
    const fingerprint = fingerprintOf(blob)
    const encoded = blob.toString('base64')
    const known = await this.#repository.ofService(target.serviceId)
    const accepted = known.filter((one) => one.state === 'accepted')
    if (accepted.some((one) => one.key === encoded)) return { result: 'accepted' }

    const seen = { method: type, digest: fingerprint }
    if (accepted.length > 0) {
      await this.#offer(known, session, type, fingerprint, encoded)
      await this.#audit.record('hostkey.changed', { ...sessionFields(session), ...seen })
      return {
        result: 'refused',
        message:
          `the host key of ${target.deviceName} has changed (now ${type} ${fingerprint}): somebody may be between the ` +
          'bastion and the target, or it was installed anew; an administrator has to compare and forget the old key',
      }
    }
    if (target.hostKeyPolicy === 'pinned') {
      await this.#offer(known, session, type, fingerprint, encoded)
      await this.#audit.record('hostkey.new', { ...sessionFields(session), ...seen, result: 'refused' })
      return {
        result: 'refused',
        message: `the host key of ${target.deviceName} (${type} ${fingerprint}) is not accepted yet: an administrator has to accept it`,
      }
    }
    await this.#audit.record('hostkey.new', { ...sessionFields(session), ...seen, result: 'pinned' })
    const row = this.#row(session, type, fingerprint, encoded)
    // Another process may have seen another key first.
    return (await this.#repository.pinFirst(row))
      ? { result: 'accepted' }
      : await this.#judgePinned(session, { type, blob })
  }

  /** Keeps a refused key for an administrator to accept; only the newest few of a service are kept. */
  async #offer(
    known: readonly HostKey[],
    session: RunningSession,
    type: string,
    fingerprint: string,
    key: string,
  ): Promise<void> {
    const offered = known.filter((one) => one.state === 'offered').sort((a, b) => a.firstSeen - b.firstSeen)
    if (offered.some((one) => one.key === key)) return
    for (const oldest of offered.slice(0, Math.max(0, offered.length - MAX_OFFERED + 1))) {
      await this.#repository.remove(oldest.id)
    }
    await this.#repository.create({ ...this.#row(session, type, fingerprint, key), state: 'offered' })
  }

  #row(
    { target }: RunningSession,
    keyType: string,
    fingerprint: string,
    key: string,
  ): Omit<HostKey, 'id' | 'state'> {
    return {
      deviceId: target.deviceId,
      serviceId: target.serviceId,
      keyType,
      fingerprint,
      key,
      firstSeen: this.#now(),
    }
  }
}

/** Returns the types of a service's accepted keys, if its policy uses them. */
export async function knownTypes(
  keys: Pick<HostKeyRepository, 'ofService'>,
  { serviceId, hostKeyPolicy }: Pick<Target, 'serviceId' | 'hostKeyPolicy'>,
): Promise<string[]> {
  if (!PINNING.includes(hostKeyPolicy)) return []
  const known = await keys.ofService(serviceId)
  return [...new Set(known.filter(({ state }) => state === 'accepted').map(({ keyType }) => keyType))]
}

/** Reads the type's name, the SSH string at the start of the blob (RFC 4253 6.6). */
export function keyType(key: Uint8Array): string | undefined {
  if (key.length < 8 || key.length > MAX_KEY) return undefined
  const length = Buffer.from(key.buffer, key.byteOffset, key.length).readUInt32BE(0)
  if (length < 1 || length > 64 || length + 4 > key.length) return undefined
  const name = Buffer.from(key.subarray(4, 4 + length)).toString('latin1')
  return /^[\x21-\x7e]+$/.test(name) ? name : undefined
}

/**
 * Returns why an RSA key (`string type`, `mpint e`, `mpint n`, RFC 4253 6.6) is too weak to prove who holds
 * it, or undefined.
 */
export function flawOf(key: Uint8Array): string | undefined {
  const malformed = 'the RSA key is malformed'
  try {
    const reader = new Reader(Buffer.from(key), () => new Error(malformed))
    reader.string()
    const [exponent, modulus] = [reader.string(), reader.string()]
    return flawOfRsa(exponent, modulus, { min: MIN_RSA_BITS, max: MAX_RSA_BITS })
  } catch {
    return malformed
  }
}
