/**
 * Users' passwords: argon2id (RFC 9106), with limits on how many hashes are computed and how many wait.
 * Checks are shared among the clients' networks, and are separate from setting passwords: an administrator
 * can set one during a guessing attack, and importing a table of users delays no sign-in.
 */
import { Buffer } from 'node:buffer'
import { argon2, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Secret } from '../model/secret.ts'
import { FairTurns } from './fair-turns.ts'
import { PasswordPolicy } from './policy.ts'

const derive = promisify(argon2)

/**
 * One of the choices for argon2id that OWASP calls equal: 19 MiB, two passes, one lane. Fresh memory costs more than
 * the passes over it, so the others cost more on a server than their strength says. RFC 9106's first choice needs
 * 2 GiB per hash, which attackers could make the broker spend.
 */
export const MEMORY_KIB = 19_456
export const PASSES = 2
export const LANES = 1
const SALT_BYTES = 16
const TAG_BYTES = 32

export const MAX_PASSWORD_BYTES = 1024
/** Checks at the same time: half of libuv's thread pool, so that files and names still get through. */
export const MAX_CONCURRENT = 2
/** Hashes for new passwords at the same time. */
const MAX_SETTING = 1
/** Limit of checks that wait: the work of two threads in about two seconds. */
export const MAX_WAITING = 64
/** Number of durations that are kept, and the greatest age of the last one to be used as an estimate. */
const MAX_TIMES = 16
const FRESH_MS = 10_000

interface Parameters {
  memory: number
  passes: number
  lanes: number
}

interface Hash extends Parameters {
  salt: Buffer
  tag: Buffer
}

export class PasswordHasher {
  /** Rules for new passwords. */
  readonly policy: PasswordPolicy
  readonly #own: Parameters
  readonly #checking: FairTurns
  readonly #setting: FairTurns
  /** Turns of sign-ins whose password is not checked. */
  readonly #pretending: FairTurns
  /** A hash with this hasher's parameters that no password matches. */
  readonly #nobody: string
  /** Durations of the last hashes, in milliseconds. */
  readonly #times: number[] = []
  #lastTime = Number.NEGATIVE_INFINITY

  /** The parameters are for tests: hashes made with other than the standard ones need a rehash elsewhere. */
  constructor(
    options: { memory?: number; passes?: number; maxWaiting?: number; policy?: PasswordPolicy } = {},
  ) {
    const { maxWaiting = MAX_WAITING } = options
    this.policy = options.policy ?? new PasswordPolicy()
    this.#own = { memory: options.memory ?? MEMORY_KIB, passes: options.passes ?? PASSES, lanes: LANES }
    this.#checking = new FairTurns(MAX_CONCURRENT, maxWaiting)
    this.#setting = new FairTurns(MAX_SETTING, maxWaiting)
    this.#pretending = new FairTurns(MAX_CONCURRENT, maxWaiting)
    this.#nobody = format({ ...this.#own, salt: randomBytes(SALT_BYTES), tag: randomBytes(TAG_BYTES) })
  }

  /**
   * Returns a new hash in PHC string form, which contains its parameters.
   * @throws BusyError; RangeError for an empty password or one longer than `MAX_PASSWORD_BYTES`
   */
  async hash(password: Secret): Promise<string> {
    if (password.length === 0 || MAX_PASSWORD_BYTES < password.length) {
      throw new RangeError(`expected a password of 1 to ${MAX_PASSWORD_BYTES} bytes`)
    }
    const salt = randomBytes(SALT_BYTES)
    const tag = await this.#setting.run('', () => compute(password, this.#own, salt, TAG_BYTES))
    return format({ ...this.#own, salt, tag })
  }

  /**
   * Whether the password matches the hash. Takes the same time without a hash, for a hash with other
   * parameters, and for a password that no hash can have. `source`: address of the client.
   * @throws BusyError
   */
  async verify(hash: string | undefined, password: Secret, source: string): Promise<boolean> {
    const stored = (hash === undefined ? undefined : parse(hash)) ?? parse(this.#nobody)!
    const tag = await this.#checking.run(source, async () => {
      const begin = performance.now()
      const computed = await compute(password, stored, stored.salt, stored.tag.length)
      if (this.#isOwn(stored)) this.#note(performance.now() - begin)
      else await this.#asLong(begin)
      return computed
    })
    const equal = timingSafeEqual(tag, stored.tag)
    return equal && hash !== undefined && password.length !== 0 && password.length <= MAX_PASSWORD_BYTES
  }

  /**
   * Takes as long as `verify` would at present, without using one of its turns: for sign-ins refused whatever
   * they prove, so that neither answer nor time reveals it.
   * @throws BusyError
   */
  async pretend(source: string): Promise<void> {
    // The duration varies with the machine's load.
    if (FRESH_MS < performance.now() - this.#lastTime) {
      await this.verify(undefined, Secret.of('nobody'), source)
    } else await this.#pretending.run(source, () => sleep(this.#time()))
  }

  /** Returns true if the hash has other parameters than today's: renew it at the next sign-in. */
  needsRehash(hash: string): boolean {
    const stored = parse(hash)
    return stored === undefined || !this.#isOwn(stored)
  }

  #isOwn({ memory, passes, lanes }: Parameters): boolean {
    return memory === this.#own.memory && passes === this.#own.passes && lanes === this.#own.lanes
  }

  /** Waits until a hash with today's parameters, started at `begin`, would be done. */
  async #asLong(begin: number): Promise<void> {
    if (this.#times.length === 0) {
      const before = performance.now()
      await compute(Secret.of('nobody'), this.#own, randomBytes(SALT_BYTES), TAG_BYTES)
      this.#note(performance.now() - before)
    }
    await sleep(Math.max(0, begin + this.#time() - performance.now()))
  }

  #note(time: number): void {
    this.#times.push(time)
    if (MAX_TIMES < this.#times.length) this.#times.shift()
    this.#lastTime = performance.now()
  }

  /** Picks one of the last durations: a mean would stand out by its regularity. */
  #time(): number {
    return this.#times.length === 0 ? 0 : this.#times[randomInt(this.#times.length)]!
  }
}

async function compute(
  password: Secret,
  parameters: Parameters,
  nonce: Buffer,
  tagLength: number,
): Promise<Buffer> {
  // The same password however a keyboard composes its accents (RFC 8265 4.2.2).
  const bytes = password.reveal().subarray(0, MAX_PASSWORD_BYTES)
  const message = Buffer.from(bytes.toString('utf8').normalize('NFC'))
  const { memory, passes, lanes } = parameters
  try {
    return await derive('argon2id', { message, nonce, parallelism: lanes, tagLength, memory, passes })
  } finally {
    message.fill(0)
  }
}

const PHC =
  /^\$argon2id\$v=19\$m=([0-9]{1,8}),t=([0-9]{1,4}),p=([0-9]{1,3})\$([A-Za-z0-9+/]{11,128})\$([A-Za-z0-9+/]{22,128})$/

function parse(hash: string): Hash | undefined {
  const [, memory, passes, lanes, salt = '', tag = ''] = PHC.exec(hash) ?? []
  if (memory === undefined) return undefined
  return {
    memory: Number(memory),
    passes: Number(passes),
    lanes: Number(lanes),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}

function format({ memory, passes, lanes, salt, tag }: Hash): string {
  const text = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${lanes}$${text(salt)}$${text(tag)}`
}
