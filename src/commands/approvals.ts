/** `sallyport approvals`: ask for approvals, see them, and answer them, by a broker's API. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseDuration } from '../config/units.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { forStream } from './output.ts'
import { notOfApi, REMOTE_OPTIONS, Remote } from './remote.ts'

/** An approval as the API shows it. */
export interface ShownApproval {
  id: string
  kind: string
  user: string
  target: string
  status: string
  creation: string
  timeout: string
  begin: string | null
  end: string | null
  duration: number
  comment: string
  ticket: string
  quorum: number
  answers: { approver: string; approved: boolean; comment: string; date: string }[]
  ended_by: string | null
  ended_comment: string | null
  sessions: string[]
  checkouts: string[]
}

const TEXTS = ['id', 'kind', 'user', 'target', 'status', 'timeout', 'comment', 'ticket'] as const
const LISTS = ['answers', 'sessions', 'checkouts'] as const

/** Milliseconds between two looks at a request: the first, and the longest. */
const FIRST_LOOK_MS = 1_000
const LAST_LOOK_MS = 5_000
const MAX_LISTED = 1_000

const isShown = (one: unknown): one is ShownApproval => {
  if (typeof one !== 'object' || one === null) return false
  const fields = one as Record<string, unknown>
  return (
    TEXTS.every((name) => typeof fields[name] === 'string') &&
    LISTS.every((name) => Array.isArray(fields[name]))
  )
}

/** @throws RemoteError for an answer that is no approval */
function shown(answer: unknown): ShownApproval {
  if (!isShown(answer)) throw notOfApi(200)
  return answer
}

const pathOf = (id: string, action = '') => `/approvals/${encodeURIComponent(id)}${action}`

/** Asks for an approval. */
export async function askApproval(remote: Remote, body: object): Promise<ShownApproval> {
  return shown(await remote.post('/approvals', body))
}

/**
 * Waits until a request is answered or over, and returns it. Looks less and less often. When `signal` aborts, the
 * request is cancelled.
 */
export async function answerTo(remote: Remote, id: string, signal?: AbortSignal): Promise<ShownApproval> {
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 1.5, LAST_LOOK_MS)) {
    const found = shown(await remote.get(pathOf(id)))
    if (found.status !== 'pending') return found
    await sleep(pause, undefined, signal ? { signal } : {}).catch(() => undefined)
    if (signal?.aborted) {
      await remote.post(pathOf(id, '/cancel'), {})
      throw new Error('the request was cancelled')
    }
  }
}

/** Returns a text option in seconds. @throws UsageError */
export function secondsOption(invocation: Invocation, name: string): number | undefined {
  const text = textOption(invocation, name)
  if (text === undefined) return undefined
  try {
    return Math.ceil(parseDuration(text) / 1000)
  } catch (error) {
    throw new UsageError(`--${name}: ${(error as Error).message}`)
  }
}

function print(invocation: Invocation, answer: ShownApproval | ShownApproval[], lines: string[]): void {
  const text = invocation.options['json'] === true ? JSON.stringify(answer) : lines.join('\n')
  if (text !== '') process.stdout.write(`${forStream(text, process.stdout)}\n`)
}

const oneLine = (text: string) => text.replaceAll('\n', ' / ')

/** One line for a list: id, state, and what is asked. */
function lineOf(one: ShownApproval): string {
  const agreed = one.answers.filter(({ approved }) => approved).length
  const about = one.kind === 'session' ? one.target : `${one.kind} ${one.target}`
  const reason = [one.ticket, oneLine(one.comment)].filter((text) => text !== '').join(' ')
  const waits = one.status === 'pending' ? ` ${agreed}/${one.quorum} until ${one.timeout}` : ''
  return `${one.id} ${one.status}${waits} ${one.user} ${about}${reason === '' ? '' : `: ${reason}`}`
}

