/** `sallyport events list`: the audit log, on this machine or by a broker's API. */
import { shownEvent } from '../audit/questions.ts'
import { bind } from '../search/bind.ts'
import { parse } from '../search/parser.ts'
import { AUDIT_FIELDS } from '../store/audit-fields.ts'
import { besideBroker } from './beside.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { asker, conditionsOf, isRemote, LISTING_OPTIONS, limitOption, quoted } from './listing/question.ts'
import { type Column, printListing } from './listing/table.ts'
import { notOfApi, Remote } from './remote.ts'

interface ShownEvent {
  time: string
  sequence: number
  event: string
  severity: string
  message: string
}

const COLUMNS: readonly Column<ShownEvent>[] = [
  { title: 'TIME', value: ({ time }) => time },
  { title: 'ROW', value: ({ sequence }) => String(sequence) },
  { title: 'SEVERITY', value: ({ severity }) => severity },
  { title: 'EVENT', value: ({ event }) => event },
  { title: 'WHAT', value: ({ message }) => message },
]
/** Events of one answer. */
const PAGE = 100

const isShown = (one: unknown): one is ShownEvent => {
  const fields = (typeof one === 'object' && one !== null ? one : {}) as Record<string, unknown>
  const texts = ['time', 'event', 'severity', 'message']
  return texts.every((name) => typeof fields[name] === 'string') && Number.isSafeInteger(fields['sequence'])
}

/** Returns the newest events that meet the expression, the newest first. */
async function remoteEvents(invocation: Invocation, q: string, limit: number): Promise<ShownEvent[]> {
  const remote = new Remote(asker(invocation), process.env, 'key alone')
  const found: ShownEvent[] = []
  for (let cursor: string | undefined; found.length < limit; ) {
    const size = Math.min(PAGE, limit - found.length)
    const query = new URLSearchParams({
      limit: String(size),
      ...(q !== '' && { q }),
      ...(cursor !== undefined && { cursor }),
    })
    const { body, next } = await remote.page('/events', query)
    if (!Array.isArray(body) || !body.every(isShown)) throw notOfApi(200)
    found.push(...body)
    if (next === undefined) break
    cursor = next
  }
  return found
}

async function localEvents(invocation: Invocation, q: string, limit: number): Promise<ShownEvent[]> {
  const condition = q === '' ? undefined : bind({ expression: parse(q), variables: {} }, AUDIT_FIELDS)
  return await besideBroker(invocation, async ({ store }) => {
    const found: ShownEvent[] = []
    for await (const { rows } of store.auditSearch.search({
      newestFirst: true,
      ...(condition && { condition }),
    })) {
      found.push(...rows.slice(0, limit - found.length).map(shownEvent))
      if (found.length === limit) break
    }
    return found
  })
}

function expressionOf(invocation: Invocation): string {
  const [event, severity, text] = ['event', 'severity', 'text'].map((name) => textOption(invocation, name))
  const codes = (event ?? '')
    .split(',')
    .map((code) => `event${code.includes('*') ? '~' : '='}${quoted(code)}`)
  return [
    ...(event === undefined ? [] : [`(${codes.join(' || ')})`]),
    ...(severity === undefined ? [] : [`severity=${quoted(severity)}`]),
    ...(text === undefined ? [] : [`text~${quoted(text)}`]),
    ...conditionsOf(invocation, 'time'),
  ].join(' && ')
}

export const events: Command = {
  synopsis: [
    [
      'events list [--event CODE] [--severity LEVEL] [--user NAME] [--target TARGET]',
      'list events of the audit log, the newest first; --from TIME, --to TIME, --text TEXT, --limit N, --json; with --url URL those of a broker elsewhere',
    ],
  ],
  options: { ...LISTING_OPTIONS, event: { type: 'string' }, severity: { type: 'string' } },
  async run(invocation) {
    const [action, ...more] = invocation.words
    if (action !== 'list' || more.length > 0) throw new UsageError('expected events list')
    const q = expressionOf(invocation)
    const limit = limitOption(invocation)
    const found = await (isRemote(invocation) ? remoteEvents : localEvents)(invocation, q, limit)
    printListing(found, COLUMNS, invocation.options['json'] === true)
    return 0
  },
}
