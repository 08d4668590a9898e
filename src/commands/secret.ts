/**
 * `sallyport secret exec`: a secret for the lifetime of a program, in its environment or in a file. It is returned
 * when the program ends, also if a signal ends it; if this process is killed, the checkout ends by its policy.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { constants as system, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkIn, checkOut, type HandedOut, WISH_OPTIONS } from './checkout.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { plain } from './output.ts'
import { KEY_VARIABLE, REMOTE_OPTIONS, Remote, RemoteError } from './remote.ts'
import { TerminalKeys } from './terminal-keys.ts'

/** Signals for the program, which this process receives. */
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'] as const
/** Those of a terminal's keys reach the program from there. */
const FROM_KEYS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT']
const PASSWORD_VARIABLE = 'SALLYPORT_PASSWORD'
const LOGIN_VARIABLE = 'SALLYPORT_LOGIN'
/** Exit codes of shells for a program that is not there, or cannot be run. */
const NOT_FOUND = 127
const NOT_RUN = 126
const BY_SIGNAL = 128
/** Milliseconds before further attempts to return a secret, if the broker is away or has no room. */
const PAUSES_MS: readonly number[] = [1000, 2000]

/** Names of the variables that the program gets. */
interface Wanted {
  /** With the password. */
  env?: string
  /** With the path of a file that has the password. */
  file?: string
  /** With the path of a file that has the private key. */
  key?: string
}

export const secret: Command = {
  synopsis: [
    [
      'secret exec ACCOUNT@DOMAIN[@DEVICE] --url URL --user NAME [--env|--file|--ssh-key NAME] -- PROGRAM …',
      'run a program with the secret in the variable NAME (or in a file of that path), and return it',
    ],
  ],
  options: {
    ...REMOTE_OPTIONS,
    ...WISH_OPTIONS,
    env: { type: 'string' },
    file: { type: 'string' },
    'ssh-key': { type: 'string' },
  },
  async run(invocation) {
    const [action, account, program, ...args] = invocation.words
    // Without it, an option of the program's could be taken for one of ours.
    if (action !== 'exec' || !account || !program || invocation.beforeDashes !== 2)
      throw new UsageError('expected secret exec ACCOUNT@DOMAIN[@DEVICE] … -- PROGRAM [ARGUMENT …]')
    const wanted = wantedOf(invocation)
    const remote = new Remote(invocation)
    const signals = new PassedSignals()
    const wish =
      wanted.key !== undefined && invocation.options['key-format'] === undefined
        ? { key_format: 'openssh' }
        : {}
    let out: HandedOut
    try {
      out = await checkOut(remote, invocation, account, wish, signals.early)
    } catch (error) {
      if (signals.code === undefined) throw error
      return signals.code
    }
    const folder = new SecretFolder()
    try {
      const env = environmentOf(out, wanted, folder)
      return await signals.run(program, args, env)
    } finally {
      folder.remove()
      await giveBack(remote, account, out)
    }
  },
}

/** @throws UsageError */
function wantedOf(invocation: Invocation): Wanted {
  const [env, file, key] = ['env', 'file', 'ssh-key'].map((option) => {
    const name = textOption(invocation, option)
    if (name === undefined || /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return name
    throw new UsageError(`expected --${option} to be the name of a variable, got ${JSON.stringify(name)}`)
  })
  const names = [LOGIN_VARIABLE, env, file, key].filter((name) => name !== undefined)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) throw new UsageError(`expected one use of the variable ${twice}, got two`)
  if (env === undefined && file === undefined && key === undefined) return { env: PASSWORD_VARIABLE }
  return {
    ...(env !== undefined && { env }),
    ...(file !== undefined && { file }),
    ...(key !== undefined && { key }),
  }
}

/** Returns the program's environment, without the API key. @throws Error if the account has no such secret */
function environmentOf(out: HandedOut, wanted: Wanted, folder: SecretFolder): NodeJS.ProcessEnv {
  const { [KEY_VARIABLE]: _key, ...own } = process.env
  const environment: NodeJS.ProcessEnv = { ...own, [LOGIN_VARIABLE]: out.login }
  if (wanted.env !== undefined) {
    const password = passwordOf(out)
    if (password.includes('\0')) throw new Error('a variable cannot hold this password: use --file')
    environment[wanted.env] = password
  }
  if (wanted.file !== undefined) environment[wanted.file] = folder.write('password', passwordOf(out))
  if (wanted.key !== undefined) environment[wanted.key] = folder.write('key', out.private_key ?? '')
  return environment
}

