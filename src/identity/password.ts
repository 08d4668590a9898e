/**
 * Passwords of users: argon2id (RFC 9106), with a bound on how many are computed and how many wait. Checking them is
 * shared among the networks that ask, and apart from setting them: an administrator can do that while everybody is
 * guessing, and a table of users being imported holds up nobody's sign-in.
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
 * OWASP's first choice for argon2id: 46 MiB, one pass, one lane; some 50 ms on a server's core. RFC 9106's own first
 * choice takes 2 GiB for each hash, which would be the attacker's to have us spend.
 */
export const MEMORY_KIB = 47_104
export const PASSES = 1
export const LANES = 1
const SALT_BYTES = 16
const TAG_BYTES = 32

export const MAX_PASSWORD_BYTES = 1024
/** Checked at the same time: half of libuv's thread pool, so that files and names still get through. */
export const MAX_CONCURRENT = 2
/** Set at the same time. */
const MAX_SETTING = 1
/** Waiting for their turn: what two threads do in about two seconds. */
export const MAX_WAITING = 64
/** Times of hashes that are remembered, and how old the last may be to tell how long one takes at present. */
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
  /** What a password has to be that is set. */
  readonly policy: PasswordPolicy
  readonly #own: Parameters
  readonly #checking: FairTurns
  readonly #setting: FairTurns
  /** The turns of those whose password is not looked at. */
  readonly #pretending: FairTurns
  /** Looks like a hash of this hasher, and no password has it. */
  readonly #nobody: string
  /** What the last hashes took, in milliseconds. */
  readonly #times: number[] = []
  #lastTime = Number.NEGATIVE_INFINITY

  /** The parameters are for tests: hashes with others than the standard's need a rehash elsewhere. */
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
   * A new hash in PHC's string form, its parameters in it.
   * @throws BusyError; RangeError for an empty password or one of more than `MAX_PASSWORD_BYTES`
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
   * Whether the password is the one of the hash. Without a hash, with one that was made with other parameters, or
   * with a password that no hash can be of, it takes as long. `source`: the address that asks.
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
   * Takes as long as `verify` would at present, and nobody's turn at it: for those who are refused whatever they
   * show, so that neither answer nor time tells it.
   * @throws BusyError
   */
  async pretend(source: string): Promise<void> {
    // how long a hash takes changes with what else the machine does
    if (FRESH_MS < performance.now() - this.#lastTime) {
      await this.verify(undefined, Secret.of('nobody'), source)
    } else await this.#pretending.run(source, () => sleep(this.#time()))
  }

  /** True when the hash was made with other parameters than today's: to be renewed at the next sign-in. */
  needsRehash(hash: string): boolean {
    const stored = parse(hash)
    return stored === undefined || !this.#isOwn(stored)
  }

  #isOwn({ memory, passes, lanes }: Parameters): boolean {
    return memory === this.#own.memory && passes === this.#own.passes && lanes === this.#own.lanes
  }

  /** Waits until a hash of today's parameters that was begun at `begin` would be there. */
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

  /** One of the last times: a mean would be told from the real ones by its even pace. */
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
  // one password, however a keyboard composes its accents (RFC 8265 4.2.2)
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
