/** `sallyport checkout` and `sallyport checkin`: a secret by hand, or for a script. */
import { readFileSync } from 'node:fs'
import type { ParseArgsOptionsConfig } from 'node:util'
import { answerTo, askApproval, secondsOption } from './approvals.ts'
import { type Command, type Invocation, onlyWord, textOption, UsageError } from './command.ts'
import { forStream } from './output.ts'
import { notOfApi, REMOTE_OPTIONS, Remote, RemoteError } from './remote.ts'

export const WISH_OPTIONS = {
  duration: { type: 'string' },
  comment: { type: 'string' },
  ticket: { type: 'string' },
  'key-format': { type: 'string' },
} as const satisfies ParseArgsOptionsConfig

/** The answer to a checkout. */
export interface HandedOut {
  login: string
  password?: string
  private_key?: string
  passphrase?: string
  checkout_id: string
  expires: string
}

/** Checks the secret of an account out. `wish`: more fields of the request. @throws RemoteError, Error, UsageError */
export async function checkOut(
  remote: Remote,
  invocation: Invocation,
  account: string,
  wish: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<HandedOut> {
  const [comment, ticket, format] = ['comment', 'ticket', 'key-format'].map((one) =>
    textOption(invocation, one),
  )
  const duration = secondsOption(invocation, 'duration')
  const body = {
    ...(duration !== undefined && { duration }),
    ...(comment !== undefined && { comment }),
    ...(ticket !== undefined && { ticket }),
    ...(format !== undefined && { key_format: format }),
    ...wish,
  }
  const out = await remote.post(pathOf(account, 'checkout'), body, signal)
  if (!isHandedOut(out)) throw notOfApi(200)
  return out
}

const REQUIRED = ['login', 'checkout_id', 'expires'] as const
const SECRETS = ['password', 'private_key', 'passphrase'] as const

function isHandedOut(answer: unknown): answer is HandedOut {
  if (typeof answer !== 'object' || answer === null) return false
  const fields = answer as Record<string, unknown>
  return (
    REQUIRED.every((name) => typeof fields[name] === 'string') &&
    SECRETS.every((name) => fields[name] === undefined || typeof fields[name] === 'string')
  )
}

/** @throws RemoteError with status 404 if it has ended or expired */
export async function checkIn(remote: Remote, account: string, id: string): Promise<void> {
  const answer = await remote.post(pathOf(account, 'checkin'), { checkout_id: id })
  if (answer !== undefined) throw notOfApi(200)
}

const pathOf = (account: string, action: string) => `/accounts/${encodeURIComponent(account)}/${action}`

export const checkout: Command = {
  synopsis: [
    [
      'checkout ACCOUNT@DOMAIN[@DEVICE] --url URL --user NAME',
      'print the login, the password or key of an account, and until when (--json: as an object); --wait asks for an approval if it needs one',
    ],
  ],
  options: {
    ...REMOTE_OPTIONS,
    ...WISH_OPTIONS,
    'passphrase-file': { type: 'string' },
    wait: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  async run(invocation) {
    const account = onlyWord(invocation.words, 'checkout ACCOUNT@DOMAIN[@DEVICE]')
    const file = textOption(invocation, 'passphrase-file')
    const wish = file === undefined ? {} : { passphrase: readFileSync(file, 'utf8').replace(/\r?\n$/, '') }
    const remote = new Remote(invocation)
    const out = await waitingFor(remote, invocation, account, () =>
      checkOut(remote, invocation, account, wish),
    )
    const text = invocation.options['json'] === true ? JSON.stringify(out) : linesOf(out)
    process.stdout.write(`${forStream(text, process.stdout)}\n`)
    return 0
  },
}

/** Does the work; if it needs an approval, and `--wait` is given, asks for one, waits, and does it then. */
async function waitingFor<T>(
  remote: Remote,
  invocation: Invocation,
  account: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const waits = error instanceof RemoteError && error.code === 'approval_required'
    if (!waits || invocation.options['wait'] !== true) throw error
  }
  const [comment, ticket] = ['comment', 'ticket'].map((one) => textOption(invocation, one))
  const duration = secondsOption(invocation, 'duration')
  const asked = await askApproval(remote, {
    account,
    ...(comment !== undefined && { comment }),
    ...(ticket !== undefined && { ticket }),
    ...(duration !== undefined && { duration }),
  })
  process.stderr.write(`waiting for an answer to the request ${asked.id}, until ${asked.timeout}\n`)
  const interrupted = new AbortController()
  const stop = () => interrupted.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    const answered = await answerTo(remote, asked.id, interrupted.signal)
    if (answered.status !== 'accepted') {
      const why = answered.ended_comment ? `: ${answered.ended_comment}` : ''
      throw new Error(`the request ${asked.id} was not accepted, but ${answered.status}${why}`)
    }
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
  return await work()
}

const linesOf = (out: HandedOut): string =>
  Object.entries(out)
    .map(([field, value]) =>
      field === 'private_key' ? `${field}:\n${value.trimEnd()}` : `${field}: ${value}`,
    )
    .join('\n')

export const checkin: Command = {
  synopsis: [
    [
      'checkin ACCOUNT@DOMAIN[@DEVICE] CHECKOUT_ID --url URL --user NAME',
      'return a secret that is checked out',
    ],
  ],
  options: REMOTE_OPTIONS,
  async run(invocation) {
    const [account, id, ...more] = invocation.words
    if (!account || !id || more.length > 0)
      throw new UsageError('expected checkin ACCOUNT@DOMAIN[@DEVICE] CHECKOUT_ID')
    await checkIn(new Remote(invocation), account, id)
    process.stdout.write('returned\n')
    return 0
  },
}
