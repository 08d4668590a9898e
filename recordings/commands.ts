/** `sallyport recordings list|verify|export|play`, without the command line around them. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as sleepFor } from 'node:timers/promises'
import { type CatalogEntry, findRecording, recordingsIn } from './catalog.ts'
import { exportCast } from './export/cast.ts'
import { firstChannel } from './export/channel.ts'
import { exportJson } from './export/json.ts'
import { jsonLine } from './export/payload.ts'
import { exportText } from './export/text.ts'
import { FILE_NAME, KEY_FILE_NAME, MAX_KEY_FILE } from './format/limits.ts'
import { play } from './play.ts'
import { RecordingReader } from './reader.ts'
import { readPieces } from './session-file.ts'
import { harmless } from './terminal-filter.ts'
import { missingPart, type Verification, verifyStream } from './verify.ts'

export interface RecordingCommands {
  /** The recordings' folder. */
  root: string
  /** The session's key out of the bytes of its `key.age`. */
  unwrap: (wrapped: Uint8Array) => Promise<Uint8Array>
  /** Raw Ed25519 keys that may have signed; absent: the keys that the files name are believed. */
  trusted?: readonly Uint8Array[]
  stdout: Writable
}

export const EXPORT_FORMATS = ['cast', 'txt', 'json'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** Prints a line for each recording, oldest day first; with `json` an object a line. */
export async function listRecordings(commands: RecordingCommands, options: { json: boolean }): Promise<void> {
  for await (const entry of recordingsIn(commands.root)) {
    await print(commands, options.json ? jsonLine(entry) : lineOf(entry))
  }
}

function lineOf(entry: CatalogEntry): string {
  const { session, state, size, metadata } = entry
  const columns = [
    session.padEnd(26),
    state.padEnd(9),
    String(size).padStart(12),
    String(metadata['begin'] ?? '-'),
  ]
  const said = Object.entries(metadata).filter(([name]) => !HEADER_FIELDS.has(name))
  return `${harmless([...columns, ...said.map(([name, value]) => `${name}=${value}`)].join('  '))}\n`
}

const HEADER_FIELDS: ReadonlySet<string> = new Set(['session', 'begin', 'signing_key', 'signing_public_key'])

/**
 * Verifies one recording (all of them when `session` is undefined) and prints a line for each. Answers whether all
 * are in order; throws when there is no recording of that session.
 */
export async function verifyRecording(
  commands: RecordingCommands,
  session: string | undefined,
  options: { json: boolean },
): Promise<boolean> {
  const entries = session === undefined ? recordingsIn(commands.root) : [await find(commands, session)]
  let inOrder = true
  for await (const entry of entries) {
    // A session that was refused before its first byte leaves only its key.
    if (entry.state === 'empty') continue
    const verification = await verifyStream(readPieces(join(entry.directory, FILE_NAME)), {
      session: entry.session,
      ...(commands.trusted && { trusted: commands.trusted }),
    })
    if (!verification.ok) inOrder = false
    await print(commands, options.json ? verificationJson(entry, verification) : verdict(entry, verification))
  }
  return inOrder
}

function verdict(entry: CatalogEntry, verification: Verification): string {
  const { ok, fault, state, size, frames, digest } = verification
  const missing = missingPart(verification)
  const found = ok
    ? `ok, ${state}: ${size} bytes, ${frames} frames, digest ${digest}`
    : `${fault?.code}: ${fault?.message}`
  return `${harmless(`${entry.session}  ${found}${missing ? `; ${missing}` : ''}`)}\n`
}

function verificationJson(entry: CatalogEntry, verification: Verification): string {
  const { header, ...rest } = verification
  return jsonLine({
    session: entry.session,
    signing_key: header?.signingKey,
    ...rest,
    missing: missingPart(verification),
  })
}

/** Writes a recording to `stdout`; `channel` is meaningless for JSON, which has all of them. Throws RecordingError. */
export async function exportRecording(
  commands: RecordingCommands,
  session: string,
  options: { format: ExportFormat; channel?: number },
): Promise<void> {
  const entry = await find(commands, session)
  const reader = await read(commands, entry)
  if (options.format === 'json') return pour(commands, exportJson(reader.frames()))
  const channel = options.channel ?? (await channelOf(commands, entry))
  const frames = reader.frames()
  return pour(
    commands,
    options.format === 'cast'
      ? exportCast(frames, channel, reader.header.metadata)
      : exportText(frames, channel),
  )
}

/**
 * Replays a recording on `stdout`. `speed` is over 0; `idleLimit` in seconds. Resolves at its end, or soon after
 * `signal`. Throws RecordingError.
 */
export async function playRecording(
  commands: RecordingCommands,
  session: string,
  options: { speed: number; idleLimit?: number; channel?: number; signal?: AbortSignal },
): Promise<void> {
  if (!(options.speed > 0)) throw new Error(`expected a speed over 0, got ${options.speed}`)
  const entry = await find(commands, session)
  const channel = options.channel ?? (await channelOf(commands, entry))
  const reader = await read(commands, entry)
  await play(reader.frames(), {
    ...options,
    channel,
    write: (text) => print(commands, text),
    sleep: (milliseconds) => sleep(milliseconds, options.signal),
  })
}

async function find(commands: RecordingCommands, session: string): Promise<CatalogEntry> {
  const entry = await findRecording(commands.root, session)
  if (entry && entry.state !== 'empty') return entry
  throw new Error(
    `there is no recording of session ${harmless(session)} in ${commands.root}: see \`recordings list\``,
  )
}

async function read(commands: RecordingCommands, entry: CatalogEntry): Promise<RecordingReader> {
  const key = await commands.unwrap(await readKeyFile(join(entry.directory, KEY_FILE_NAME)))
  return RecordingReader.open(readPieces(join(entry.directory, FILE_NAME)), key)
}

/** At most one byte more than is allowed: `unwrapKey` refuses it then. */
async function readKeyFile(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r')
  try {
    const bytes = new Uint8Array(MAX_KEY_FILE + 1)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function channelOf(commands: RecordingCommands, entry: CatalogEntry): Promise<number> {
  const reader = await read(commands, entry)
  const channel = await firstChannel(reader.frames())
  if (channel !== undefined) return channel
  throw new Error(`session ${entry.session} opened no channel: only \`--format json\` has something to show`)
}

async function pour(commands: RecordingCommands, pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) await print(commands, piece)
}

function print(commands: RecordingCommands, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    commands.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}

async function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  if (milliseconds <= 0 || signal?.aborted) return
  await sleepFor(milliseconds, undefined, signal ? { signal } : {}).catch(() => undefined)
}
