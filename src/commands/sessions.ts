/** `sallyport sessions`: see running and past sessions, here or by a broker's API; end one, and suspend or resume one's input, by the API. */
import { besideBroker } from './beside.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { isRemote, LISTING_OPTIONS, refuseListingOptions } from './listing/question.ts'
import { type ListedSession, localSessions, remoteSessions } from './listing/sessions.ts'
import { type Column, printListing } from './listing/table.ts'
import { Remote } from './remote.ts'

const FORM = 'sessions list | kill ID --reason TEXT | suspend ID --reason TEXT | resume ID'

const COLUMNS: readonly Column<ListedSession>[] = [
  { title: 'SESSION', value: ({ id }) => id },
  { title: 'STATE', value: stateOf },
  { title: 'BEGIN', value: ({ begin }) => begin },
  { title: 'USER', value: ({ user }) => user },
  { title: 'TARGET', value: ({ account, device, service }) => `${account}@${device}:${service}` },
  { title: 'PROTOCOL', value: ({ protocol }) => protocol },
]

function stateOf({ end, result, suspended }: ListedSession): string {
  if (end !== null) return result ?? 'ended'
  return suspended ? `suspended (${suspended.reason})` : 'running'
}

async function list(invocation: Invocation): Promise<void> {
  // A question about the past is not one about those that run.
  const isPast = ['from', 'to', 'text'].some((name) => textOption(invocation, name) !== undefined)
  const status = textOption(invocation, 'status') ?? (isPast ? 'all' : 'current')
  if (!['current', 'closed', 'all'].includes(status))
    throw new UsageError('expected --status current, closed or all')
  const question = status === 'all' ? {} : { status: status as 'current' | 'closed' }
  const found = isRemote(invocation)
    ? await remoteSessions(invocation, question)
    : await besideBroker(invocation, (beside) => localSessions(beside, invocation, question))
  printListing(found, COLUMNS, invocation.options['json'] === true)
}

export const sessions: Command = {
  synopsis: [
    [
      'sessions list [--status current|closed|all] [--user NAME] [--target TARGET]',
      'list sessions, those that run unless a time, a text or --status is given; --from TIME, --to TIME, --text TEXT, --limit N, --json',
    ],
    ['sessions kill ID --reason TEXT', 'end a running session'],
    ['sessions suspend ID --reason TEXT', 'hold the input of a running session; output goes on'],
    [
      'sessions resume ID',
      'accept its input again; these with --url URL --user NAME, and list with --url URL, too',
    ],
  ],
  options: {
    ...LISTING_OPTIONS,
    status: { type: 'string' },
    reason: { type: 'string' },
  },
  async run(invocation) {
    const [action, id, ...more] = invocation.words
    if (more.length > 0 || action === undefined || (action === 'list') !== (id === undefined))
      throw new UsageError(`expected ${FORM}`)
    const reason = textOption(invocation, 'reason')
    const wantsReason = action === 'kill' || action === 'suspend'
    if (wantsReason && reason === undefined) throw new UsageError(`expected ${FORM}`)
    if (action === 'list') {
      await list(invocation)
      return 0
    }
    refuseListingOptions(invocation, action)
    if (!wantsReason && action !== 'resume') throw new UsageError(`expected ${FORM}`)
    const path = `/sessions/${encodeURIComponent(id ?? '')}/${action}`
    await new Remote(invocation).post(path, wantsReason ? { reason } : {})
    if (invocation.options['json'] === true) process.stdout.write(`${JSON.stringify({ id, action })}\n`)
    return 0
  },
}
