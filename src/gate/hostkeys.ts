/**
 * The judgement of a target's host key: pinned at first sight or refused, by the service's policy; a key that
 * differs from the pinned ones is refused whatever the policy says, until an administrator forgets the old one
 * or accepts the new.
 */
import { Buffer } from 'node:buffer'
import type { Audit } from '../audit/catalogue.ts'
import { fingerprintOf } from '../identity/publickey.ts'
import type { HostKey, Id } from '../model/objects.ts'
import type { HostKeyRepository } from '../store/store.ts'
import type { HostKeyAnswer } from './messages.ts'
import { type RunningSession, sessionFields } from './running.ts'

/** Blobs are under 2 KiB for RSA keys of 8192 bits. */
const MAX_KEY = 16 * 1024
/** Refused keys kept for an administrator to look at, a service. */
const MAX_OFFERED = 5

export class HostKeyJudge {
  readonly #repository: HostKeyRepository
  readonly #audit: Audit
  readonly #now: () => number
  /** Two first sights of one service must not both be pinned. */
  readonly #turns = new Map<Id, Promise<unknown>>()

  constructor(repository: HostKeyRepository, audit: Audit, now: () => number) {
    this.#repository = repository
    this.#audit = audit
    this.#now = now
  }

  judge(session: RunningSession, key: Uint8Array): Promise<HostKeyAnswer> {
    const { serviceId } = session.target
    const turn = (this.#turns.get(serviceId) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#judge(session, key))
    this.#turns.set(serviceId, turn)
    return turn.finally(() => {
      if (this.#turns.get(serviceId) === turn) this.#turns.delete(serviceId)
    })
  }

  async #judge(session: RunningSession, key: Uint8Array): Promise<HostKeyAnswer> {
    const { target } = session
    const type = keyType(key)
    if (type === undefined)
      return { result: 'refused', message: `${target.deviceName} showed a malformed host key` }
    const fingerprint = fingerprintOf(key)
    const encoded = Buffer.from(key).toString('base64')
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
    await this.#repository.create({ ...this.#row(session, type, fingerprint, encoded), state: 'accepted' })
    return { result: 'accepted' }
  }

  /** Keeps a refused key for an administrator to accept, the newest few of a service. */
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

/** The types of a service's accepted keys. */
export async function acceptedTypes(
  keys: Pick<HostKeyRepository, 'ofService'>,
  serviceId: Id,
): Promise<string[]> {
  const known = await keys.ofService(serviceId)
  return [...new Set(known.filter(({ state }) => state === 'accepted').map(({ keyType }) => keyType))]
}

/** The blob begins with the type's name as an SSH string (RFC 4253 6.6). */
function keyType(key: Uint8Array): string | undefined {
  if (key.length < 8 || key.length > MAX_KEY) return undefined
  const length = Buffer.from(key.buffer, key.byteOffset, key.length).readUInt32BE(0)
  if (length < 1 || length > 64 || length + 4 > key.length) return undefined
  const name = Buffer.from(key.subarray(4, 4 + length)).toString('latin1')
  return /^[\x21-\x7e]+$/.test(name) ? name : undefined
}
