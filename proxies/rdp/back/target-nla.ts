/** CredSSP to a target over its connection (MS-CSSP): authenticates the account before RDP begins. */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { ntHash } from '../../../src/model/ntlm-auth.ts'
import { Secret } from '../../../src/model/secret.ts'
import { TAG } from '../../bytes/der.ts'
import { EndedError } from '../../bytes/ended.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import type { TargetLogon } from '../codec/client-info.ts'
import { channelBindings, subjectPublicKey } from '../credssp/certificate.ts'
import { CredSspClient } from '../credssp/client.ts'
import { readTsRequest } from '../credssp/ts-request.ts'
import { NtlmInitiator } from '../ntlm/initiator.ts'
import { OWN_NAME } from './own-name.ts'

export interface TargetSignIn {
  logon: TargetLogon
  /** The host as dialled. */
  host: string
  /** The target's TLS certificate in DER. */
  certificate: Uint8Array
}

export class TargetNla {
  readonly #stream: ByteStream
  readonly #client: CredSspClient
  readonly #password: Secret

  constructor(stream: ByteStream, { logon, host, certificate }: TargetSignIn) {
    this.#stream = stream
    this.#password = Secret.of(logon.password)
    this.#client = new CredSspClient({
      mechanism: new NtlmInitiator({
        user: logon.login,
        domain: logon.domain,
        hash: ntHash(logon.password),
        workstation: OWN_NAME,
        service: `TERMSRV/${host}`,
        channelBindings: channelBindings(certificate),
        random: randomBytes,
        now: Date.now,
      }),
      publicKey: subjectPublicKey(certificate),
      credentials: { domain: logon.domain, user: logon.login, password: this.#password },
      random: randomBytes,
    })
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
      throw error instanceof EndedError ? this.#client.brokenOff : error
    }
  }
}
