/** The sign-in at a misbehaving target, with keys of an agent: attempts, their order, and messages. */
import { generateKeyPairSync, sign } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import ssh2, { type AuthContext, type Connection } from 'ssh2'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connectTarget } from '../../../../proxies/ssh/back/back.ts'
import { TargetSignIn } from '../../../../proxies/ssh/back/target-sign-in.ts'
import type { AgentKey } from '../../../../proxies/ssh/codec/agent.ts'
import { Writer } from '../../../../proxies/ssh/codec/writer.ts'
import { AgentError, type ClientAgent } from '../../../../proxies/ssh/lobby/client-agent.ts'
import type { Gate, OpenSession, SessionCredential } from '../../../../src/contract/gate.ts'
import { newSshKey } from '../../../../src/host/ssh-keys.ts'
import type { AuthenticationMethod } from '../../../../src/model/authentication-methods.ts'
import { LOGIN_OPTIONS } from '../../../../src/model/login-options.ts'
import { RDP_OPTIONS } from '../../../../src/model/rdp-options.ts'
import { SSH_OPTIONS } from '../../../../src/model/ssh-options.ts'
import { VNC_OPTIONS } from '../../../../src/model/vnc-options.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
const KEY: AgentKey = {
  blob: new Writer().string('ssh-ed25519').string(raw).finish(),
  algorithm: 'ssh-ed25519',
  signature: 'ssh-ed25519',
  flags: 0,
}
const signature = (data: Uint8Array) =>
  new Writer()
    .string('ssh-ed25519')
    .string(sign(null, data, privateKey))
    .finish()

/** Methods tried, in order. `publickey?` is a query without signature. */
let tried: string[]
let judge: (context: AuthContext, name: string) => void
let server: ssh2.Server
const connections = new Set<Connection>()
beforeEach(async () => {
  tried = []
  server = new ssh2.Server({ hostKeys: [newSshKey('ed25519').private] }, (client) => {
    connections.add(client)
    client.on('error', () => undefined)
    client.on('authentication', (context) => {
      const isQuestion = context.method === 'publickey' && !context.signature
      const name = isQuestion ? 'publickey?' : context.method
      tried.push(name)
      judge(context, name)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  for (const client of connections) client.end()
  connections.clear()
  server.close()
})

const agentOf = (signs: ClientAgent['sign'], keys = [KEY]) =>
  ({ keys: async () => keys, sign: signs, close: () => undefined }) as unknown as ClientAgent

async function connect(
  agent: ClientAgent | undefined,
  authenticationMethods: AuthenticationMethod[],
  credentials: SessionCredential[] = [],
): Promise<string> {
  const { port } = server.address() as AddressInfo
  const session: OpenSession = {
    id: '',
    user: '',
    target: {
      canonical: '',
      protocol: 'SSH',
      host: '127.0.0.1',
      port,
      device: 'srv1',
      service: '',
      login: 'root',
    },
    credentials,
    rights: [],
    hostKeyTypes: [],
    wantsHostCertificate: false,
    loginOptions: LOGIN_OPTIONS,
    vncOptions: VNC_OPTIONS,
    rdpOptions: RDP_OPTIONS,
    options: { ...SSH_OPTIONS, authenticationMethods },
  }
  const gate = { hostKey: async () => ({ result: 'accepted' }) } as unknown as Gate
  try {
    const leg = await connectTarget(session, gate, 'Test', new AbortController().signal, async () => agent)
    leg.destroy()
    return 'signed in'
  } catch (error) {
    return String(error instanceof Error ? error.message : error)
  }
}

const AGENT = 'PUBKEY_AGENT_FORWARDING'
const PASSWORD: SessionCredential = { type: 'password', password: 'secret' }

test('a target that asks twice for one signature gets one', async () => {
  let asked = 0
  judge = (context, name) => {
    context.accept()
    if (name !== 'publickey?') return
    // ssh2's server would not do this by itself.
    const { _protocol: protocol } = [...connections].at(-1) as unknown as {
      _protocol: { _authsQueue: string[] }
    }
    protocol._authsQueue.push('publickey')
    context.accept()
  }
  const agent = agentOf(async (_key, data) => {
    asked++
    return signature(data)
  })
  expect(await connect(agent, [AGENT])).toBe('signed in')
  expect(asked).toBe(1)
  expect(tried).toEqual(['publickey?', 'publickey'])
})

test('a signature that is refused by the agent: the next method', async () => {
  judge = (context) => context.accept()
  const agent = agentOf(async () => undefined)
  expect(await connect(agent, [AGENT, 'PASSWORD_VAULT'], [PASSWORD])).toBe('signed in')
  expect(tried).toEqual(['publickey?', 'password'])
  expect(await connect(agent, [AGENT])).toContain('your agent refused to sign')
})

test('an agent that breaks off in the middle: the next method, or what it did', async () => {
  judge = (context) => context.accept()
  const agent = agentOf(async () => {
    throw new AgentError('the agent broke off')
  })
  expect(await connect(agent, [AGENT, 'PASSWORD_VAULT'], [PASSWORD])).toBe('signed in')
  agent.keys = async () => [KEY, KEY]
  expect((await connect(agent, [AGENT])).split('the agent broke off').length - 1).toBe(1)
})

test('methods are tried in the order of the policy, and others not at all', async () => {
  judge = (context) => context.reject(['password', 'publickey'])
  const key: SessionCredential = { type: 'ssh_key', privateKey: newSshKey('ed25519').private }
  const agent = agentOf(async (_key, data) => signature(data))
  await connect(agent, ['PASSWORD_VAULT', AGENT, 'PUBKEY_VAULT'], [PASSWORD, key])
  expect(tried).toEqual(['password', 'publickey?', 'publickey?'])
  tried = []
  expect(await connect(agent, ['PUBKEY_VAULT'], [PASSWORD, key])).toMatch(/refused the credential of root$/)
  expect(tried).toEqual(['publickey?'])
})

test('an agent is not asked by a target that takes no keys', async () => {
  judge = (context) => context.reject(['password'])
  let asked = false
  const agent = agentOf(async () => undefined)
  agent.keys = async () => {
    asked = true
    return [KEY]
  }
  await connect(agent, ['PASSWORD_VAULT', AGENT], [PASSWORD])
  expect(asked).toBe(false)
})

test('without a forwarded agent the user reads what to do', async () => {
  judge = (context) => context.reject(['publickey'])
  expect(await connect(undefined, [AGENT])).toContain('ssh -A')
})

test('after the sign-in its credentials are released', async () => {
  const password = { type: 'password', password: 'p' } as const
  const session = {
    target: { login: 'root' },
    options: { authenticationMethods: ['PASSWORD_VAULT'] },
    credentials: [password],
  } as unknown as OpenSession
  const signIn = new TargetSignIn(session, { open: async () => undefined } as never, () => Promise.reject())
  expect(await signIn.next(null)).toMatchObject({ type: 'password', password: 'p' })
  signIn.close()
  expect(signIn.credentials).toEqual([])
  expect(await signIn.next(null)).toBe(false)
})
