/** A VNC front in this process, and a gate that knows one user. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { type SignedInViewer, VncFront } from '../../../proxies/vnc/front.ts'
import { anonymousContext, certificateContext } from '../../../proxies/vnc/tls.ts'
import type { AuthenticateAnswer, AuthenticateRequest } from '../../../src/contract/gate.ts'
import { VNC_OFFERED_TYPES } from '../../../src/model/vnc-options.ts'
import type { CertificateFiles } from '../../peers/vnc/certificate.ts'
import { listening } from '../listening.ts'

export const LOGIN = 'ops1%root@local@web1:vnc'
export const PASSWORD = 'Schlüssel & 1'

let rsaKey: KeyObject | undefined

export interface FrontWorldOptions {
  certificate: CertificateFiles
  allowClear?: readonly string[]
  loginGraceMs?: number
  authenticate?: (request: AuthenticateRequest) => Promise<AuthenticateAnswer>
}

export interface FrontWorld {
  port: number
  front: VncFront
  /** The signed-in viewers, oldest first. */
  viewers: SignedInViewer[]
  /** The requests to the gate. */
  asked: AuthenticateRequest[]
  /** Tokens of identities, and ids of challenges, that were given back to the gate. */
  left: string[]
  stop(): void
}

export async function startFront(options: FrontWorldOptions): Promise<FrontWorld> {
  const { certificate, allowClear = ['127.0.0.1/32'], loginGraceMs = 60_000 } = options
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
    bastion: 'bastion',
    security: {
      certificate: certificateContext(certificate.pem),
      anonymous: anonymousContext(),
      types: VNC_OFFERED_TYPES,
      rsaKey,
      allowClear,
    },
    onSignedIn: (viewer) => viewers.push(viewer),
  })
  const bound = await listening(front)
  const { port } = bound
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
  const isRight = proof.method === 'password' && login === LOGIN && proof.password === PASSWORD
  return isRight ? { result: 'accepted', identity } : { result: 'rejected' }
}
