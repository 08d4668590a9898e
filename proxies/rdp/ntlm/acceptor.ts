/**
 * NTLMv2 as a server (MS-NLMP 3.2.5): sends a CHALLENGE, and leaves the proof to the caller, so that no
 * password and no hash is held here.
 */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { hmacMd5, PROOF_LENGTH } from '../../../src/model/ntlm-auth.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { utf16Bytes } from '../codec/utf16.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Acceptor, AcceptorStep } from '../gss/mechanism.ts'
import { NTLM_OID } from '../gss/oids.ts'
import { type AvPair, avValue, buildAvPairs, parseAvPairs } from './av-pairs.ts'
import { fileTime } from './keys.ts'
import {
  type Authenticate,
  buildChallenge,
  MIC_LENGTH,
  MIC_OFFSET,
  parseAuthenticate,
  parseNegotiate,
} from './messages.ts'
import { ACCEPTED_FLAGS, AV, AV_FLAG_MIC, NEEDED_FLAGS, SERVER_FLAGS } from './numbers.ts'
import { Rc4 } from './rc4.ts'
import { NtlmSession } from './session.ts'

export interface NtlmAcceptorOptions {
  /** The server's name; its first 15 characters in capitals are the NetBIOS name. */
  name: string
  /** MD5 of the channel bindings. A client may omit them, but different ones are refused. */
  channelBindings: Uint8Array | undefined
  random(length: number): Uint8Array
  /** Milliseconds since 1970. */
  now(): number
}

/** Bytes before the AV_PAIRs of a client's challenge (2.2.2.7). */
const TEMP_HEAD = 28
/** Characters of a NetBIOS name. */
const NETBIOS_LIMIT = 15

type State =
  | { kind: 'start' }
  | { kind: 'challenged'; negotiate: Buffer; challenge: Buffer; serverChallenge: Uint8Array }
  | { kind: 'judging'; negotiate: Buffer; challenge: Buffer; authenticate: Buffer; message: Authenticate }
  | { kind: 'over' }

export class NtlmAcceptor implements Acceptor {
  readonly oid = NTLM_OID
  readonly #options: NtlmAcceptorOptions
  #state: State = { kind: 'start' }

  constructor(options: NtlmAcceptorOptions) {
    this.#options = options
  }

  step(token: Uint8Array): AcceptorStep {
    switch (this.#state.kind) {
      case 'start':
        return this.#challenge(token)
      case 'challenged':
        return this.#authenticate(token)
      default:
        throw new MalformedError('ntlm: no further message was expected after the AUTHENTICATE')
    }
  }

  judged(key: Uint8Array | undefined): AcceptorStep {
    const state = this.#state
    if (state.kind !== 'judging') throw new Error('nothing is to be judged')
    this.#state = { kind: 'over' }
    if (key === undefined) return { kind: 'refused' }
    const sessionKey = new Rc4(key).apply(state.message.encryptedSessionKey)
    const unsigned = Buffer.from(state.authenticate)
    unsigned.fill(0, MIC_OFFSET, MIC_OFFSET + MIC_LENGTH)
    const mic = hmacMd5(sessionKey, state.negotiate, state.challenge, unsigned)
    if (!timingSafeEqual(mic, state.message.mic!)) {
      throw new CredSspError('altered', 'the NTLM messages were altered on their way (the MIC is wrong)')
    }
    return { kind: 'in', context: new NtlmSession(sessionKey, 'server') }
  }

  #challenge(token: Uint8Array): AcceptorStep {
    const offered = parseNegotiate(token)
    const missing = (NEEDED_FLAGS & ~offered) >>> 0
    if (missing !== 0) {
      throw new CredSspError(
        'weak',
        `the client's NTLM does not protect the password (flags 0x${missing.toString(16)})`,
      )
    }
    const { name, random, now } = this.#options
    const netbios = name.slice(0, NETBIOS_LIMIT).toUpperCase()
    const pairs: AvPair[] = [
      { id: AV.DOMAIN_NAME, value: utf16Bytes(netbios) },
      { id: AV.COMPUTER_NAME, value: utf16Bytes(netbios) },
      { id: AV.DNS_DOMAIN_NAME, value: utf16Bytes(name) },
      { id: AV.DNS_COMPUTER_NAME, value: utf16Bytes(name) },
      { id: AV.TIMESTAMP, value: fileTime(now()) },
    ]
    const flags = ((offered & ACCEPTED_FLAGS) | SERVER_FLAGS) >>> 0
    const serverChallenge = random(8)
    const challenge = buildChallenge({ flags, serverChallenge, targetInfo: buildAvPairs(pairs) }, netbios)
    this.#state = { kind: 'challenged', negotiate: Buffer.from(token), challenge, serverChallenge }
    return { kind: 'token', token: challenge }
  }

  #authenticate(token: Uint8Array): AcceptorStep {
    const state = this.#state
    if (state.kind !== 'challenged') throw new Error('no challenge was sent')
    const authenticate = Buffer.from(token)
    const message = parseAuthenticate(authenticate)
    this.#requireStrength(message)
    this.#requireBindings(message.ntResponse)
    const { negotiate, challenge, serverChallenge } = state
    this.#state = { kind: 'judging', negotiate, challenge, authenticate, message }
    const { user, domain, ntResponse } = message
    return { kind: 'judge', proof: { user, domain, serverChallenge, response: ntResponse } }
  }

  #requireStrength({ flags, ntResponse, encryptedSessionKey, mic }: Authenticate): void {
    if (ntResponse.length < PROOF_LENGTH + TEMP_HEAD) {
      throw new CredSspError(
        'weak',
        'the client uses NTLMv1 or no proof of its password, and NTLMv2 is required',
      )
    }
    const missing = (NEEDED_FLAGS & ~flags) >>> 0
    if (missing !== 0 || encryptedSessionKey.length !== 16) {
      throw new CredSspError(
        'weak',
        `the client's NTLM does not protect the password in its last message (flags 0x${missing.toString(16)})`,
      )
    }
    const avFlags = avValue(parseAvPairs(ntResponse.subarray(PROOF_LENGTH + TEMP_HEAD)), AV.FLAGS)
    const saysMic = avFlags !== undefined && avFlags.length === 4 && (avFlags[0]! & AV_FLAG_MIC) !== 0
    if (mic === undefined || !saysMic) {
      throw new CredSspError('weak', 'the client does not sign its NTLM messages (it sends no MIC)')
    }
  }

  /** Accepts missing bindings: FreeRDP sends zeros, MIT nothing. */
  #requireBindings(ntResponse: Uint8Array): void {
    const ours = this.#options.channelBindings
    const theirs = avValue(parseAvPairs(ntResponse.subarray(PROOF_LENGTH + TEMP_HEAD)), AV.CHANNEL_BINDINGS)
    if (ours === undefined || theirs === undefined || theirs.every((byte) => byte === 0)) return
    if (theirs.length === ours.length && timingSafeEqual(theirs, ours)) return
    throw new CredSspError(
      'altered',
      'the client is bound to a different TLS connection: there may be a man in the middle',
    )
  }
}
