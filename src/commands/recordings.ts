/** `sallyport recordings list|verify|export|play|search`. */
import { readFileSync } from 'node:fs'
import {
  exportRecording,
  listRecordings,
  playInTerminal,
  playRecording,
  type RecordingCommands,
  verifyRecording,
} from '../../recordings/commands.ts'
import { RecordingError } from '../../recordings/container/format/error.ts'
import { unwrapKey } from '../../recordings/container/keys.ts'
import {
  EXPORT_FORMATS,
  type ExportChoice,
  type ExportFormat,
  requireChoice,
} from '../../recordings/show/export/choices.ts'
import { Secret } from '../model/secret.ts'
import { gatherEvidence } from '../recording-service/evidence.ts'
import { CONTENT_FIELDS } from '../search/words.ts'
import { type Beside, besideBroker } from './beside.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { isRemote, LISTING_OPTIONS, refuseListingOptions } from './listing/question.ts'
import {
  type ListedSession,
  localSessions,
  remoteSessions,
  type SessionQuestion,
} from './listing/sessions.ts'
import { type Column, printListing } from './listing/table.ts'
import { searchRecordings } from './search-recordings.ts'

export const recordings: Command = {
  synopsis: [
    [
      'recordings list [--user NAME] [--target TARGET] [--from TIME] [--to TIME] [--text TEXT]',
      'the recordings on the disk; with one of these, --limit or --url URL, of sessions, the newest first; --limit N, --json',
    ],
    ['recordings verify [SESSION] [--json]', 'check one recording, or all of them'],
    [
      'recordings export SESSION [--format cast|cast3|ttyrec|txt|json|html|png|mp4|webm] [--identity FILE]',
      'write a recording to standard output; --channel N or all, --at SECONDS for png, --raw for the bytes as they were',
    ],
    [
      'recordings play SESSION [--speed 1] [--idle-limit 2] [--identity FILE]',
      'replay a recording in this terminal; ? shows its keys',
    ],
    ['recordings search TEXT [--command] [--file] [--output] [--json]', 'find words in what sessions did'],
  ],
  options: {
    ...LISTING_OPTIONS,
    format: { type: 'string' },
    channel: { type: 'string' },
    raw: { type: 'boolean' },
    at: { type: 'string' },
    speed: { type: 'string' },
    'idle-limit': { type: 'string' },
    identity: { type: 'string' },
    command: { type: 'boolean' },
    file: { type: 'boolean' },
    output: { type: 'boolean' },
  },
  async run(invocation) {
    const [action, session, ...more] = invocation.words
    if (more.length > 0) throw new UsageError(`${JSON.stringify(more[0])} is one word too many`)
    const plan = action !== undefined && Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (!plan) throw new UsageError('expected recordings list, verify, export, play or search')
    if (action === 'list' && session === undefined && isRemote(invocation)) {
      printRecorded(await remoteSessions(invocation, RECORDED), invocation)
      return 0
    }
    if (action !== 'list') refuseListingOptions(invocation, action ?? '', LISTING_ONLY)
    const work = plan(session, invocation)
    const file = textOption(invocation, 'identity')
    const identity = file === undefined ? undefined : readIdentity(file)
    return await besideBroker(invocation, (beside) => work(commandsOf(beside, identity), beside))
  },
}

const RECORDED: SessionQuestion = { isRecorded: true }
/** Options that ask for sessions, which the files of recordings do not answer. */
const LISTING_ONLY = Object.keys(LISTING_OPTIONS).filter((name) => name !== 'json')
const FILTERS = ['user', 'target', 'from', 'to', 'text', 'limit'] as const

const COLUMNS: readonly Column<ListedSession>[] = [
  { title: 'SESSION', value: ({ id }) => id },
  { title: 'STATE', value: ({ recording }) => recording?.state ?? '-' },
  { title: 'SIZE', value: ({ recording }) => String(recording?.size ?? '-') },
  { title: 'BEGIN', value: ({ begin }) => begin },
  { title: 'USER', value: ({ user }) => user },
  { title: 'TARGET', value: ({ account, device, service }) => `${account}@${device}:${service}` },
]

function printRecorded(found: readonly ListedSession[], { options }: Invocation): void {
  printListing(found, COLUMNS, options['json'] === true)
}

type Work = (commands: RecordingCommands, beside: Beside) => Promise<number>

/**
 * Each parses its words and options first, so that wrong usage is reported before the data is opened, and
 * then works.
 */
