/** `sallyport sessions`: see running and past sessions, end one, and suspend or resume one's input, by a broker's API. */
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { forStream } from './output.ts'
import { notOfApi, REMOTE_OPTIONS, Remote } from './remote.ts'

const MAX_LISTED = 1_000
const FORM = 'sessions list | kill ID --reason TEXT | suspend ID --reason TEXT | resume ID'

interface ShownSession {
  id: string
  begin: string
  end: string | null
  user: string
  protocol: string
  account: string
  device: string
  service: string
  result: string | null
  suspended: { reason: string } | null
}

const TEXTS = ['id', 'begin', 'user', 'protocol', 'account', 'device', 'service'] as const

/** @throws RemoteError for an answer that is no list of sessions */
function shown(answer: unknown): ShownSession[] {
  if (!Array.isArray(answer)) throw notOfApi(200)
  return answer.map((one: unknown) => {
    const fields = (typeof one === 'object' && one !== null ? one : {}) as Record<string, unknown>
    if (!TEXTS.every((name) => typeof fields[name] === 'string')) throw notOfApi(200)
    return one as ShownSession
  })
}

function lineOf({
  id,
  begin,
  end,
  user,
  protocol,
  account,
  device,
  service,
  result,
  suspended,
}: ShownSession) {
  const state =
    end === null ? (suspended ? `suspended (${suspended.reason})` : 'running') : (result ?? 'ended')
  return `${id} ${state} ${begin} ${user} ${account}@${device}:${service} ${protocol}`
}

async function list(remote: Remote, invocation: Invocation): Promise<void> {
  const status = textOption(invocation, 'status') ?? 'current'
  if (!['current', 'closed', 'all'].includes(status))
    throw new UsageError('expected --status current, closed or all')
  const query = new URLSearchParams({ limit: String(MAX_LISTED), ...(status !== 'all' && { status }) })
  const found = shown(await remote.get('/sessions', query))
  const text =
    invocation.options['json'] === true ? JSON.stringify(found) : found.map((one) => lineOf(one)).join('\n')
  if (text !== '') process.stdout.write(`${forStream(text, process.stdout)}\n`)
}

export const sessions: Command = {
  synopsis: [
    ['sessions list [--status current|closed|all]', 'list sessions, the running ones unless told otherwise'],
    ['sessions kill ID --reason TEXT', 'end a running session'],
    ['sessions suspend ID --reason TEXT', 'hold the input of a running session; output goes on'],
    ['sessions resume ID', 'accept its input again; all with --url URL --user NAME, --json'],
  ],
  options: {
    ...REMOTE_OPTIONS,
    status: { type: 'string' },
    reason: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(invocation) {
    const [action, id, ...more] = invocation.words
    if (more.length > 0 || action === undefined || (action === 'list') !== (id === undefined))
      throw new UsageError(`expected ${FORM}`)
    const reason = textOption(invocation, 'reason')
    const wantsReason = action === 'kill' || action === 'suspend'
    if (wantsReason && reason === undefined) throw new UsageError(`expected ${FORM}`)
    if (action === 'list') {
      await list(new Remote(invocation), invocation)
      return 0
    }
    if (!wantsReason && action !== 'resume') throw new UsageError(`expected ${FORM}`)
    const path = `/sessions/${encodeURIComponent(id ?? '')}/${action}`
    await new Remote(invocation).post(path, wantsReason ? { reason } : {})
    if (invocation.options['json'] === true) process.stdout.write(`${JSON.stringify({ id, action })}\n`)
    return 0
  },
}
