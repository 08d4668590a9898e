/** Sign-in by public keys and certificates: of local users, and of persons whose directory has keys. */
import type { UserAuth } from '../model/objects.ts'
import type { Authorities } from './authorities.ts'
import { type OfferedKey, readOfferedKey } from './certificate.ts'
import { attemptOf, type External } from './external.ts'
import { flawOfOffered, type KeyHolder } from './key-holder.ts'
import { holderOfOwn, type OwnCertificates } from './own-certificate.ts'
import { isSound, type Place } from './places.ts'
import type { Proved, Refusal, SignIn } from './sign-in.ts'
import { type SignedRequest, verifySignedRequest } from './signature.ts'
import { flawOfMethod } from './standing.ts'
import { andThen, type Step } from './steps.ts'

const METHOD: UserAuth = 'local_sshkey'
const UNKNOWN = { result: 'rejected', reason: 'unknown_user' } as const

export interface KeysOptions {
  external?: External | undefined
  /** Certificates of the bastion's own authority. */
  certificates?: OwnCertificates | undefined
  authorities: () => Authorities
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Keys {
  readonly #options: KeysOptions

  constructor(options: KeysOptions) {
    this.#options = options
  }

  /** Returns why a key that is offered would be refused, or undefined. */
  async flawOfQuery(request: SignIn, place: Place, key: Uint8Array): Promise<Refusal | undefined> {
    const offered = readOfferedKey(key)
    const found = await this.#holderOf(request, place, offered)
    const flaw = this.#flawOf(found, offered, request, key)
    await this.#pretend(place, flaw)
    return flaw
  }

  /** Judges the key that has signed, and then asks the second factors of the person's domain. */
  async prove(
    request: SignIn,
    place: Place,
    isLocked: boolean,
    key: Uint8Array,
    signed: Pick<SignedRequest, 'data' | 'signature'>,
  ): Promise<Step<Proved>> {
    // Looks up the key that signed, and verifies the signature even for an unknown user.
    const offered = readOfferedKey(key)
    const signature =
      offered && verifySignedRequest({ ...signed, login: request.login, offered: key, key: offered.key })
    const found = isLocked ? UNKNOWN : await this.#holderOf(request, place, offered)
    // The person may be known: no failure that counts.
    if (found.result === 'unavailable') return found
    let flaw = this.#flawOf(found, offered, request, key) ?? (signature ? undefined : 'bad_signature')
    if (!flaw && offered?.certificate && signature) {
      flaw = this.#options.authorities().flawOfSignature(offered.certificate, signature)
    }
    if (found.result === 'accepted' && signature && !flaw) {
      const accepted = await this.#accept(found.value, place, request.source)
      return await andThen(accepted, async (value) => ({
        result: 'accepted',
        value: {
          ...value,
          ...(offered && { key: offered }),
          ...(signature.userVerified && { isUserVerified: true }),
        },
      }))
    }
    if (!isLocked) await this.#pretend(place, flaw)
    return { result: 'rejected', reason: flaw ?? 'unknown_user' }
  }

  async #accept(holder: KeyHolder, { domain, userName }: Place, source: string): Promise<Step<Proved>> {
    if ('user' in holder) {
      const { user, isProvedBefore } = holder
      return { result: 'accepted', value: { user, ...(isProvedBefore && { isProvedBefore }) } }
    }
    return await this.#options.external!.byKey(domain!, attemptOf(userName, source), holder.person)
  }

  /** Finds the owner of a certificate made here, the local user, or the person of a domain whose directory has keys. */
  async #holderOf(request: SignIn, place: Place, offered: OfferedKey | undefined): Promise<Step<KeyHolder>> {
    const { authorities, certificates, external, now } = this.#options
    const { local, domain, userName } = place
    const certificate = offered?.certificate
    if (certificates && certificate && authorities().isOwn(certificate))
      return await holderOfOwn(certificates, certificate, place, { source: request.source, now: now() })
    if (local) {
      const flaw = flawOfMethod(local, METHOD, request.source, now())
      const holder = { name: local.userName, keys: local.sshPublicKeys, flaw, user: local }
      return { result: 'accepted', value: holder }
    }
    if (!domain || !external || !isSound(userName)) return UNKNOWN
    const look = await external.look(domain, userName, request.source)
    if (look.result !== 'accepted') return look
    const person = look.value
    const name = `${person.userName}@${domain.domainName}`
    return { result: 'accepted', value: { name, keys: person.publicKeys ?? [], person } }
  }

  #flawOf(
    found: Step<KeyHolder>,
    offered: OfferedKey | undefined,
    request: SignIn,
    key: Uint8Array,
  ): Refusal | undefined {
    const { authorities, now } = this.#options
    const holder = found.result === 'accepted' ? found.value : undefined
    const use = { user: request.user, source: request.source, now: now() }
    const flaw = flawOfOffered(holder, offered, key, authorities(), use)
    return found.result === 'rejected' ? found.reason : flaw
  }

  /** A name that is no local user's takes the time of a look at the default domain. */
  async #pretend({ local, standard, userName }: Place, flaw: Refusal | undefined): Promise<void> {
    if (flaw && local && standard) await this.#options.external?.pretendLook(standard, userName)
  }
}