function passwordOf({ password }: HandedOut): string {
  if (password !== undefined) return password
  throw new Error('the account has no password: use --ssh-key NAME for its key')
}

/** A folder that only this user can read, in memory where there is such a place. */
class SecretFolder {
  #path: string | undefined

  /** Returns the file's path. */
  write(name: string, content: string): string {
    this.#path ??= mkdtempSync(join(placeOf(), 'sallyport-secret-'))
    const path = join(this.#path, name)
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' })
    return path
  }

  /** Removes the folder, and says so if that is not possible: the secret has to be returned anyway. */
  remove(): void {
    if (this.#path === undefined) return
    try {
      if (existsSync(this.#path)) chmodSync(this.#path, 0o700)
      rmSync(this.#path, { recursive: true, force: true })
    } catch (error) {
      say(`${this.#path} has the secret, and could not be removed: ${(error as Error).message}`)
    }
  }
}

function placeOf(): string {
  const places = [process.env['XDG_RUNTIME_DIR'], '/dev/shm']
  return places.find((place) => place !== undefined && isWritable(place)) ?? tmpdir()
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Signals to this process, from its creation on: it ends by none of them before the secret is returned. */
class PassedSignals {
  #pass: ((signal: NodeJS.Signals) => void) | undefined
  #first: NodeJS.Signals | undefined
  readonly #abort = new AbortController()

  constructor() {
    for (const signal of SIGNALS) process.on(signal, () => this.#arrived(signal))
  }

  #arrived(signal: NodeJS.Signals): void {
    if (this.#pass) {
      this.#pass(signal)
      return
    }
    this.#first ??= signal
    this.#abort.abort()
  }

  /** Aborted by a signal that comes before the program runs. */
  get early(): AbortSignal {
    return this.#abort.signal
  }

  /** The exit code after a signal that came before the program ran. */
  get code(): number | undefined {
    return this.#first && codeOf(this.#first)
  }

  /** Runs a program and returns its exit code, or 128 and the number of the signal that ended it. */
  async run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
    const keys = await TerminalKeys.listening()
    try {
      return this.code ?? (await this.#run(program, args, env, keys))
    } finally {
      keys.stop()
    }
  }

  #run(
    program: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    keys: TerminalKeys,
  ): Promise<number> {
    return new Promise((resolve) => {
      const failed = (error: NodeJS.ErrnoException) => {
        say(`${program}: ${error.code === 'ENOENT' ? 'there is no such program' : error.message}`)
        resolve(error.code === 'ENOENT' ? NOT_FOUND : NOT_RUN)
      }
      let child: ChildProcess
      try {
        child = spawn(program, args, { env, stdio: 'inherit' })
      } catch (error) {
        failed(error as NodeJS.ErrnoException)
        return
      }
      this.#pass = (signal) => {
        if (!FROM_KEYS.includes(signal)) child.kill(signal)
        else void keys.wasKey().then((wasKey) => wasKey || child.kill(signal))
      }
      child.on('error', failed)
      child.on('exit', (code, signal) => resolve(code ?? (signal ? codeOf(signal) : 1)))
    })
  }
}

const codeOf = (signal: NodeJS.Signals): number => BY_SIGNAL + system.signals[signal]

/** Returns the secret. A failure does not change the program's exit code: the checkout ends in time anyway. */
async function giveBack(remote: Remote, account: string, { checkout_id, expires }: HandedOut): Promise<void> {
  for (const pause of [...PAUSES_MS, undefined]) {
    try {
      await checkIn(remote, account, checkout_id)
      return
    } catch (error) {
      const status = error instanceof RemoteError ? error.status : undefined
      if (status === 404) {
        // The answer to the first attempt may have been lost.
        if (pause === PAUSES_MS[0])
          say(`the checkout was over before the program was: it expired at ${expires}, or was taken back`)
        return
      }
      const isPassing = status === undefined || status === 503
      if (!isPassing || pause === undefined) {
        say(`the secret could not be returned, and expires at ${expires}: ${(error as Error).message}`)
        return
      }
      await sleep(pause)
    }
  }
}

function say(text: string): void {
  process.stderr.write(`sallyport: ${plain(text)}\n`)
}
