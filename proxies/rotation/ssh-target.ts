/** A target over SSH, for plugins: signs in with one secret at a host with a pinned key, and runs commands there. */
import { Buffer } from 'node:buffer'
import ssh2, { type AnyAuthMethod, type ClientChannel } from 'ssh2'
import type { SignIn } from '../../src/contract/change.ts'
import { dial } from '../net/dial.ts'
import { negotiationFailure, targetAlgorithms } from '../ssh/transport/target-algorithms.ts'
import { TargetError } from '../wording/errors.ts'
import { ChangeError, type PluginTarget, said, timedOut } from './plugin.ts'

/** Bytes of a command's output; more is a flood. */
const MAX_OUTPUT = 256 * 1024

export interface Ran {
  /** Undefined if the target named none: it was killed, or the connection ended. */
  code: number | undefined
  output: string
}

export interface RunOptions {
  /** Sent at once, and then the end of input. */
  input?: string
  /** Answers what a terminal shows: called with all of it that is new since the last answer, cut at nothing. */
  onText?: (text: string, channel: Talk) => void
}

/** The input of a command that has a terminal. */
export interface Talk {
  write(text: string): void
  /** Ends the command for this reason. */
  fail(error: ChangeError): void
}

export class SshTarget {
  readonly #client: ssh2.Client
  readonly #signal: AbortSignal
  #ended: ChangeError | undefined

  private constructor(client: ssh2.Client, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
  }

  /**
   * Signs in. @throws ChangeError: `refused_sign_in` only if the target has judged the secret and refused it
   */
  static async open(target: PluginTarget, as: SignIn, signal: AbortSignal): Promise<SshTarget> {
    const { judgeHostKey } = target
    const { hostKeys = [], hostKeyPolicy } = target.trust
    if (hostKeys.length === 0 && !judgeHostKey)
      throw new ChangeError('untrusted', 'no host key of the target is pinned')
    const name = `${target.host}:${target.port}`
    const socket = await dial(target.host, target.port, { name, signal }).catch((error: unknown) => {
      if (signal.aborted) throw timedOut()
      if (error instanceof TargetError) throw new ChangeError('unreachable', error.message)
      throw error
    })
    const client = new ssh2.Client()
    const opened = new SshTarget(client, signal)
    const attempts = new Attempts(as)
    let refusal: string | undefined
    const judge =
      judgeHostKey ??
      (async (key: Buffer) =>
        hostKeys.some((known) => Buffer.from(known, 'base64').equals(key))
          ? undefined
          : 'the target showed another host key than the pinned ones')
    let failure: Error & { level?: string } = new Error('the target closed the connection')
    const end = () => {
      socket.destroy()
      client.destroy()
    }
    signal.addEventListener('abort', end, { once: true })
    try {
      await new Promise<void>((resolve, reject) => {
        client.once('ready', resolve)
        client.on('error', (error) => {
          if (failure.level !== 'client-authentication') failure = error
          end()
        })
        client.once('close', () => reject(failure))
        client.connect({
          sock: socket,
          username: as.login,
          algorithms: targetAlgorithms([], hostKeys.map(typeOf), hostKeyPolicy === 'ca'),
          keepaliveInterval: 0,
          readyTimeout: 0,
          hostVerifier: (key: Buffer, verified: (isTrusted: boolean) => void) => {
            const judged = (why: string | undefined) => {
              refusal = why
              verified(why === undefined)
            }
            judge(key).then(judged, () => judged('its host key could not be judged'))
          },
          authHandler: (methodsLeft: string[] | null, isPartial, next) =>
            next(attempts.next(methodsLeft, isPartial) as AnyAuthMethod),
        })
      })
      if (attempts.isUnasked)
        throw new ChangeError('unclear', 'the target lets its users in without asking for a secret')
    } catch (error) {
      end()
      signal.removeEventListener('abort', end)
      if (signal.aborted) throw timedOut()
      if (error instanceof ChangeError) throw error
      if (refusal !== undefined) throw new ChangeError('untrusted', refusal)
      if (failure.level === 'client-authentication') throw attempts.refusal(as.login)
      const { message } = failure
      throw new ChangeError('unreachable', negotiationFailure(message) ?? said(message))
    }
    client.once('close', () => signal.removeEventListener('abort', end))
    return opened
  }

