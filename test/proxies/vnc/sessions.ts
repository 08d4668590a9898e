/** Sessions for a VNC back, for tests without a gate. */
import type { HostKeyRequest, OpenSession } from '../../../src/contract/gate.ts'
import { LOGIN_OPTIONS } from '../../../src/model/login-options.ts'
import { RDP_OPTIONS } from '../../../src/model/rdp-options.ts'
import { SSH_OPTIONS } from '../../../src/model/ssh-options.ts'
import { VNC_OPTIONS, type VncSecurityType } from '../../../src/model/vnc-options.ts'

export interface SessionOptions {
  port: number
  login?: string
  password?: string
  types?: readonly VncSecurityType[]
}

export function vncSession({ port, login = '', password, types = [] }: SessionOptions): OpenSession {
  return {
    id: 'session',
    user: 'ops1',
    target: {
      canonical: 'root@local:web1:vnc',
      protocol: 'VNC',
      host: '127.0.0.1',
      port,
      login,
      device: 'web1',
      service: 'vnc',
    },
    credentials: password === undefined ? [] : [{ type: 'password', password }],
    hostKeyTypes: [],
    wantsHostCertificate: false,
    rights: ['VNC'],
    options: SSH_OPTIONS,
    loginOptions: LOGIN_OPTIONS,
    vncOptions: { ...VNC_OPTIONS, securityTypes: types },
    rdpOptions: RDP_OPTIONS,
  }
}

/** Accepts every key, and keeps the requests. */
export function trustingGate(): {
  asked: HostKeyRequest[]
  hostKey(request: HostKeyRequest): Promise<{ result: 'accepted' }>
} {
  const asked: HostKeyRequest[] = []
  return {
    asked,
    hostKey: async (request) => {
      asked.push(request)
      return { result: 'accepted' }
    },
  }
}
