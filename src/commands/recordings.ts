/** `sallyport recordings list|verify|export|play`. */
import {
  EXPORT_FORMATS,
  type ExportFormat,
  exportRecording,
  listRecordings,
  playRecording,
  type RecordingCommands,
  verifyRecording,
} from '../../recordings/commands.ts'
import { unwrapKey } from '../../recordings/keys.ts'
import { type Beside, besideBroker } from './beside.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'

export const recordings: Command = {
  synopsis: [
    ['recordings list [--json]', 'the recordings on the disk'],
    ['recordings verify [SESSION] [--json]', 'check one recording, or all of them'],
    ['recordings export SESSION [--format cast|txt|json]', 'write a recording to standard output'],
    ['recordings play SESSION [--speed 1] [--idle 2]', 'replay a recording in this terminal'],
  ],
  options: {
    json: { type: 'boolean' },
    format: { type: 'string' },
    channel: { type: 'string' },
    speed: { type: 'string' },
    idle: { type: 'string' },
  },
  async run(invocation) {
    const [action, session, ...more] = invocation.words
    if (more.length > 0) throw new UsageError(`${JSON.stringify(more[0])} is one word too many`)
    const plan = action !== undefined && Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (!plan) throw new UsageError('expected recordings list, verify, export or play')
    const work = plan(session, invocation)
    return await besideBroker(invocation, (beside) => work(commandsOf(beside), beside))
  },
}

type Work = (commands: RecordingCommands, beside: Beside) => Promise<number>

/** Each reads its words and options, so that a wrong usage is told before the data is opened, and then works. */
const ACTIONS: Record<string, (session: string | undefined, invocation: Invocation) => Work> = {
  list(session, { options }) {
    if (session !== undefined) throw new UsageError('recordings list takes no session')
    return async (commands) => {
      await listRecordings(commands, { json: options['json'] === true })
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
    const channel = numberOption(invocation, 'channel')
    return async (commands, { audit }) => {
      await audit.record('recording.view', { session: name, method: format })
      await exportRecording(commands, name, { format, ...(channel !== undefined && { channel }) })
      return 0
    }
  },
  play(session, invocation) {
    const name = named(session)
    const channel = numberOption(invocation, 'channel')
    const speed = numberOption(invocation, 'speed') ?? 1
    if (speed === 0) throw new UsageError('--speed is over 0')
    const idleLimit = numberOption(invocation, 'idle') ?? 2
    return async (commands, { audit }) => {
      await audit.record('recording.view', { session: name, method: 'play' })
      const stop = new AbortController()
      process.once('SIGINT', () => stop.abort())
      const chosen = channel !== undefined && { channel }
      await playRecording(commands, name, { speed, idleLimit, signal: stop.signal, ...chosen })
      return 0
    }
  },
}

function commandsOf({ keeper }: Beside): RecordingCommands {
  return {
    root: keeper.root,
    unwrap: (wrapped) => unwrapKey(wrapped, keeper.keys.identity),
    trusted: [keeper.keys.signer],
    stdout: process.stdout,
  }
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
