/** A VNC front and a back with nothing between them, and a gate that knows one person, for real viewers. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { openVncTarget } from '../../../proxies/vnc/back.ts'
import { encodeServerInit } from '../../../proxies/vnc/codec/server-init.ts'
import { type SignedInViewer, VncFront } from '../../../proxies/vnc/front.ts'
import type { Pipe } from '../../../proxies/vnc/pipe.ts'
import { anonymousContext, certificateContext } from '../../../proxies/vnc/tls.ts'
import type { AuthenticateAnswer, AuthenticateRequest } from '../../../src/gate/messages.ts'
import { vncAuthResponse } from '../../../src/model/vnc-auth.ts'
import type { CertificateFiles } from '../../peers/vnc/certificate.ts'
import { trustingGate, vncSession } from './sessions.ts'

export const LOGIN = 'ops1%root@local@web1:vnc'
export const PASSWORD = 'Schlüssel & 1'
export const TICKET = 'tick-et1'

let rsaKey: KeyObject | undefined

export interface BridgeOptions {
  /** Of an Xvnc without authentication. */
  target?: number
  certificate: CertificateFiles
  allowClear?: readonly string[]
  loginGraceMs?: number
  authenticate?: (request: AuthenticateRequest) => Promise<AuthenticateAnswer>
}

export interface Bridge {
  port: number
  front: VncFront
  /** Who has come in, oldest first. */
  viewers: SignedInViewer[]
  /** What the gate was asked. */
  asked: AuthenticateRequest[]
  /** Tokens of identities, and ids of challenges, that are over. */
  left: string[]
  stop(): void
}

export async function startBridge(options: BridgeOptions): Promise<Bridge> {
  const { target, certificate, allowClear = ['127.0.0.1/32'], loginGraceMs = 60_000 } = options
  rsaKey ??= generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const { authenticate = judge } = options
  const viewers: SignedInViewer[] = []
  const asked: AuthenticateRequest[] = []
  const left: string[] = []
  const front = new VncFront({
    gate: {
      authenticate: (request) => {
        asked.push(request)
        return authenticate(request)
      },
      leave: async ({ identity }) => void left.push(identity),
    },
    loginGraceMs,
    security: {
      certificate: certificateContext(certificate.pem),
      anonymous: anonymousContext(),
      rsaKey,
      allowClear,
    },
    onSignedIn: (viewer) => {
      viewers.push(viewer)
      if (target !== undefined) void join(viewer.pipe, target)
    },
  })
  const { port } = await front.listen('127.0.0.1', 0)
  return {
    port,
    front,
    viewers,
    asked,
    left,
    stop: () => {
      front.close()
      front.destroy()
    },
  }
}

async function judge({ login, proof }: AuthenticateRequest): Promise<AuthenticateAnswer> {
  const identity = { token: 'token', user: 'ops1', displayName: 'Ops', hasTarget: true }
  if (login.includes('?')) return { result: 'malformed', message: 'a login is USER%TARGET' }
  const isRight =
    proof.method === 'ticket'
      ? login === '' && vncAuthResponse(proof.challenge, TICKET).equals(proof.response)
      : proof.method === 'password' && login === LOGIN && proof.password === PASSWORD
  return isRight ? { result: 'accepted', identity } : { result: 'rejected' }
}

async function join(viewer: Pipe, port: number): Promise<void> {
  const session = vncSession({ port, types: ['none'] })
  const signal = AbortSignal.timeout(20_000)
  const { pipe: target, init } = await openVncTarget(session, {
    gate: trustingGate(),
    signal,
    isShared: true,
  })
  viewer.write(encodeServerInit(init))
  for (const [from, to] of [
    [viewer, target],
    [target, viewer],
  ] as const) {
    from.onData = (bytes) => to.write(Buffer.from(bytes))
    from.onClose = () => to.end()
    from.paused = false
  }
}
