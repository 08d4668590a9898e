/** Implements `sallyport recordings list|verify|export|play`, apart from the command line. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as sleepFor } from 'node:timers/promises'
import { isDue, mayBeOpen, type SessionEvidence } from './container/evidence.ts'
import { FAULTS } from './container/format/error.ts'
import { KEY_FILE_NAME, MAX_KEY_FILE } from './container/format/limits.ts'
import { RecordingReader } from './container/reader.ts'
import { missingPart, type Verification, verifyStream } from './container/verify.ts'
import { type ChannelBrief, leftOut, mainChannel, type Shown, surveyOf } from './decode/frames/channel.ts'
import { jsonLine } from './decode/frames/payload.ts'
import { harmless } from './decode/terminal/filter.ts'
import { type ExportChoice, NothingToShow } from './show/export/choices.ts'
import { openExport } from './show/export/formats.ts'
import { play } from './show/play.ts'
import { playOn, type Terminal } from './show/player/terminal.ts'
import { Replay } from './show/replay/replay.ts'
import type { Bucket } from './storage/bucket/bucket.ts'
import { BucketError } from './storage/bucket/error.ts'
import { findRecording, recordingsIn } from './storage/catalog.ts'
import type { CatalogEntry } from './storage/catalog-entry.ts'
import { locally } from './storage/fetched.ts'
import { bytesOf, requireBytes } from './storage/source.ts'

export interface RecordingCommands {
  /** The recordings' folder. */
  root: string
  /** Unwraps the session's key from the bytes of its `key.age`. */
  unwrap: (wrapped: Uint8Array) => Promise<Uint8Array>
  /** Raw Ed25519 keys that are accepted as signers. Absent to trust the keys that the files name. */
  trusted?: readonly Uint8Array[]
  /**
   * Returns the audit log's evidence for one session's recording, or for all. Absent to verify files on their
   * own.
   */
  evidence?: (session: string | undefined) => Promise<ReadonlyMap<string, SessionEvidence>>
  /** Object store of recordings that are no longer on the disk. */
  bucket?: Bucket
  stdout: Writable
  /** Prints a notice for the user, apart from the data on `stdout`. */
  tell: (line: string) => void
}

/** Prints one line per recording, oldest day first; with `json` one object per line. */
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
 * Verifies one recording, or all if `session` is undefined, and prints a line for each, also for deleted and
 * missing ones. Returns whether all are in order. Throws if nothing is known of the session.
 */
export async function verifyRecording(
  commands: RecordingCommands,
  session: string | undefined,
  options: { json: boolean },
): Promise<boolean> {
  const seen = new Set<string>()
  const entries: CatalogEntry[] = []
  for await (const entry of session === undefined ? recordingsIn(commands.root) : found(commands, session)) {
    // A session that was refused before its first byte leaves only its key.
    if (entry.state !== 'empty') entries.push(entry)
  }
  // Read after the folders, so that the evidence covers recordings that are sealed meanwhile.
  const evidence = (await commands.evidence?.(session)) ?? new Map<string, SessionEvidence>()
  let inOrder = true
  for (const entry of entries) {
    seen.add(entry.session)
    const verification = await verifyEntry(commands, entry, evidence.get(entry.session))
    if (verification instanceof BucketError) {
      inOrder = false
      await print(commands, notFetched(entry, verification, options.json))
      continue
    }
    if (!verification.ok) inOrder = false
    await print(commands, options.json ? verificationJson(entry, verification) : verdict(entry, verification))
  }
  for (const [name, known] of evidence) {
    if (seen.has(name) || (!known.deleted && !isDue(known))) continue
    if (isDue(known)) inOrder = false
    await print(commands, options.json ? absentJson(name, known) : `${absent(name, known)}\n`)
    seen.add(name)
  }
  if (session !== undefined && seen.size === 0) await find(commands, session)
  return inOrder
}

/**
 * Returns an error of the object store as the entry's result, so that the other recordings are still
 * verified.
 */
async function verifyEntry(
  { bucket, trusted }: RecordingCommands,
  entry: CatalogEntry,
  known: SessionEvidence | undefined,
): Promise<Verification | BucketError> {
  try {
    await requireBytes(entry, bucket)
    const { closed: expected, noted, lost } = known ?? {}
    const verification = await verifyStream(bytesOf(entry, bucket), {
      session: entry.session,
      mayBeOpen: mayBeOpen(known),
      ...(trusted && { trusted }),
      ...(expected && { expected }),
      ...(noted && { noted }),
    })
    // The start after a crash found less than had been written: the files there now cannot disprove that.
    if (lost === undefined || !verification.ok) return verification
    return { ...verification, ok: false, fault: { code: 'lost_tail', message: lost } }
  } catch (error) {
    if (error instanceof BucketError) return error
    throw error
  }
}

function notFetched({ session }: CatalogEntry, { fault, message }: BucketError, json: boolean): string {
  const code = fault === 'missing' ? 'missing_session' : 'not_fetched'
  if (json) return jsonLine({ session, ok: false, fault: { code, message } })
  return `${harmless(`${session}  ${code}: ${message}`)}\n`
}

async function* found(commands: RecordingCommands, session: string): AsyncGenerator<CatalogEntry> {
  const entry = await findRecording(commands.root, session)
  if (entry) yield entry
}

function absent(session: string, { deleted, closed, noted, lost }: SessionEvidence): string {
  if (deleted !== undefined) return harmless(`${session}  ${deleted}`)
  const digest = closed?.digest ?? noted?.digest
  const what = digest === undefined ? lost : `its digest was ${digest}`
  return harmless(`${session}  missing_session: ${FAULTS.missing_session}; ${what}`)
}

