/** Our CredSSP client and server, without a socket between them. */
import { Buffer } from 'node:buffer'
import { CredSspClient } from '../../../../proxies/rdp/credssp/client.ts'
import { CredSspServer, type ServerStep } from '../../../../proxies/rdp/credssp/server.ts'
import { SpnegoAcceptor } from '../../../../proxies/rdp/credssp/spnego-acceptor.ts'
import { SpnegoInitiator } from '../../../../proxies/rdp/credssp/spnego-initiator.ts'
import type { Acceptor, SecurityContext } from '../../../../proxies/rdp/gss/mechanism.ts'
import { NtlmAcceptor } from '../../../../proxies/rdp/ntlm/acceptor.ts'
import { NtlmInitiator } from '../../../../proxies/rdp/ntlm/initiator.ts'
import { judgeProof, type NtlmProof, ntHash } from '../../../../src/model/ntlm-auth.ts'
import { Secret } from '../../../../src/model/secret.ts'

export const PASSWORD = 'Schlüssel 1€'
export const PUBLIC_KEY = Buffer.from('3082010a0282010100c0ffee', 'hex')
export const BINDINGS = Buffer.alloc(16, 7)
/** Milliseconds since 1970. */
const NOW = 1_700_000_000_000

/** Random bytes that are the same in each run. */
export function counter(): (length: number) => Uint8Array {
  let next = 0
  return (length) => Uint8Array.from({ length }, () => next++ & 0xff)
}

export interface PairOptions {
  password?: string
  /** The public key in the client's view of TLS. */
  clientKey?: Uint8Array
  clientBindings?: Uint8Array
  isSpnego?: boolean
  minimumVersion?: number
  /** Changes the bytes that the server seals. */
  seal?: (right: Uint8Array) => Uint8Array
}

export function createInitiator({ password = PASSWORD, clientBindings }: PairOptions = {}): NtlmInitiator {
  return new NtlmInitiator({
    user: 'Alice',
    domain: 'CORP',
    hash: ntHash(password),
    workstation: 'BASTION',
    service: 'TERMSRV/win1',
    channelBindings: clientBindings,
    random: counter(),
    now: () => NOW,
  })
}

export function createClient(options: PairOptions = {}): CredSspClient {
  const { password = PASSWORD, clientKey = PUBLIC_KEY, isSpnego = false, minimumVersion } = options
  const ntlm = createInitiator(options)
  return new CredSspClient({
    mechanism: isSpnego ? new SpnegoInitiator([ntlm]) : ntlm,
    publicKey: clientKey,
    credentials: { domain: 'CORP', user: 'Alice', password: Secret.of(password) },
    random: counter(),
    ...(minimumVersion !== undefined && { minimumVersion }),
  })
}

export const createAcceptor = (): NtlmAcceptor =>
  new NtlmAcceptor({ name: 'bastion', channelBindings: BINDINGS, random: counter(), now: () => NOW })

export function createServer({ minimumVersion, seal }: PairOptions = {}): CredSspServer {
  const acceptor = new SpnegoAcceptor([createAcceptor()])
  return new CredSspServer({
    acceptor: seal ? sealing(acceptor, seal) : acceptor,
    publicKey: PUBLIC_KEY,
    ...(minimumVersion !== undefined && { minimumVersion }),
  })
}

function sealing(acceptor: Acceptor, seal: (right: Uint8Array) => Uint8Array): Acceptor {
  return {
    oid: acceptor.oid,
    step: (token) => acceptor.step(token),
    judged: (key) => {
      const step = acceptor.judged(key)
      if (step.kind !== 'in') return step
      const { context } = step
      const sealed: SecurityContext = {
        wrap: (plain) => context.wrap(seal(plain)),
        unwrap: (wrapped) => context.unwrap(wrapped),
        signMechanisms: (list) => context.signMechanisms(list),
        areMechanismsSigned: (list, signature) => context.areMechanismsSigned(list, signature),
      }
      return { ...step, context: sealed }
    },
  }
}

/** Judges with the knowledge of Alice's PASSWORD. */
export function judge(proof: NtlmProof): Buffer | undefined {
  return proof.user === 'Alice' ? judgeProof(ntHash(PASSWORD), proof) : undefined
}

/** Runs a step of the server, including its question. */
export function answer(server: CredSspServer, message: Uint8Array): ServerStep {
  const step = server.receive(message)
  return step.kind === 'judge' ? server.judged(judge(step.proof)) : step
}

/** Runs both sides to the end; `between` may change messages. Throws the errors of both. */
export function talk(
  client: CredSspClient,
  server: CredSspServer,
  between: (message: Buffer, from: 'client' | 'server', number: number) => Buffer = (message) => message,
): ServerStep {
  let message = between(client.start(), 'client', 0)
  for (let number = 1; ; number++) {
    const step = answer(server, message)
    if ((step.kind !== 'more' && step.kind !== 'refused') || !step.send) return step
    const { send } = client.receive(between(step.send, 'server', number))
    if (!send) return step
    message = between(send, 'client', number)
  }
}
