/**
 * The SSH client side toward the target: connects, lets the gate judge the host key, injects the credential,
 * and hands a transport to the relay. What goes wrong is told apart, because the user must read whether the
 * target is down, refused the credential, or broke off.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import ssh2, { type AnyAuthMethod } from 'ssh2'
import type { Credential, Gate, OpenSession } from '../../src/gate/messages.ts'
import { connectShared } from '../shared-read.ts'
import { INTERNAL, TargetError } from './errors.ts'
import { CONNECT_TIMEOUT_MS, TARGET_SIGN_IN_TIMEOUT_MS } from './limits.ts'
import { negotiationFailure, targetAlgorithms } from './target-algorithms.ts'
import { type RekeyLimits, Transport } from './transport.ts'

/**
 * Connects and signs in. Throws TargetError. `signal` gives up; its reason is a text for the user. `rekey`: when new
 * keys are agreed, for tests.
 */
export async function connectTarget(
  session: OpenSession,
  gate: Gate,
  ident: string,
  signal: AbortSignal,
  rekey?: RekeyLimits,
): Promise<Transport> {
  const name = `${session.target.device} (${session.target.host}:${session.target.port})`
  const socket = await dial(session.target.host, session.target.port, name, signal)
  return await signIn(socket, session, gate, { ident, name, signal, ...(rekey && { rekey }) })
}

function dial(host: string, port: number, name: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectShared({ host, port, noDelay: true, signal })
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer in ${CONNECT_TIMEOUT_MS / 1000} s`)),
      CONNECT_TIMEOUT_MS,
    )
    socket.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      reject(
        signal.aborted ? givenUp(signal) : new TargetError(`cannot connect to ${name}: ${reasonOf(error)}`),
      )
    })
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.removeAllListeners('error')
      resolve(socket)
    })
  })
}

function givenUp(signal: AbortSignal): TargetError {
  return new TargetError(String(signal.reason))
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return 'connection refused, nothing listens there'
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'no route to it'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'its name does not resolve'
    case 'ETIMEDOUT':
      return 'no answer'
    case 'ECONNRESET':
      return 'the connection was reset'
    default:
      return error.message
  }
}

function signIn(
  socket: Socket,
  session: OpenSession,
  gate: Gate,
  options: { ident: string; name: string; signal: AbortSignal; rekey?: RekeyLimits },
): Promise<Transport> {
  const { ident, name, signal, rekey } = options
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client()
    let settled = false
    let keysAgreed = false
    /** The key that the target proved in the first key exchange; later ones must be by the same. */
    let hostKey: Buffer | undefined
    let lastError: Error & { level?: string } = new Error('it closed the connection')

    const attempt = attempts(session.target.login, session.credentials)
    let judged = false
    /** Before anything is said to the target but its key: is it the one that is known? */
    async function judge(): Promise<void> {
      if (!hostKey) throw new Error('the key exchange showed no host key')
      const answer = await gate.hostKey({ session: session.id, key: hostKey })
      if (answer.result === 'refused') throw new TargetError(answer.message)
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
      // What went wrong in the protocol; that the socket then breaks is only what follows from it.
      if (lastError.level !== 'handshake') lastError = error
      // After the sign-in ssh2 would only close its own half.
      if (settled) socket.destroy()
      if (lastError.level === 'client-authentication') {
        fail(new TargetError(`${name} refused the credential of ${session.target.login}`))
      }
    })
    client.on('close', () =>
      fail(
        new TargetError(
          keysAgreed
            ? `${name} closed the connection during sign-in`
            : `${name} broke off the SSH handshake: ${negotiationFailure(lastError.message) ?? lastError.message}`,
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
      algorithms: targetAlgorithms(session.options.legacyAlgorithms, session.hostKeyTypes),
      keepaliveInterval: 0,
      readyTimeout: 0,
      // Answered at once, also at each new key exchange: while an answer waits, ssh2 lets messages overtake those
      // that it has queued. The gate judges the key below, when the target has proved that it holds it.
      hostVerifier: (key: Buffer) => {
        if (hostKey) return hostKey.equals(key)
        hostKey = Buffer.from(key)
        return true
      },
      authHandler: (methodsLeft: string[] | null, _partial, next) => {
        if (judged) {
          next(attempt(methodsLeft) as AnyAuthMethod)
          return
        }
        judge().then(
          () => {
            judged = true
            if (!settled) next(attempt(methodsLeft) as AnyAuthMethod)
          },
          (error: unknown) => fail(error instanceof TargetError ? error : new TargetError(INTERNAL)),
        )
      },
    })
    const transport = new Transport(client, socket, { strict: false, ...(rekey && { rekey }) })
  })
}

/** `false` ends the attempts; ssh2 takes it, its types do not say so. */
type NextMethod = (methodsLeft: string[] | null) => AnyAuthMethod | false

/** Each credential in turn, by the methods that the target still takes (RFC 4252 5.1). */
function attempts(username: string, credentials: readonly Credential[]): NextMethod {
  const queue: AnyAuthMethod[] = []
  for (const credential of credentials) {
    if (credential.type === 'ssh_key') {
      queue.push({
        type: 'publickey',
        username,
        key: credential.privateKey,
        ...(credential.passphrase !== undefined && { passphrase: credential.passphrase }),
      })
    } else {
      queue.push({ type: 'password', username, password: credential.password })
      queue.push({ type: 'keyboard-interactive', username, prompt: onePassword(credential.password) })
    }
  }
  return (methodsLeft) => {
    // The first question is `none`-like: methodsLeft is null until the target has answered something.
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (methodsLeft === null || methodsLeft.includes(next.type)) return next
    }
    return false
  }
}

type Prompt = Extract<AnyAuthMethod, { type: 'keyboard-interactive' }>['prompt']

/**
 * Answers the one question without echo that asks for the password, once; anything else the target asks
 * (a change of password, a code) gets no answer, so that the secret is not typed where it does not belong.
 */
function onePassword(password: string): Prompt {
  let given = false
  return (_name, _instructions, _language, prompts, finish) => {
    const [only] = prompts
    if (prompts.length === 1 && only?.echo === false && !given) {
      given = true
      finish([password])
    } else {
      finish(prompts.map(() => ''))
    }
  }
}