function absentJson(session: string, known: SessionEvidence): string {
  if (known.deleted !== undefined) return jsonLine({ session, ok: true, deleted: known.deleted })
  const fault = { code: 'missing_session', message: FAULTS.missing_session }
  return jsonLine({ session, ok: false, fault, digest: known.closed?.digest ?? known.noted?.digest })
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

/**
 * Writes a recording to `stdout` and reports the channels that are left out. Throws BadChoice,
 * RecordingError, FfmpegMissing, GraphicSession, NothingToShow.
 */
export async function exportRecording(
  commands: RecordingCommands,
  session: string,
  choice: ExportChoice,
): Promise<void> {
  const entry = await find(commands, session)
  const key = await keyOf(commands, entry)
  const local = await locally(entry, commands.bucket)
  try {
    const pieces = await openExport(local.entry, key, choice)
    tellLeftOut(commands, pieces.shown)
    for await (const piece of pieces) await print(commands, piece as Uint8Array)
  } finally {
    await local.release()
  }
}

function tellLeftOut(commands: RecordingCommands, shown: Shown): void {
  const lacks = leftOut(shown)
  if (lacks !== undefined) commands.tell(`only ${lacks} is shown: see --channel`)
}

export interface PlayChoice {
  /** Greater than 0. */
  speed: number
  /** Longest pause that is replayed, in seconds. */
  idleLimit?: number
  channel?: number
  signal?: AbortSignal
}

/**
 * Replays a recording on `stdout` at its own pace and without keys: for an output that is not a terminal.
 * Resolves at its end, or soon after `signal`. Throws RecordingError, and an error that names the alternative
 * if the channel shows a desktop.
 */
export async function playRecording(
  commands: RecordingCommands,
  session: string,
  options: PlayChoice,
): Promise<void> {
  if (!(options.speed > 0)) throw new Error(`expected a speed over 0, got ${options.speed}`)
  const entry = await find(commands, session)
  const { channel, isGraphic } = await channelOf(commands, entry, options.channel)
  if (isGraphic) throw new NotPlayed(session)
  const reader = await read(commands, entry)
  await play(reader.frames(), {
    ...options,
    channel,
    write: (text) => print(commands, text),
    sleep: (milliseconds) => sleep(milliseconds, options.signal),
  })
}

/** Refuses to play a desktop: a terminal cannot show pixels. */
class NotPlayed extends Error {
  constructor(session: string) {
    super(
      `session ${session} shows a desktop, which a terminal cannot: make a picture or a video of it with \`recordings export ${session} --format png\` or mp4, webm, json, txt`,
    )
  }
}

/**
 * Replays a recording in a terminal, with keys. Resolves when the viewer quits. Throws RecordingError, and an
 * error that names the alternative if the channel shows a desktop.
 */
export async function playInTerminal(
  commands: RecordingCommands,
  session: string,
  terminal: Terminal,
  { channel: chosen, signal, ...options }: PlayChoice,
): Promise<void> {
  const entry = await find(commands, session)
  const key = await keyOf(commands, entry)
  const local = await locally(entry, commands.bucket)
  let replay: Replay | undefined
  try {
    replay = await Replay.open(local.entry, key)
    const channel =
      chosen === undefined
        ? replay.mainChannel
        : replay.directory.channels.find((one) => one.channel === chosen)
    if (!channel) {
      throw new Error(
        `session ${entry.session} has no ${chosen === undefined ? 'channel' : `channel ${chosen}`}`,
      )
    }
    if (channel.desktop) throw new NotPlayed(entry.session)
    await playOn(terminal, { ...options, replay, channel, follows: chosen === undefined }, signal)
  } finally {
    await replay?.close()
    await local.release()
  }
}

async function find(commands: RecordingCommands, session: string): Promise<CatalogEntry> {
  const entry = await findRecording(commands.root, session)
  if (entry && entry.state !== 'empty') return entry
  throw new Error(
    `there is no recording of session ${harmless(session)} in ${commands.root}: see \`recordings list\``,
  )
}

async function read(commands: RecordingCommands, entry: CatalogEntry): Promise<RecordingReader> {
  const key = await keyOf(commands, entry)
  return RecordingReader.open(bytesOf(entry, commands.bucket), key)
}

async function keyOf(commands: RecordingCommands, entry: CatalogEntry): Promise<Uint8Array> {
  return await commands.unwrap(await readKeyFile(join(entry.directory, KEY_FILE_NAME)))
}

/** Reads at most one byte more than is allowed, so that `unwrapKey` rejects a longer file. */
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

/** Returns the chosen channel, or the main one, and reports the channels that are left out. */
async function channelOf(
  commands: RecordingCommands,
  entry: CatalogEntry,
  chosen: number | undefined,
): Promise<ChannelBrief> {
  const survey = await surveyOf((await read(commands, entry)).frames())
  const { channels, count } = survey
  const found = chosen === undefined ? mainChannel(survey) : channels.find((one) => one.channel === chosen)
  if (!found) throw new NothingToShow(entry.session, chosen)
  tellLeftOut(commands, { channel: found.channel, place: channels.indexOf(found) + 1, count })
  return found
}

function print(commands: RecordingCommands, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    commands.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}

async function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  if (milliseconds <= 0 || signal?.aborted) return
  await sleepFor(milliseconds, undefined, signal ? { signal } : {}).catch(() => undefined)
}
