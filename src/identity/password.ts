/** Passwords of users: argon2id (RFC 9106), with a bound on how many are computed and how many wait. */
import { Buffer } from 'node:buffer'
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import type { Secret } from '../model/secret.ts'

const derive = promisify(argon2)

/** OWASP's second choice for argon2id: 19 MiB, two passes, one lane; some 30 ms on a server's core. */
export const MEMORY_KIB = 19_456
export const PASSES = 2
export const LANES = 1
const SALT_BYTES = 16
const TAG_BYTES = 32

export const MAX_PASSWORD_BYTES = 1024
/** Computed at the same time: half of libuv's thread pool, so that files and names still get through. */
export const MAX_CONCURRENT = 2
/** Waiting for their turn: what two threads do in about a second. */
export const MAX_WAITING = 64

/** More people sign in at this moment than the broker computes hashes for: to be tried again. */
export class BusyError extends Error {
  override readonly name = 'BusyError'

  constructor() {
    super('too many sign-ins at this moment: try again')
  }
}

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
  readonly #own: Parameters
  readonly #waiting: (() => void)[] = []
  readonly #maxWaiting: number
  /** Looks like a hash of this hasher, and no password has it. */
  readonly #nobody: string
  #running = 0

  /** The parameters are for tests: hashes with others than the standard's need a rehash elsewhere. */
  constructor(options: { memory?: number; passes?: number; maxWaiting?: number } = {}) {
    this.#own = { memory: options.memory ?? MEMORY_KIB, passes: options.passes ?? PASSES, lanes: LANES }
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING
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
    const tag = await this.#inTurn(() => compute(password, this.#own, salt, TAG_BYTES))
    return format({ ...this.#own, salt, tag })
  }

  /**
   * Whether the password is the one of the hash. Without a hash, or with a password that no hash can be of, it
   * costs the same and the answer is no.
   * @throws BusyError
   */
  async verify(hash: string | undefined, password: Secret): Promise<boolean> {
    const stored = (hash === undefined ? undefined : parse(hash)) ?? parse(this.#nobody)!
    const tag = await this.#inTurn(() => compute(password, stored, stored.salt, stored.tag.length))
    const equal = timingSafeEqual(tag, stored.tag)
    return equal && hash !== undefined && password.length !== 0 && password.length <= MAX_PASSWORD_BYTES
  }

  /** True when the hash was made with other parameters than today's: to be renewed at the next sign-in. */
  needsRehash(hash: string): boolean {
    const stored = parse(hash)
    const { memory, passes, lanes } = this.#own
    return stored?.memory !== memory || stored.passes !== passes || stored.lanes !== lanes
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < MAX_CONCURRENT) this.#running++
    else {
      if (this.#maxWaiting <= this.#waiting.length) throw new BusyError()
      // whoever ends hands its place over, so that nobody can step in between
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
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