const ACTIONS: Record<string, (session: string | undefined, invocation: Invocation) => Work> = {
  list(session, invocation) {
    if (session !== undefined) throw new UsageError('recordings list takes no session')
    const { options } = invocation
    const isAsked = FILTERS.some((name) => options[name] !== undefined)
    return async (commands, beside) => {
      if (isAsked) printRecorded(await localSessions(beside, invocation, RECORDED), invocation)
      else await listRecordings(commands, { json: options['json'] === true })
      return 0
    }
  },
  verify(session, { options }) {
    return async (commands, { audit }) => {
      const inOrder = await verifyRecording(commands, session, { json: options['json'] === true })
      await audit.record('recording.verify', {
        ...(session !== undefined && { session }),
        result: inOrder ? 'success' : 'failure',
      })
      return inOrder ? 0 : 1
    }
  },
  export(session, invocation) {
    const name = named(session)
    const format = textOption(invocation, 'format') ?? 'cast'
    if (!isFormat(format)) throw new UsageError(`--format is one of ${EXPORT_FORMATS.join(', ')}`)
    const isAll = textOption(invocation, 'channel') === 'all'
    const channel = isAll ? ('all' as const) : numberOption(invocation, 'channel')
    const at = numberOption(invocation, 'at')
    if (at !== undefined && format !== 'png') throw new UsageError('--at goes with --format png')
    const raw = invocation.options['raw'] === true
    if (raw && process.stdout.isTTY) throw new UsageError('--raw is for a file, not for a terminal')
    const chosen = { ...(channel !== undefined && { channel }), ...(at !== undefined && { at }) }
    const choice: ExportChoice = { format, ...chosen, ...(raw && { raw }) }
    asUsage(() => requireChoice(choice))
    return async (commands, { audit }) => {
      await audit.record('recording.view', { session: name, method: format })
      await exportRecording(commands, name, choice)
      return 0
    }
  },
  search(text, { options }) {
    if (text === undefined) throw new UsageError('recordings search takes the text to look for')
    const fields = CONTENT_FIELDS.filter((field) => options[field] === true)
    const search = searchRecordings({ text, fields, json: options['json'] === true })
    return async (_, beside) => await search(beside)
  },
  play(session, invocation) {
    const name = named(session)
    const channel = numberOption(invocation, 'channel')
    const speed = numberOption(invocation, 'speed') ?? 1
    if (speed === 0) throw new UsageError('--speed is over 0')
    const idleLimit = numberOption(invocation, 'idle-limit') ?? 2
    return async (commands, { audit }) => {
      await audit.record('recording.view', { session: name, method: 'play' })
      const stop = new AbortController()
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort())
      const chosen = channel !== undefined && { channel }
      const options = { speed, idleLimit, signal: stop.signal, ...chosen }
      const { stdin, stdout } = process
      if (stdin.isTTY && stdout.isTTY) await playInTerminal(commands, name, { stdin, stdout }, options)
      else await playRecording(commands, name, options)
      return 0
    }
  },
}

function asUsage(check: () => void): void {
  try {
    check()
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function commandsOf({ recordingService, store }: Beside, identity: Secret | undefined): RecordingCommands {
  return {
    root: recordingService.root,
    unwrap: async (wrapped) => {
      try {
        return await unwrapKey(wrapped, ...(identity ? [identity] : recordingService.keys.identities))
      } catch (error) {
        throw identity ? error : sealedToAuditors(error)
      }
    },
    trusted: recordingService.keys.trusted,
    evidence: async (session) => (await gatherEvidence(store.audit, session)).sessions,
    ...(recordingService.bucket && { bucket: recordingService.bucket }),
    stdout: process.stdout,
    tell: (line) => process.stderr.write(`sallyport: ${line}\n`),
  }
}

/** Reads an age identity as written by age-keygen: one line among comments. */
function readIdentity(file: string): Secret {
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((line) => line.startsWith('AGE-SECRET-KEY-'))
  if (line === undefined) {
    throw new UsageError(`--identity takes a file of age-keygen: ${file} has no line AGE-SECRET-KEY-…`)
  }
  return Secret.of(line.trim())
}

function sealedToAuditors(error: unknown): unknown {
  if (!(error instanceof RecordingError && error.code === 'wrong_key')) return error
  return new Error(
    'only auditors can open this recording (recordings.broker_key is or was false): give the file of your key with --identity',
  )
}

function isFormat(format: string): format is ExportFormat {
  return (EXPORT_FORMATS as readonly string[]).includes(format)
}

function named(session: string | undefined): string {
  if (session === undefined) throw new UsageError('expected the id of a session: see recordings list')
  return session
}

function numberOption(invocation: Invocation, name: string): number | undefined {
  const text = textOption(invocation, name)
  if (text === undefined) return undefined
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0)
    throw new UsageError(`--${name} takes a number, not ${JSON.stringify(text)}`)
  return value
}
