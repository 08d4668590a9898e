/** The evidence of a test: the command line beside a broker, a session's frames, the bytes of a folder. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Broker } from '../peers/broker.ts'
import { sallyportCommand } from '../peers/broker.ts'
import { type RunOptions, type RunResult, run } from '../peers/process.ts'

/** Runs `sallyport ARGS --config FILE` to its end. */
export function sallyport(
  broker: Pick<Broker, 'configFile'>,
  args: string[],
  options: RunOptions = {},
): Promise<RunResult> {
  const [command, words] = sallyportCommand([...args, '--config', broker.configFile])
  return run(command, words, { timeout: 300_000, ...options })
}

/** A line of `recordings export --format json`. */
export interface ExportedFrame {
  time: number
  channel: number
  type: string
  text?: string
  base64?: string
  data?: Record<string, unknown>
}

/** Returns a session's frames, by the command line. */
export async function framesOf(
  broker: Pick<Broker, 'configFile'>,
  session: string,
): Promise<ExportedFrame[]> {
  const done = await sallyport(broker, ['recordings', 'export', session, '--format', 'json'])
  if (done.code !== 0) throw new Error(done.stderr)
  return done.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ExportedFrame)
}

/** Returns the bytes of all pieces of a stream: `output`, `input`, `error_output`. */
export function streamOf(frames: readonly ExportedFrame[], type: string): Buffer {
  return Buffer.concat(
    frames
      .filter((frame) => frame.type === type)
      .map(({ text = '', base64 }) => Buffer.from(base64 ?? text, base64 === undefined ? 'utf8' : 'base64')),
  )
}

/** Returns the fields of the frames of one type. */
export function fieldsOf(frames: readonly ExportedFrame[], type: string): Record<string, unknown>[] {
  return frames.filter((frame) => frame.type === type).map(({ data = {} }) => data)
}

/** Returns every file below a folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/**
 * Returns the forms in which a file could hold a secret: plain, in base64, in hexadecimal, as numbers (a
 * Buffer in JSON), as UTF-16.
 */
export function formsOf(secret: string | Uint8Array): Buffer[] {
  const bytes = Buffer.from(secret)
  // The three offsets of a base64 group, without the characters that depend on the neighbours.
  const base64 = [0, 1, 2].map((skip) =>
    bytes.subarray(skip, skip + 3 * Math.floor((bytes.length - skip) / 3)).toString('base64'),
  )
  const hex = bytes.toString('hex')
  const texts = [
    hex,
    hex.toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    [...bytes].join(','),
    [...bytes].join(', '),
    [...bytes].map((byte, index) => `"${index}":${byte}`).join(','),
  ]
  const wide = typeof secret === 'string' ? [Buffer.from(secret, 'utf16le')] : []
  return [bytes, ...texts.map((text) => Buffer.from(text)), ...wide]
}

/** Returns the files below a folder that hold one of the secrets. A running broker may replace files meanwhile. */
export function filesWith(folder: string, secrets: readonly string[]): string[] {
  const forms = secrets.flatMap(formsOf)
  return filesBelow(folder).filter((file) => {
    const bytes = existing(file)
    return bytes !== undefined && forms.some((form) => bytes.includes(form))
  })
}

/** Returns the bytes of a file, or undefined if it is gone. */
function existing(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
