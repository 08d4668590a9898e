/** An RDP front in this process, and a gate that knows one user and one ticket. */
import { X509Certificate } from 'node:crypto'
import { serverContext } from '../../../proxies/net/tls.ts'
import { type RdpArrival, RdpFront } from '../../../proxies/rdp/front/front.ts'
import type { AuthenticateAnswer, AuthenticateRequest } from '../../../src/contract/gate.ts'
import { judgeProof, ntHash } from '../../../src/model/ntlm-auth.ts'
import type { NlaMode } from '../../../src/model/rdp-ticket.ts'
import type { CertificateFiles } from '../../peers/vnc/certificate.ts'
import { listening } from '../listening.ts'

export const TICKET = { login: 'ops1:root@local@win1:rdp', password: 'a ticket of 24 letters..' }

export interface FrontWorldOptions {
  certificate: CertificateFiles
  nla?: NlaMode
  loginGraceMs?: number
  authenticate?: (request: AuthenticateRequest) => Promise<AuthenticateAnswer>
}

export interface FrontWorld {
  port: number
  front: RdpFront
  /** Clients after their Client Info, oldest first. */
  arrivals: RdpArrival[]
  /** Requests to the gate. */
  asked: AuthenticateRequest[]
  /** Tokens of released identities. */
  left: string[]
  stop(): void
}

export async function startFront(options: FrontWorldOptions): Promise<FrontWorld> {
  const { certificate, nla = 'tickets', loginGraceMs = 60_000, authenticate = judge } = options
  const arrivals: RdpArrival[] = []
  const asked: AuthenticateRequest[] = []
  const left: string[] = []
  const front = new RdpFront({
    gate: {
      authenticate: (request) => {
        asked.push(request)
        return authenticate(request)
      },
      leave: async ({ identity }) => void left.push(identity),
    },
    bastion: 'bastion.example',
    loginGraceMs,
    security: {
      tls: serverContext(certificate.pem),
      certificate: new X509Certificate(certificate.pem.cert).raw,
      nla,
    },
    onClient: (arrival) => arrivals.push(arrival),
  })
  const bound = await listening(front)
  const { port } = bound
  return {
    port,
    front,
    arrivals,
    asked,
    left,
    stop: () => {
      front.close()
      front.destroy()
    },
  }
}

async function judge({ proof }: AuthenticateRequest): Promise<AuthenticateAnswer> {
  if (proof.method !== 'ntlm' || proof.proof.user !== TICKET.login) return { result: 'rejected' }
  const key = judgeProof(ntHash(TICKET.password), proof.proof)
  if (!key) return { result: 'rejected' }
  const identity = { token: 'token', user: 'ops1', displayName: 'Ops', hasTarget: true }
  return { result: 'accepted', identity, key }
}
