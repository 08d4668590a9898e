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
import { BACK_ALGORITHMS } from './algorithms.ts'
import { CONNECT_TIMEOUT_MS, TARGET_SIGN_IN_TIMEOUT_MS } from './limits.ts'
import { Transport } from './transport.ts'

/** The message is for the user: it names the target as the user does and never the credential. */
export class TargetError extends Error {
  override name = 'TargetError'
}

/** Connects and signs in. Throws TargetError. `signal` gives up; its reason is a text for the user. */
export async function connectTarget(
  session: OpenSession,
  gate: Gate,
  ident: string,
  signal: AbortSignal,
): Promise<Transport> {
  const name = `${session.target.device} (${session.target.host}:${session.target.port})`
  const socket = await dial(session.target.host, session.target.port, name, signal)
  return await signIn(socket, session, gate, ident, name, signal)
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
  ident: string,
  name: string,
  signal: AbortSignal,
): Promise<Transport> {
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client()
    let settled = false
    let verdict: TargetError | undefined
    let keysAgreed = false
    let acceptedKey: Buffer | undefined
    let lastError: Error & { level?: string } = new Error('it closed the connection')

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
      lastError = error
      if (lastError.level === 'client-authentication') {
        fail(new TargetError(`${name} refused the credential of ${session.target.login}`))
      }
    })
    client.on('close', () =>
      fail(
        verdict ??
          new TargetError(
            keysAgreed
              ? `${name} closed the connection during sign-in`
              : `${name} broke off the SSH handshake: ${lastError.message}`,
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
      algorithms: BACK_ALGORITHMS,
      keepaliveInterval: 0,
      readyTimeout: 0,
      // ssh2 asks again at each new key exchange. The answer has to be there at once then: while it waits, ssh2
      // lets messages overtake those that it has queued.
      hostVerifier: (key: Buffer, verify: (accepted: boolean) => void) => {
        if (acceptedKey) {
          verify(acceptedKey.equals(key))
          return
        }
        gate.hostKey({ session: session.id, key }).then(
          (answer) => {
            if (answer.result === 'refused') verdict = new TargetError(answer.message)
            else acceptedKey = Buffer.from(key)
            verify(answer.result === 'accepted')
          },
          () => verify(false),
        )
      },
      authHandler: attempts(session.target.login, session.credentials),
    })
    const transport = new Transport(client, socket, { strict: false })
  })
}

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
