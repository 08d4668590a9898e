/** CredSSP to a target over its connection (MS-CSSP): authenticates the account before RDP begins. */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { HeldTicket } from '../../../src/kerberos/requests.ts'
import { ntHash } from '../../../src/model/ntlm-auth.ts'
import { Secret } from '../../../src/model/secret.ts'
import { TAG } from '../../bytes/der.ts'
import { EndedError } from '../../bytes/ended.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import type { TargetLogon } from '../codec/client-info.ts'
import { channelBindings, subjectPublicKey } from '../credssp/certificate.ts'
import { CredSspClient } from '../credssp/client.ts'
import { KerberosInitiator } from '../credssp/kerberos-initiator.ts'
import { SpnegoInitiator } from '../credssp/spnego-initiator.ts'
import { readTsRequest } from '../credssp/ts-request.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Initiator } from '../gss/mechanism.ts'
import { NtlmInitiator } from '../ntlm/initiator.ts'
import { OWN_NAME } from './own-name.ts'

export interface TargetSignIn {
  logon: TargetLogon
  /** The host as dialled. */
  host: string
  /** The target's TLS certificate in DER. */
  certificate: Uint8Array
  /** A Kerberos ticket for the target, which is shown instead of NTLM. */
  ticket: HeldTicket | undefined
}

export class TargetNla {
  readonly #stream: ByteStream
  readonly #client: CredSspClient
  readonly #password: Secret
  readonly #kerberos: KerberosInitiator | undefined

  constructor(stream: ByteStream, signIn: TargetSignIn) {
    const { logon, certificate, ticket } = signIn
    this.#stream = stream
    this.#password = Secret.of(logon.password)
    if (ticket) {
      const bindings = channelBindings(certificate)
      this.#kerberos = new KerberosInitiator({ ticket, bindings, now: Date.now })
    }
    this.#client = new CredSspClient({
      mechanism: this.#kerberos ? new SpnegoInitiator([this.#kerberos]) : ntlmOf(signIn),
      publicKey: subjectPublicKey(certificate),
      credentials: { domain: logon.domain, user: logon.login, password: this.#password },
      random: randomBytes,
    })
  }

  /** Kerberos was not accepted, and no password was sent: another way to sign in may be tried. */
  get isKerberosRefused(): boolean {
    return this.#kerberos !== undefined && this.#client.isProving
  }

  /** Throws MalformedError, or CredSspError, also if the target closes instead of responding. */
  async run(): Promise<void> {
    try {
      this.#stream.write(this.#client.start())
      for (;;) {
        const { send, isDone } = this.#client.receive(await this.#request())
        if (send) this.#stream.write(send)
        if (isDone) return
      }
    } finally {
      this.#password.wipe()
      this.#kerberos?.close()
    }
  }

  /**
   * Reads the target's first byte after CredSSP, once RDP has begun: a target that refuses the credentials
   * sends another TSRequest instead, or closes. Throws as `run` does.
   */
  async first(): Promise<Buffer> {
    const first = await this.#bytes(1)
    if (first[0] === TAG.SEQUENCE) this.#client.receive(await this.#request(first))
    return first
  }

  /** `begun` is the TSRequest's first byte, if already read. */
  async #request(begun?: Buffer): Promise<Buffer> {
    let ahead = begun
    return await readTsRequest({
      read: async (count) => {
        const bytes = ahead ?? (await this.#bytes(count))
        ahead = undefined
        return bytes
      },
    })
  }

  async #bytes(count: number): Promise<Buffer> {
    try {
      return await this.#stream.read(count)
    } catch (error) {
      throw error instanceof EndedError ? this.#brokenOff : error
    }
  }

  get #brokenOff(): CredSspError {
    return this.isKerberosRefused
      ? new CredSspError(
          'ticket',
          'the target closed the connection when it was shown a Kerberos ticket: it has no Kerberos, or not the key of the ticket, or its clock differs',
        )
      : this.#client.brokenOff
  }
}

const ntlmOf = ({ logon, host, certificate }: TargetSignIn): Initiator =>
  new NtlmInitiator({
    user: logon.login,
    domain: logon.domain,
    hash: ntHash(logon.password),
    workstation: OWN_NAME,
    service: `TERMSRV/${host}`,
    channelBindings: channelBindings(certificate),
    random: randomBytes,
    now: Date.now,
  })
