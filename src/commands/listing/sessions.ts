/** Sessions that a listing asks for: on this machine, or by a broker's API; by what happened in them, too. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ContentDatabase } from '../../contents/database.ts'
import { contentMode } from '../../contents/open.ts'
import type { SessionRecord } from '../../model/objects.ts'
import type { Search } from '../../search/bind.ts'
import type { Comparison } from '../../search/grammar.ts'
import { parse } from '../../search/parser.ts'
import { contentComparisons, contentTestOf } from '../../search/words.ts'
import type { Beside } from '../beside.ts'
import { type Invocation, textOption } from '../command.ts'
import { notOfApi, Remote, RemoteError } from '../remote.ts'
import { asker, conditionsOf, limitOption, quoted } from './question.ts'

export interface ListedSession {
  id: string
  begin: string
  end: string | null
  user: string
  protocol: string
  account: string
  domain: string
  device: string
  service: string
  result: string | null
  suspended: { reason: string } | null
  recording: { state: string; size: number } | null
}

export interface SessionQuestion {
  status?: 'current' | 'closed'
  isRecorded?: boolean
}

const TEXTS = ['id', 'begin', 'user', 'protocol', 'account', 'domain', 'device', 'service'] as const
/** Sessions of one answer. */
const PAGE = 100
const NO_OUTPUT = 'only commands and names of files are searched here'

function isListed(one: unknown): one is ListedSession {
  const fields = (typeof one === 'object' && one !== null ? one : {}) as Record<string, unknown>
  return TEXTS.every((name) => typeof fields[name] === 'string')
}

/** Returns the expression; a text is looked for in `contents`. */
function expressionOf(
  invocation: Invocation,
  { isRecorded }: SessionQuestion,
  contents: readonly string[],
): string {
  const text = textOption(invocation, 'text')
  return [
    ...(isRecorded ? ['recording.state~*'] : []),
    ...conditionsOf(invocation, 'begin'),
    ...(text === undefined ? [] : [`(${contents.map((field) => `${field}~${quoted(text)}`).join(' || ')})`]),
  ].join(' && ')
}

const say = (text: string) => void process.stderr.write(`sallyport: ${text}\n`)

/** Returns the newest sessions, by the API. */
export async function remoteSessions(
  invocation: Invocation,
  question: SessionQuestion,
): Promise<ListedSession[]> {
  const remote = new Remote(asker(invocation), process.env, 'key alone')
  try {
    return await pagesOf(remote, invocation, question, ['command', 'file', 'output'])
  } catch (error) {
    const isSealed =
      error instanceof RemoteError && /^(sealed_to_auditors|invalid_search)$/.test(error.code ?? '')
    if (!isSealed || textOption(invocation, 'text') === undefined) throw error
    const found = await pagesOf(remote, invocation, question, ['command', 'file'])
    say(NO_OUTPUT)
    return found
  }
}

async function pagesOf(
  remote: Remote,
  invocation: Invocation,
  question: SessionQuestion,
  contents: readonly string[],
): Promise<ListedSession[]> {
  const q = expressionOf(invocation, question, contents)
  const limit = limitOption(invocation)
  const found = new Map<string, ListedSession>()
  for (let offset = 0; found.size < limit; offset += PAGE) {
    const query = new URLSearchParams({
      limit: String(PAGE),
      offset: String(offset),
      ...(q !== '' && { q }),
      ...(question.status && { status: question.status }),
    })
    const page = await remote.get('/sessions', query)
    if (!Array.isArray(page) || !page.every(isListed)) throw notOfApi(200)
    // Those that begin meanwhile move others to the next page.
    for (const one of page) found.set(one.id, one)
    if (page.length < PAGE) break
  }
  return [...found.values()].slice(0, limit)
}

/** Returns the newest sessions in the store of this machine. */
export async function localSessions(
  beside: Beside,
  invocation: Invocation,
  question: SessionQuestion,
): Promise<ListedSession[]> {
  const mode = contentMode(beside.config.recordings)
  const contents = mode === 'full' ? ['command', 'file', 'output'] : ['command', 'file']
  const q = expressionOf(invocation, question, contents)
  const search = q === '' ? undefined : { expression: parse(q), variables: {} }
  const { status } = question
  const { items } = await beside.store.sessions.list(status ? { status } : {}, {
    limit: limitOption(invocation),
    offset: 0,
    ...(search && { search: await withContents(beside, search, mode) }),
  })
  return items.map(listed)
}

/** Asks the index for what is looked for in the contents of sessions, which is audited. */
async function withContents({ config, audit }: Beside, search: Search, mode: string): Promise<Search> {
  const asked = contentComparisons(search.expression)
  if (asked.length === 0) return search
  const path = join(config.dataDir, 'search.db')
  if (mode === 'off') throw new Error('nothing is indexed here: recordings.search is off')
  if (!existsSync(path)) throw new Error(`there is no index ${path} yet: start the broker once (npm start)`)
  if (mode !== 'full') say(NO_OUTPUT)
  await audit.record('recording.search', { method: asked.map(({ field }) => field).join(' ') })
  const database = new ContentDatabase(path, mode)
  try {
    const found = new Map<Comparison, readonly string[]>()
    for (const comparison of asked) {
      const sessions = database.sessionsWith(contentTestOf(comparison, search.variables))
      if (typeof sessions === 'string')
        throw new Error('too many sessions have that text: look for more words')
      found.set(comparison, sessions)
    }
    return { ...search, found }
  } finally {
    database.close()
  }
}

function listed(session: SessionRecord): ListedSession {
  const { id, begin, end, user, protocol, account, domain, device, service, result, recording } = session
  return {
    id,
    begin: new Date(begin).toISOString(),
    end: end === undefined ? null : new Date(end).toISOString(),
    user,
    protocol,
    account,
    domain,
    device,
    service,
    result: result ?? null,
    suspended: null,
    recording: recording ?? null,
  }
}