function linesOf(one: ShownApproval): string[] {
  const { answers, sessions, checkouts, ended_by: by, ended_comment: why } = one
  return [
    `id: ${one.id}`,
    `status: ${one.status}`,
    `user: ${one.user}`,
    `kind: ${one.kind}`,
    `target: ${one.target}`,
    `begin: ${one.begin ?? 'when it is accepted'}`,
    `end: ${one.end ?? `${one.duration} s later`}`,
    `answer until: ${one.timeout}`,
    `comment: ${oneLine(one.comment)}`,
    `ticket: ${one.ticket}`,
    `quorum: ${one.quorum}`,
    ...answers.map(({ approver, approved, comment, date }) =>
      `answer: ${approver} ${approved ? 'accepted' : 'rejected'} ${date} ${oneLine(comment)}`.trimEnd(),
    ),
    ...(by === null || by === '' ? [] : [`ended by: ${by} ${oneLine(why ?? '')}`.trimEnd()]),
    ...(sessions.length > 0 ? [`sessions: ${sessions.join(' ')}`] : []),
    ...(checkouts.length > 0 ? [`checkouts: ${checkouts.join(' ')}`] : []),
  ]
}

async function listed(remote: Remote, invocation: Invocation): Promise<ShownApproval[]> {
  const status = textOption(invocation, 'status')
  const query = new URLSearchParams({ limit: String(MAX_LISTED), ...(status !== undefined && { status }) })
  const answer = await remote.get('/approvals', query)
  if (!Array.isArray(answer)) throw notOfApi(200)
  return answer.map(shown)
}

async function list(remote: Remote, invocation: Invocation): Promise<void> {
  const first = await listed(remote, invocation)
  print(invocation, first, first.map(lineOf))
  if (invocation.options['follow'] !== true) return
  const known = new Map(first.map((one) => [one.id, lineOf(one)]))
  for (;;) {
    await sleep(LAST_LOOK_MS)
    // The oldest first, as they come.
    for (const one of (await listed(remote, invocation)).reverse()) {
      if (known.get(one.id) === lineOf(one)) continue
      known.set(one.id, lineOf(one))
      print(invocation, one, [lineOf(one)])
    }
  }
}

const FORM = 'approvals list | show ID | accept ID | reject ID | cancel ID | request TARGET'

export const approvals: Command = {
  synopsis: [
    [
      'approvals list [--status STATUS] [--follow]',
      'list requests for approval: your own, and those to answer',
    ],
    ['approvals show ID', 'show one, with its answers and what came of it'],
    [
      'approvals accept|reject|cancel ID [--comment TEXT]',
      'answer a request; cancel your own, or revoke one',
    ],
    [
      'approvals request TARGET [--duration TIME] [--begin TIME] [--wait]',
      'ask for a session, or with ACCOUNT@DOMAIN for a secret; all with --url URL --user NAME, --json',
    ],
  ],
  options: {
    ...REMOTE_OPTIONS,
    status: { type: 'string' },
    follow: { type: 'boolean' },
    comment: { type: 'string' },
    ticket: { type: 'string' },
    duration: { type: 'string' },
    begin: { type: 'string' },
    wait: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  async run(invocation) {
    const [action, word, ...more] = invocation.words
    if (more.length > 0 || action === undefined || (action === 'list') !== (word === undefined))
      throw new UsageError(`expected ${FORM}`)
    const comment = textOption(invocation, 'comment')
    const duration = secondsOption(invocation, 'duration')
    switch (action) {
      case 'list':
        await list(new Remote(invocation), invocation)
        return 0
      case 'show': {
        const found = shown(await new Remote(invocation).get(pathOf(word ?? '')))
        print(invocation, found, linesOf(found))
        return 0
      }
      case 'accept':
      case 'reject':
      case 'cancel': {
        const body = {
          ...(comment !== undefined && { comment }),
          ...(action === 'accept' && duration !== undefined && { duration }),
        }
        const changed = shown(await new Remote(invocation).post(pathOf(word ?? '', `/${action}`), body))
        print(invocation, changed, [lineOf(changed)])
        return 0
      }
      case 'request': {
        const remote = new Remote(invocation)
        const [ticket, begin] = ['ticket', 'begin'].map((name) => textOption(invocation, name))
        const asked = await askApproval(remote, {
          target: word,
          ...(comment !== undefined && { comment }),
          ...(ticket !== undefined && { ticket }),
          ...(begin !== undefined && { begin }),
          ...(duration !== undefined && { duration }),
        })
        const done = invocation.options['wait'] === true ? await answerTo(remote, asked.id) : asked
        print(invocation, done, [lineOf(done)])
        return done.status === 'pending' || done.status === 'accepted' ? 0 : 1
      }
      default:
        throw new UsageError(`expected ${FORM}`)
    }
  },
}
