/** CredSSP connections to real programs and to our own state machines: X.224, TLS, then TSRequests. */
import type { Buffer } from 'node:buffer'
import { randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { generate } from 'selfsigned'
import {
  buildConnectionConfirm,
  buildConnectionRequest,
  RESPONSE_FLAG,
  SECURITY_PROTOCOL,
} from '../../../../proxies/rdp/codec/x224.ts'
import { channelBindings, subjectPublicKey } from '../../../../proxies/rdp/credssp/certificate.ts'
import { CredSspClient } from '../../../../proxies/rdp/credssp/client.ts'
import type { TsCredentials } from '../../../../proxies/rdp/credssp/credentials.ts'
import { CredSspServer } from '../../../../proxies/rdp/credssp/server.ts'
import { SpnegoAcceptor } from '../../../../proxies/rdp/credssp/spnego-acceptor.ts'
import { SpnegoInitiator } from '../../../../proxies/rdp/credssp/spnego-initiator.ts'
import {
  parseTsRequest,
  type TsRequest,
  TsRequestSplitter,
} from '../../../../proxies/rdp/credssp/ts-request.ts'
import { NtlmAcceptor } from '../../../../proxies/rdp/ntlm/acceptor.ts'
import { NtlmInitiator } from '../../../../proxies/rdp/ntlm/initiator.ts'
import { judgeProof, type NtlmProof, ntHash } from '../../../../src/model/ntlm-auth.ts'
import { Secret } from '../../../../src/model/secret.ts'

const REQUEST = buildConnectionRequest({
  negotiation: { flags: 0, protocols: SECURITY_PROTOCOL.tls | SECURITY_PROTOCOL.credssp },
})
const confirm = (protocol: number) =>
  buildConnectionConfirm({ result: 'selected', flags: RESPONSE_FLAG.extendedClientData, protocol })

export interface Identity {
  cert: string
  key: string
}

export async function createIdentity(): Promise<Identity> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'bastion' }])
  return { cert, key }
}

async function readTpkt(socket: Socket): Promise<void> {
  for (;;) {
    const head: Buffer | null = socket.read(4)
    if (head) {
      const length = head.readUInt16BE(2) - 4
      while (!socket.read(length)) await once(socket, 'readable')
      return
    }
    await once(socket, 'readable')
  }
}

/** Connects by TLS to a target that requires CredSSP. */
export async function connectTarget(port: number): Promise<TLSSocket> {
  const tcp = connectTcp(port, '127.0.0.1')
  await once(tcp, 'connect')
  tcp.write(REQUEST)
  await readTpkt(tcp)
  tcp.removeAllListeners('readable')
  const socket = connectTls({ socket: tcp, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  return socket
}

/** A server that chooses this protocol, completes TLS and calls `serve`. */
export async function listen(
  identity: Identity,
  serve: (socket: TLSSocket) => Promise<void>,
  protocol: number = SECURITY_PROTOCOL.credssp,
): Promise<{ port: number; close(): void }> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((tcp) => {
    sockets.add(tcp)
    tcp.on('error', () => {})
    void readTpkt(tcp).then(() => {
      tcp.removeAllListeners('readable')
      tcp.write(confirm(protocol))
      const socket = new TLSSocket(tcp, { isServer: true, ...identity })
      socket.on('error', () => {})
      socket.once('secure', () => void serve(socket).finally(() => socket.end()))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export interface Between {
  port: number
  /** TSRequests sent by clients through it. */
  seen: TsRequest[]
  close(): void
}

/** A man in the middle that forwards everything to a target, with a TLS key of its own. */
export async function listenBetween(target: number): Promise<Between> {
  const seen: TsRequest[] = []
  const { port, close } = await listen(await createIdentity(), async (socket) => {
    const behind = await connectTarget(target)
    const splitter = new TsRequestSplitter()
    socket.on('data', (chunk: Buffer) => {
      splitter.add(chunk)
      for (let message = splitter.next(); message; message = splitter.next()) {
        seen.push(parseTsRequest(message))
      }
    })
    socket.pipe(behind).pipe(socket)
    await once(behind, 'close')
  })
  return { port, seen, close }
}

/** Yields TSRequests until the peer ends. */
async function* messages(socket: TLSSocket): AsyncGenerator<Buffer> {
  const splitter = new TsRequestSplitter()
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    splitter.add(chunk as Buffer)
    for (let message = splitter.next(); message; message = splitter.next()) yield message
  }
}

export interface TargetLogin {
  port: number
  user: string
  password: string
  domain?: string
  isSpnego?: boolean
  /** Used in place of the target's TLS certificate (DER). */
  certificate?: Buffer
}

/** Signs in at a target. Resolves with the connection once the password is sent. */
export async function signIn(login: TargetLogin): Promise<TLSSocket> {
  const { port, user, password, domain = '', isSpnego = false } = login
  const socket = await connectTarget(port)
  const certificate = login.certificate ?? socket.getPeerCertificate().raw
  const ntlm = new NtlmInitiator({
    user,
    domain,
    hash: ntHash(password),
    workstation: 'BASTION',
    service: 'TERMSRV/127.0.0.1',
    channelBindings: channelBindings(certificate),
    random: randomBytes,
    now: Date.now,
  })
  const client = new CredSspClient({
    mechanism: isSpnego ? new SpnegoInitiator([ntlm]) : ntlm,
    publicKey: subjectPublicKey(certificate),
    credentials: { domain, user, password: Secret.of(password) },
    random: randomBytes,
  })
  socket.write(client.start())
  try {
    for await (const message of messages(socket)) {
      const { send, isDone } = client.receive(message)
      if (send) socket.write(send)
      if (isDone) return socket
    }
  } catch (error) {
    socket.destroy()
    throw error
  }
  throw client.brokenOff
}

/** Result of a client's sign-in. */
export type Outcome = { credentials: TsCredentials; proof: NtlmProof } | { error: Error }

/** Serves CredSSP to a client, for users and their passwords. */
export async function serveCredSsp(
  socket: TLSSocket,
  identity: Identity,
  users: Readonly<Record<string, string>>,
): Promise<Outcome> {
  const certificate = new X509Certificate(identity.cert)
  const server = new CredSspServer({
    acceptor: new SpnegoAcceptor([
      new NtlmAcceptor({
        name: 'bastion',
        channelBindings: channelBindings(certificate.raw),
        random: randomBytes,
        now: Date.now,
      }),
    ]),
    publicKey: subjectPublicKey(certificate.raw),
  })
  let proof: NtlmProof | undefined
  try {
    for await (const message of messages(socket)) {
      let step = server.receive(message)
      if (step.kind === 'judge') {
        proof = step.proof
        const password = users[proof.user]
        step = server.judged(password === undefined ? undefined : judgeProof(ntHash(password), proof))
      }
      if ('send' in step && step.send) socket.write(step.send)
      if (step.kind === 'refused') return { error: step.error }
      if (step.kind === 'done') return { credentials: step.credentials, proof: proof! }
    }
  } catch (error) {
    return { error: error as Error }
  }
  return { error: new Error('the client closed the connection') }
}
