/** NLA toward a client, inside TLS: the gate judges what the client proves, and no password is looked at here. */
import { randomBytes } from 'node:crypto'
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import { channelBindings, subjectPublicKey } from '../credssp/certificate.ts'
import { CredSspServer, type ServerStep } from '../credssp/server.ts'
import { SpnegoAcceptor } from '../credssp/spnego-acceptor.ts'
import { readTsRequest } from '../credssp/ts-request.ts'
import { NtlmAcceptor } from '../ntlm/acceptor.ts'

export interface NlaOptions {
  /** What the bastion calls itself. */
  name: string
  /** That TLS has shown, in DER. */
  certificate: Uint8Array
  /** The session's base key of a proof that is right, undefined for a wrong one. */
  judge: (proof: NtlmProof) => Promise<Uint8Array | undefined>
}

/**
 * True: the client has proved who it is, and RDP goes on. False: it was refused, and told so where its version has words
 * for it. Rejects with EndedError and MalformedError, and as `judge` does.
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
    if (step.kind === 'judge') step = server.judged(await judge(step.proof))
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
