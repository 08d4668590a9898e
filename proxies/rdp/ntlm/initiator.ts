/** NTLMv2 as a client (MS-NLMP 3.1.5): NEGOTIATE, and AUTHENTICATE in response to a CHALLENGE. */
import { Buffer } from 'node:buffer'
import { hmacMd5, prove, responseKey } from '../../../src/model/ntlm-auth.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { utf16Bytes } from '../codec/utf16.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Initiator } from '../gss/mechanism.ts'
import { NTLM_OID } from '../gss/oids.ts'
import { type AvPair, avValue, buildAvPairs, parseAvPairs } from './av-pairs.ts'
import { fileTime } from './keys.ts'
import { buildAuthenticate, buildNegotiate, MIC_OFFSET, parseChallenge } from './messages.ts'
import { AV, AV_FLAG_MIC, NEEDED_FLAGS, OFFERED_FLAGS } from './numbers.ts'
import { Rc4 } from './rc4.ts'
import { NtlmSession } from './session.ts'

export interface NtlmInitiatorOptions {
  user: string
  /** Empty for a local account of the target. */
  domain: string
  /** Hash of the password (`ntHash`), overwritten after use. */
  hash: Buffer
  /** The bastion's name, which targets log. */
  workstation: string
  /** The service principal name, `TERMSRV/host`. */
  service: string
  /** MD5 of the channel bindings. Undefined if the certificate's signature defines no hash. */
  channelBindings: Uint8Array | undefined
  random(length: number): Uint8Array
  /** Milliseconds since 1970. */
  now(): number
}

/** Pairs that the client sets itself. */
const OWN_PAIRS: ReadonlySet<number> = new Set([AV.FLAGS, AV.TARGET_NAME, AV.CHANNEL_BINDINGS])

export class NtlmInitiator implements Initiator {
  readonly oid = NTLM_OID
  readonly #options: NtlmInitiatorOptions
  readonly #negotiate = buildNegotiate(OFFERED_FLAGS)
  #context: NtlmSession | undefined

  constructor(options: NtlmInitiatorOptions) {
    this.#options = options
  }

  get context(): NtlmSession | undefined {
    return this.#context
  }

  get isComplete(): boolean {
    return this.#context !== undefined
  }

  start(): Buffer {
    return this.#negotiate
  }

  step(token: Uint8Array): Buffer {
    if (this.#context) throw new MalformedError('ntlm: no further message was expected after the CHALLENGE')
    const challenge = parseChallenge(token)
    const missing = (NEEDED_FLAGS & ~challenge.flags) >>> 0
    if (missing !== 0) {
      throw new CredSspError(
        'weak',
        `the target's NTLM does not protect the password (flags 0x${missing.toString(16)})`,
      )
    }
    const { user, domain, hash, workstation, random } = this.#options
    const key = responseKey(hash, user, domain)
    hash.fill(0)
    const { response, sessionBaseKey } = prove(
      key,
      challenge.serverChallenge,
      this.#temp(challenge.targetInfo),
    )
    key.fill(0)
    const sessionKey = random(16)
    const message = buildAuthenticate({
      flags: (challenge.flags & OFFERED_FLAGS) >>> 0,
      user,
      domain,
      workstation,
      ntResponse: response,
      encryptedSessionKey: new Rc4(sessionBaseKey).apply(sessionKey),
    })
    hmacMd5(sessionKey, this.#negotiate, token, message).copy(message, MIC_OFFSET)
    this.#context = new NtlmSession(sessionKey, 'client')
    return message
  }

  /** Builds the client's challenge (2.2.2.7), covered by the proof: the bindings, and the flag of a MIC. */
  #temp(targetInfo: Uint8Array): Buffer {
    const { channelBindings, service, random, now } = this.#options
    const theirs = parseAvPairs(targetInfo)
    const pairs: AvPair[] = theirs.filter(({ id }) => !OWN_PAIRS.has(id))
    const flags = Buffer.alloc(4)
    flags.writeUInt32LE(AV_FLAG_MIC)
    pairs.push(
      { id: AV.FLAGS, value: flags },
      { id: AV.CHANNEL_BINDINGS, value: channelBindings ?? Buffer.alloc(16) },
      { id: AV.TARGET_NAME, value: utf16Bytes(service) },
    )
    const timestamp = avValue(theirs, AV.TIMESTAMP)
    if (timestamp !== undefined && timestamp.length !== 8) {
      throw new MalformedError(`ntlm: a timestamp of 8 bytes was expected, found ${timestamp.length}`)
    }
    return Buffer.concat([
      Buffer.from([1, 1, 0, 0, 0, 0, 0, 0]),
      timestamp ?? fileTime(now()),
      random(8),
      Buffer.alloc(4),
      buildAvPairs(pairs),
      Buffer.alloc(4),
    ])
  }
}
