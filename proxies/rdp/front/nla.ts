/** NLA for a client, inside TLS. The gate judges the client's proof; passwords are not checked here. */
import { randomBytes } from 'node:crypto'
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import { channelBindings, subjectPublicKey } from '../credssp/certificate.ts'
import { CredSspServer, type ServerStep } from '../credssp/server.ts'
import { SpnegoAcceptor } from '../credssp/spnego-acceptor.ts'
import { readTsRequest } from '../credssp/ts-request.ts'
import { NtlmAcceptor } from '../ntlm/acceptor.ts'

export interface NlaOptions {
  /** The bastion's name. */
  name: string
  /** The certificate of the TLS connection in DER. */
  certificate: Uint8Array
  /**
   * Returns the session base key of a correct proof, undefined for a wrong one, or `unavailable` if nobody can sign
   * in at the moment.
   */
  judge: (proof: NtlmProof) => Promise<Uint8Array | 'unavailable' | undefined>
}

/**
 * Returns true if the client is authenticated and RDP follows, or false if it was refused (with the reason,
 * if its version supports it). Rejects with EndedError and MalformedError, and as `judge` does.
 */
export async function serveNla(
  stream: Pick<ByteStream, 'read' | 'write'>,
  { name, certificate, judge }: NlaOptions,
): Promise<boolean> {
  const ntlm = new NtlmAcceptor({
    name,
    channelBindings: channelBindings(certificate),
    random: randomBytes,
    now: Date.now,
  })
  const server = new CredSspServer({
    acceptor: new SpnegoAcceptor([ntlm]),
    publicKey: subjectPublicKey(certificate),
  })
  for (;;) {
    let step: ServerStep = server.receive(await readTsRequest(stream))
    if (step.kind === 'judge') {
      const key = await judge(step.proof)
      step = key === 'unavailable' ? server.unjudged() : server.judged(key)
    }
    switch (step.kind) {
      case 'done':
        step.credentials.password.wipe()
        return true
      case 'refused':
        if (step.send) stream.write(step.send)
        return false
      case 'more':
        if (step.send) stream.write(step.send)
    }
  }
}