  /** Runs a command, with a terminal if it is answered. @throws ChangeError */
  run(command: string, { input, onText }: RunOptions = {}): Promise<Ran> {
    return new Promise((resolve, reject) => {
      const fail = (error: ChangeError) => {
        this.#ended ??= error
        reject(error)
        this.close()
      }
      this.#client.once('close', () =>
        reject(
          this.#signal.aborted
            ? timedOut()
            : (this.#ended ?? new ChangeError('unclear', 'the target closed the connection')),
        ),
      )
      const pty = onText ? { term: 'dumb', cols: 200, rows: 24 } : false
      this.#client.exec(command, { pty }, (error, channel) => {
        if (error) {
          fail(new ChangeError('not_permitted', `the target runs no command: ${said(error.message)}`))
          return
        }
        this.#read(channel, resolve, fail, onText)
        if (input !== undefined) channel.end(input)
      })
    })
  }

  #read(
    channel: ClientChannel,
    resolve: (ran: Ran) => void,
    fail: (error: ChangeError) => void,
    onText: RunOptions['onText'],
  ): void {
    let output = ''
    let fresh = ''
    let code: number | undefined
    const take = (piece: Buffer) => {
      const text = piece.toString('utf8')
      output += text
      if (output.length > MAX_OUTPUT) {
        fail(new ChangeError('unexpected_answer', 'the target floods the bastion with output'))
        return
      }
      if (!onText) return
      fresh += text
      onText(fresh, {
        write: (answer) => {
          fresh = ''
          channel.write(answer)
        },
        fail,
      })
    }
    channel.on('data', take)
    channel.stderr.on('data', take)
    channel.on('exit', (exit: number | null) => {
      code = exit ?? undefined
    })
    channel.on('error', () => undefined)
    channel.on('close', () => resolve({ code, output }))
  }

  /** Opens an interactive shell, for devices that have no commands to run. @throws ChangeError */
  shell(): Promise<ClientChannel> {
    return new Promise((resolve, reject) => {
      this.#client.shell({ term: 'dumb', cols: 200, rows: 24 }, (error, channel) => {
        if (error)
          reject(new ChangeError('not_permitted', `the target opens no shell: ${said(error.message)}`))
        else resolve(channel)
      })
    })
  }

  close(): void {
    this.#client.destroy()
  }
}

/** Returns the type of a key's blob (RFC 4253 6.6). */
function typeOf(blob: string): string {
  const bytes = Buffer.from(blob, 'base64')
  return bytes.length < 4 ? '' : bytes.toString('latin1', 4, 4 + Math.min(bytes.readUInt32BE(0), 64))
}

/** The attempts of one sign-in: `none`, to learn the methods, then the secret by each that can carry it. */
class Attempts {
  readonly #as: SignIn
  #left: AnyAuthMethod[] | undefined
  #last = ''
  #isJudged = false
  #asksMore = false
  #isPartial = false

  constructor(as: SignIn) {
    this.#as = as
  }

  next(methods: readonly string[] | null, isPartial: boolean): AnyAuthMethod | false {
    const { login: username, secret } = this.#as
    if (this.#left === undefined) {
      this.#left =
        secret.type === 'password'
          ? [
              { type: 'password', username, password: secret.password },
              { type: 'keyboard-interactive', username, prompt: this.#prompt(secret.password) },
            ]
          : [
              {
                type: 'publickey',
                username,
                key: secret.privateKey,
                ...(secret.passphrase !== undefined && { passphrase: secret.passphrase }),
              },
            ]
      this.#last = 'none'
      return { type: 'none', username }
    }
    if (this.#last !== 'none') this.#isJudged = true
    if (isPartial) {
      this.#isPartial = true
      return false
    }
    for (;;) {
      const next = this.#left.shift()
      if (!next) return false
      if (methods && !methods.includes(next.type)) continue
      // A password is not sent twice: targets lock accounts.
      if (next.type === 'keyboard-interactive' && this.#isJudged) continue
      this.#last = next.type
      return next
    }
  }

  /** Whether no secret was asked for. */
  get isUnasked(): boolean {
    return this.#last === 'none'
  }

  refusal(login: string): ChangeError {
    if (this.#isPartial || this.#asksMore)
      return new ChangeError('unclear', `the target asks ${login} for more than this secret`)
    if (this.#isJudged) return new ChangeError('refused_sign_in', `the target refused the secret of ${login}`)
    return new ChangeError('unsupported', `the target lets nobody sign in by a ${this.#as.secret.type}`)
  }

  #prompt(password: string): Extract<AnyAuthMethod, { type: 'keyboard-interactive' }>['prompt'] {
    let isGiven = false
    return (_name, _instructions, _language, prompts, finish) => {
      const [only] = prompts
      if (prompts.length === 1 && only?.echo === false && !isGiven) {
        isGiven = true
        finish([password])
      } else {
        if (prompts.length > 0) this.#asksMore = true
        finish(prompts.map(() => ''))
      }
    }
  }
}
