/** Kerberos as a mechanism of CredSSP: a ticket for the target is shown, and the target proves that it can open it. */
import { KERBEROS_OID } from '../../../src/kerberos/gss.ts'
import { Initiator as KerberosClient } from '../../../src/kerberos/initiator.ts'
import type { MessageTokens } from '../../../src/kerberos/message-tokens.ts'
import { ServiceRefusal, UnprovedServiceError } from '../../../src/kerberos/refusals.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Initiator, SecurityContext } from '../gss/mechanism.ts'

/** Error codes of a service (RFC 4120 7.5.9). */
const SKEW = 37
const WRONG_KEY: ReadonlySet<number> = new Set([31, 41, 44, 45])

export class KerberosInitiator implements Initiator {
  readonly oid = KERBEROS_OID
  readonly #client: KerberosClient
  #context: SecurityContext | undefined

  constructor(options: ConstructorParameters<typeof KerberosClient>[0]) {
    this.#client = new KerberosClient(options)
  }

  get context(): SecurityContext | undefined {
    return this.#context
  }

  get isComplete(): boolean {
    return this.#context !== undefined
  }

  start(): Uint8Array {
    return this.#client.start()
  }

  step(token: Uint8Array): undefined {
    try {
      this.#context = contextOf(this.#client.step(token))
    } catch (error) {
      if (error instanceof UnprovedServiceError) throw new CredSspError('altered', error.message)
      if (error instanceof ServiceRefusal) throw refusalOf(error)
      throw error
    }
  }

  /** Wipes all keys. */
  close(): void {
    this.#client.close()
  }
}

/** Returns the context of CredSSP that seals and signs by these messages. */
export const contextOf = (tokens: MessageTokens): SecurityContext => ({
  wrap: (plain) => tokens.wrap(plain),
  unwrap: (wrapped) => tokens.unwrap(wrapped),
  signMechanisms: (list) => tokens.sign(list),
  areMechanismsSigned: (list, signature) => tokens.isSigned(list, signature),
})

function refusalOf({ code, message }: ServiceRefusal): CredSspError {
  if (code === SKEW)
    return new CredSspError(
      'clock',
      `the target refused the Kerberos ticket: ${message}: set both clocks by the same time server`,
    )
  const help = WRONG_KEY.has(code) ? ': it does not have the key that the KDC has for this name' : ''
  return new CredSspError('ticket', `the target refused the Kerberos ticket: ${message}${help}`)
}
