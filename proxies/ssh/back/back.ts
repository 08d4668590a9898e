/**
 * The SSH client side toward the target: connects, lets the gate judge the host key, signs in with the
 * credential, and returns a transport for the relay. Failures are distinguished: the user must read whether
 * the target is down, refused the credential, or closed the connection.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import ssh2, { type AnyAuthMethod } from 'ssh2'
import type { Gate, OpenSession } from '../../../src/contract/gate.ts'
import { dial, givenUp } from '../../net/dial.ts'
import { CredentialRefusedError, INTERNAL, TargetError, wordsOf } from '../../wording/errors.ts'
import { TARGET_SIGN_IN_TIMEOUT_MS } from '../transport/limits.ts'
import { negotiationFailure, targetAlgorithms } from '../transport/target-algorithms.ts'
import { type RekeyLimits, Transport } from '../transport/transport.ts'
import { type AgentSource, type Attempt, TargetSignIn } from './target-sign-in.ts'

/**
 * Connects and signs in. Throws TargetError. An abort of `signal` cancels; its reason is a text for the user.
 * `agent` opens the user's own agent, if the policy allows it. `rekey`: limits for new keys, for tests.
 */
export async function connectTarget(
  session: OpenSession,
  gate: Gate,
  ident: string,
  signal: AbortSignal,
  agent: AgentSource,
  rekey?: RekeyLimits,
): Promise<Transport> {
  const name = `${session.target.device} (${session.target.host}:${session.target.port})`
  const socket = await dial(session.target.host, session.target.port, { name, signal })
  const attempts = new TargetSignIn(session, agent, (answer) =>
    gate.targetGssapi({ session: session.id, ...(answer && { answer }) }),
  )
  try {
    return await signIn(socket, session, gate, { ident, name, signal, attempts, ...(rekey && { rekey }) })
  } finally {
    attempts.close()
  }
}

function signIn(
  socket: Socket,
  session: OpenSession,
  gate: Gate,
  options: {
    ident: string
    name: string
    signal: AbortSignal
    attempts: TargetSignIn
    rekey?: RekeyLimits
  },
): Promise<Transport> {
  const { ident, name, signal, attempts, rekey } = options
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client()
    let settled = false
    let keysAgreed = false
    /** The key that the target proved in the first key exchange; later exchanges must prove the same key. */
    let hostKey: Buffer | undefined
    let lastError: Error & { level?: string } = new Error('it closed the connection')

    let judged = false
    /** Checks the host key before anything else is sent to the target. */
    async function judge(): Promise<void> {
      if (!hostKey) throw new Error('the key exchange showed no host key')
      const answer = await gate.hostKey({ session: session.id, key: hostKey })
      if (answer.result === 'refused') throw new TargetError(answer.message)
      attempts.credentials = answer.credentials ?? session.credentials
    }

    async function attempt(methodsLeft: string[] | null): Promise<Attempt | false> {
      if (!judged) await judge()
      judged = true
      return await attempts.next(methodsLeft)
    }

    const timer = setTimeout(
      () => fail(new TargetError(`${name} did not finish the SSH handshake in time`)),
      TARGET_SIGN_IN_TIMEOUT_MS,
    )
    const onAbort = () => fail(givenUp(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    function settle(): boolean {
      if (settled) return false
      settled = true
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      return true
    }
    function fail(error: TargetError): void {
      if (!settle()) return
      socket.destroy()
      reject(error)
    }

    client.on('error', (error) => {
      // Keep the protocol's error: the socket's error is only its consequence.
      if (lastError.level !== 'handshake') lastError = error
      // ssh2 would only close its own half, and a target could hold the other half open.
      if (settled) socket.destroy()
      else socket.destroySoon()
      if (lastError.level === 'client-authentication') {
        fail(new CredentialRefusedError(attempts.refusal(name)))
      }
    })
    client.on('close', () =>
      fail(
        new TargetError(
          keysAgreed
            ? `${name} closed the connection during sign-in${attempts.hint}`
            : `${name} broke off the SSH handshake: ${negotiationFailure(lastError.message) ?? wordsOf(lastError.message)}`,
        ),
      ),
    )
    client.on('handshake', () => {
      keysAgreed = true
    })
    client.on('ready', () => {
      if (settle()) resolve(transport)
    })
    client.connect({
      sock: socket,
      ident,
      username: session.target.login,
      algorithms: targetAlgorithms(
        session.options.legacyAlgorithms,
        session.hostKeyTypes,
        session.wantsHostCertificate,
      ),
      keepaliveInterval: 0,
      readyTimeout: 0,
      // Answered at once, also at each new key exchange: while an answer is pending, ssh2 lets messages
      // overtake its queued ones. The gate judges the key once the target has proved it.
      hostVerifier: (key: Buffer) => {
        if (hostKey) return hostKey.equals(key)
        hostKey = Buffer.from(key)
        return true
      },
      authHandler: (methodsLeft: string[] | null, _partial, next) => {
        attempt(methodsLeft).then(
          // `false` ends the attempts: ssh2 accepts it, but its types lack it.
          (what) => !settled && next(what as AnyAuthMethod),
          (error: unknown) => fail(error instanceof TargetError ? error : new TargetError(INTERNAL)),
        )
      },
    })
    const transport = new Transport(client, socket, { strict: false, ...(rekey && { rekey }) })
    transport.onMethodMessage = (payload) => attempts.onMethodMessage(payload, transport)
  })
}
