/**
 * The recordings of a backup, one JSON object a line: folder, state and files of each. Only one line is in
 * memory at a time, since there may be any number.
 */
import { createReadStream } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import Type, { type Static } from 'typebox'
import Value from 'typebox/value'
import { FILE_NAME, KEY_FILE_NAME } from '../../recordings/container/format/limits.ts'
import { syncFile } from '../../recordings/container/session-file.ts'
import { STORED_NAME } from '../../recordings/storage/stored-away.ts'
import { BackupError, writeNewFile } from './files.ts'
import { Hash } from './manifest.ts'

const MAX_LINE = 16 * 1024
const closed = { additionalProperties: false }
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const ListedRecording = Type.Object(
  {
    /** Below the recordings' folder: year, month, day, session. */
    folder: Type.String({ pattern: '^\\d{4}/\\d{2}/\\d{2}/[A-Za-z0-9_-]{1,64}$' }),
    state: Type.Enum(['open', 'sealed', 'recovered', 'failed', 'damaged', 'empty']),
    /**
     * Bytes of the recording, whether its container is in the backup or not; for an open one up to a whole
     * record.
     */
    size: Count,
    /** Head of its chain. */
    digest: Type.Optional(Hash),
    files: Type.Array(
      Type.Object(
        { name: Type.Enum([FILE_NAME, KEY_FILE_NAME, STORED_NAME]), size: Count, sha256: Hash },
        closed,
      ),
      { maxItems: 3 },
    ),
  },
  closed,
)
export type ListedRecording = Static<typeof ListedRecording>

/** Returns the session of a line. */
export const sessionOf = ({ folder }: ListedRecording): string => folder.slice(folder.lastIndexOf('/') + 1)

/** Writes a list, a line at a time. No file is open between two lines, since hours may pass. */
export class ListWriter {
  readonly #path: string
  count = 0
  /** Bytes of the listed files. */
  bytes = 0

  private constructor(path: string) {
    this.#path = path
  }

  /** Creates the file, mode 0600. */
  static async create(path: string): Promise<ListWriter> {
    await writeNewFile(path, '')
    return new ListWriter(path)
  }

  async add(recording: ListedRecording): Promise<void> {
    await appendFile(this.#path, `${JSON.stringify(recording)}\n`)
    this.count++
    for (const { size } of recording.files) this.bytes += size
  }

  /** Waits for the disk. */
  async finish(): Promise<void> {
    await syncFile(this.#path)
  }
}

/** Yields the lines of a list, in their order. @throws BackupError at a malformed line */
export async function* readList(path: string): AsyncGenerator<ListedRecording> {
  let number = 0
  for await (const line of linesOf(path)) {
    number++
    yield parseLine(line, `${path}, line ${number}`)
  }
}

async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of createReadStream(path, 'utf8')) {
    const lines = `${rest}${piece}`.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE)
      throw new BackupError(`${path} has a line of more than ${MAX_LINE} characters`)
    yield* lines
  }
  if (rest !== '') throw new BackupError(`${path} ends in the middle of a line: it was cut`)
}

function parseLine(line: string, place: string): ListedRecording {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new BackupError(`${place} is no JSON`)
  }
  if (!Value.Check(ListedRecording, value)) throw new BackupError(`${place} is not of a recording`)
  const names = value.files.map(({ name }) => name)
  if (new Set(names).size !== names.length) throw new BackupError(`${place} names a file twice`)
  return value
}
