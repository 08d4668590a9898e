/**
 * Records an SCP channel (`scp -t`, `scp -f`): one operation per file, with size, SHA-256 and the receiver's
 * reply. By the command's direction, one side sends records, and the other may only reply. A stream that
 * would make a side do something other than the recorded operations is a violation (MalformedError): records
 * from the replying side, names that leave their folder, data sent before its refusal, replies to nothing.
 *
 * A target that cannot run scp may send a line of text (nologin, a forced command). That text is forwarded
 * and recorded; nothing else may follow.
 */
import { Buffer } from 'node:buffer'
import { posix } from 'node:path'
import { type Exit, FRAME } from '../../../recordings/container/frames.ts'
import type { FileJudge } from '../../../src/model/file-judge.ts'
import { pathOf } from '../../../src/model/path-pattern.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import type { ContentHash } from '../../session/hash/content-hash.ts'
import type { Quota } from '../../session/quota.ts'
import type { Direction, ScpCommand } from '../codec/classify.ts'
import { ANSWER, LINE_LIMIT, parseRecord, type ScpRecord } from '../codec/scp.ts'
import { Changes } from '../files/changes.ts'
import type { ChannelFrames } from './frames.ts'
import { LineBuffer } from './line-buffer.ts'
import type { RecorderOptions } from './options.ts'
import { QuotaStream } from './quota-stream.ts'
import type { ChannelRecorder, RecorderEvents } from './recorder.ts'
import { DISTURBED, NO_HASH } from './sftp-file.ts'

/** Depth of nested folders. */
const DEPTH_LIMIT = 256
/** Records and files that wait for the receiver's reply. The protocol has one; some senders do not wait. */
const UNANSWERED_LIMIT = 64
/** Bytes of text from a target that cannot run scp. */
const TEXT_LIMIT = 4096

const RECORD_LETTERS = Buffer.from('CDET')
const NEWLINE = Buffer.from('\n')
const CUT = 'the channel ended before the file was complete'

interface ScpFile {
  path: string
  size: number
  passed: number
  hash: ContentHash
  othersChanged: () => boolean
  /** The sender's error after the data: its file could not be read. */
  failure?: string
}

/** Exit statuses of POSIX shells for a command that they cannot run or find. */
const CANNOT_RUN: readonly number[] = [126, 127]

/** The subject of a reply: the beginning or a record without data, a folder, a file's record, its data. */
type Expected = { kind: 'record' | 'directory' } | { kind: 'file' | 'data'; file: ScpFile }

const RECORD: Expected = { kind: 'record' }
const DIRECTORY: Expected = { kind: 'directory' }

export class ScpRecorder implements ChannelRecorder {
  readonly #frames: ChannelFrames
  readonly #events: RecorderEvents
  readonly #command: ScpCommand
  readonly #rules: FileJudge
  /** This channel's changes: scp transfers one file after the other. */
  readonly #changes: Changes
  readonly #sizes: RecorderOptions['sizes']
  readonly #errors: QuotaStream
  readonly #records = new LineBuffer(LINE_LIMIT)
  readonly #answers = new LineBuffer(LINE_LIMIT)
  readonly #folders: string[] = []
  /** Expected replies, oldest first; the receiver begins with one. */
  readonly #expected: Expected[] = [RECORD]
  /** The file whose data is being sent, or whose status byte is next. */
  #file: ScpFile | undefined
  #text = 0
  /** Number of records of a download outside any folder. */
  #brought = 0
  /** Set if a rule has ended the channel: later data is ignored. */
  #isCut = false

  constructor(
    frames: ChannelFrames,
    quota: Quota,
    command: ScpCommand,
    {
      events,
      fileRules,
      changes,
      sizes,
    }: Pick<RecorderOptions, 'events' | 'fileRules' | 'changes' | 'sizes'>,
  ) {
    this.#frames = frames
    this.#events = events
    this.#command = command
    this.#rules = fileRules
    this.#changes = new Changes(changes)
    this.#sizes = sizes
    this.#errors = new QuotaStream(frames, events, quota, 'out')
  }

  fromClient(data: Uint8Array): void {
    if (this.#text > 0 && this.#command.direction === 'up') {
      throw new MalformedError('scp: nothing was expected after the target said that it cannot run scp')
    }
    this.#side('up', data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    if (stderr) this.#errors.write(FRAME.errorOutput, data)
    else this.#side('down', data)
  }

  resize(columns: number, rows: number): void {
    this.#frames.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#frames.exit(exit)
    if ('status' in exit && CANNOT_RUN.includes(exit.status!)) this.#refused(`exit status ${exit.status}`)
  }

  close(): void {
    const open = new Set(this.#expected.flatMap((expected) => ('file' in expected ? [expected.file] : [])))
    if (this.#file !== undefined) open.add(this.#file)
    for (const file of open) this.#finish(file, CUT)
    this.#errors.close()
    this.#frames.close()
  }

  /** `from`: the direction of `data`. */
  #side(from: Direction, data: Uint8Array): void {
    let at = 0
    while (at < data.length && !this.#isCut) {
      const rest = data.subarray(at)
      if (from === 'down' && this.#text > 0) {
        this.#noScp(rest)
        return
      }
      at += from === this.#command.direction ? this.#send(rest) : this.#answer(rest)
    }
  }

  /** Parses the beginning of the sender's data; returns the number of bytes consumed. */
  #send(data: Uint8Array): number {
    const file = this.#file
    if (file !== undefined && file.passed < file.size) {
      const piece = data.subarray(0, file.size - file.passed)
      file.hash.update(piece)
      file.passed += piece.length
      return piece.length
    }
    if (file !== undefined && this.#records.empty && data[0] === ANSWER.ok) {
      this.#sent(file)
      return 1
    }
    if (this.#records.empty) this.#checkFirst(data[0]!, file !== undefined)
    const taken = this.#records.take(data)
    const line = this.#records.line
    if (line === undefined) return taken
    this.#records.clear()
    this.#sentLine(line)
    return taken
  }

  /** Rejects a line of the sender by its first byte. */
  #checkFirst(byte: number, afterData: boolean): void {
    if (byte === ANSWER.error || byte === ANSWER.fatal) return
    if (afterData) throw new MalformedError('scp: a status was expected after the data, found more data')
    if (this.#command.direction === 'up' && !RECORD_LETTERS.includes(byte)) {
      throw new MalformedError('scp: a record was expected from the sending side, found something else')
    }
  }

  #sentLine(line: Uint8Array): void {
    const first = line[0]
    if (first === ANSWER.error || first === ANSWER.fatal) {
      const message = displayText(line.subarray(1))
      if (this.#file === undefined) this.#note(message, 'down')
      else {
        this.#file.failure = message
        this.#sent(this.#file)
      }
      return
    }
    const record = parseRecord(line)
    if (record !== undefined) this.#record(record)
    else if (this.#command.direction === 'down') this.#noScp(Buffer.concat([line, NEWLINE]))
    else throw new MalformedError('scp: a record was expected from the sending side, found something else')
  }

  /** Handles the end of a file's data and status. */
  #sent(file: ScpFile): void {
    this.#file = undefined
    this.#expect({ kind: 'data', file })
  }

  #record(record: ScpRecord): void {
    if (this.#command.direction === 'down') this.#checkBrought(record)
    switch (record.kind) {
      case 'times':
        this.#expect(RECORD)
        return
      case 'end':
        this.#folders.pop()
        this.#expect(RECORD)
        return
      case 'directory':
        this.#folders.push(record.name)
        if (this.#isForbidden('directory')) return
        if (DEPTH_LIMIT < this.#folders.length) {
          throw new MalformedError(
            `scp: at most ${DEPTH_LIMIT} folders within each other were expected, found more`,
          )
        }
        this.#frames.file({
          operation: 'directory',
          path: this.#path(),
          direction: this.#command.direction,
          result: 'ok',
        })
        this.#expect(DIRECTORY)
        return
      case 'file': {
        if (this.#isForbidden('transfer', record)) return
        const file = {
          path: this.#path(record.name),
          size: record.size,
          passed: 0,
          hash: this.#frames.newHash(),
          othersChanged: this.#changes.watch(),
        }
        if (this.#command.direction === 'up') {
          this.#changes.begin()
          this.#sizes.reached(record.size)
        }
        this.#file = file
        this.#expect({ kind: 'file', file })
      }
    }
  }

  /**
   * Checks a record of the target: it must be the requested file, and its name must not contain control
   * characters for a terminal (CVE-2019-6109, 6111).
   */
  #checkBrought(record: ScpRecord): void {
    if (record.kind !== 'file' && record.kind !== 'directory') return
    const { name, recursive } = this.#command
    if (/[\x00-\x1f\x7f-\x9f]/.test(record.name))
      throw new MalformedError('scp: a name without control characters was expected from the target')
    if (record.kind === 'directory' && !recursive)
      throw new MalformedError('scp: a file was expected from the target, found a folder')
    if (this.#folders.length > 0 || name === undefined) return
    if (record.name !== name || ++this.#brought > 1)
      throw new MalformedError('scp: the file that was asked for was expected from the target, found another')
  }

  /**
   * Reports a folder or file that a rule forbids. The command's path may be the file itself, whatever name
   * the record has, so both names are checked.
   */
  #isForbidden(operation: string, file?: { name: string; size: number }): boolean {
    const { direction, path } = this.#command
    const shown = this.#path(file?.name)
    const names = this.#folders.length === 0 ? [shown, path] : [shown]
    const rule = names
      .map((name) => this.#rules.forbids(direction, pathOf(name), file?.size))
      .find((found) => found !== undefined)
    if (rule === undefined) return false
    this.#isCut = true
    const reason = `the rule for files "${rule.text}" does not allow it`
    this.#events.onForbidden({ operation, path: shown, direction, reason })
    return true
  }

  #expect(expected: Expected): void {
    this.#expected.push(expected)
    if (UNANSWERED_LIMIT < this.#expected.length) {
      throw new MalformedError(`scp: an answer was expected after ${UNANSWERED_LIMIT} records, found none`)
    }
  }

  /** Parses the beginning of the replying side's data; returns the number of bytes consumed. */
  #answer(data: Uint8Array): number {
    if (this.#answers.empty && data[0] === ANSWER.ok) {
      this.#answered(undefined)
      return 1
    }
    const isAnswer = data[0] === ANSWER.error || data[0] === ANSWER.fatal
    if (this.#answers.empty && !isAnswer && this.#command.direction === 'down') {
      throw new MalformedError('scp: an answer was expected from the receiving side, found something else')
    }
    const taken = this.#answers.take(data)
    const line = this.#answers.line
    if (line === undefined) return taken
    this.#answers.clear()
    if (line[0] === ANSWER.error || line[0] === ANSWER.fatal) this.#answered(displayText(line.subarray(1)))
    else if (parseRecord(line) !== undefined) {
      throw new MalformedError('scp: an answer was expected from the receiving side, found something else')
    } else this.#noScp(Buffer.concat([line, NEWLINE]))
    return taken
  }

  /** Handles a reply. `refusal`: the receiver's message, or undefined if it accepts. */
  #answered(refusal: string | undefined): void {
    const expected = this.#expected.shift()
    if (expected === undefined) {
      if (refusal === undefined) throw new MalformedError('scp: no answer was expected, found one')
      this.#note(refusal, 'up')
    } else if (expected.kind === 'data') {
      this.#finish(expected.file, refusal ?? expected.file.failure ?? 'ok')
    } else if (refusal === undefined) {
      return
    } else if (expected.kind === 'file') {
      this.#refuse(expected.file, refusal)
    } else {
      this.#note(refusal, 'up')
      if (expected.kind === 'directory') this.#refuseDirectory()
    }
  }

  /** Continues after a refused folder. Data already sent for the folder would be read as something else. */
  #refuseDirectory(): void {
    if (this.#expected.length > 0) {
      throw new MalformedError(
        'scp: an answer to a folder was expected before its records, found them before a refusal',
      )
    }
    this.#folders.pop()
  }

  /** Handles a refused file: no data follows. Data already begun would be read as records. */
  #refuse(file: ScpFile, refusal: string): void {
    if (file !== this.#file || file.passed > 0) {
      throw new MalformedError(
        'scp: data was expected after the answer to its record, found it before a refusal',
      )
    }
    this.#file = undefined
    this.#finish(file, refusal)
  }

  #finish(file: ScpFile, result: string): void {
    const { path, passed: size } = file
    const { direction } = this.#command
    const isDisturbed = file.othersChanged()
    if (direction === 'up') this.#changes.end()
    const write = (transfer: { sha256?: string; result: string }): void => {
      this.#frames.file({ operation: 'transfer', path, direction, size, ...transfer })
      this.#events.onTransfer({ path, direction, size, ...transfer })
    }
    if (result === 'ok' && !isDisturbed) {
      this.#frames.hashed(file.hash, (sha256) =>
        write(sha256 === undefined ? { result: NO_HASH } : { sha256, result }),
      )
    } else {
      file.hash.drop()
      write({ result: result === 'ok' ? DISTURBED : result })
    }
  }

  /** Records a message that belongs to no file. It is the target's in transfers of direction `ofTarget`. */
  #note(message: string, ofTarget: Direction): void {
    const path = this.#path()
    this.#frames.file({ operation: 'message', path, result: message })
    if (this.#command.direction === ofTarget) this.#refused(message)
  }

  #refused(reason: string): void {
    this.#events.onRefused({
      operation: 'scp',
      path: this.#path(),
      direction: this.#command.direction,
      reason,
    })
  }

  /** Records the target's text in place of the protocol, or more of that text. */
  #noScp(text: Uint8Array): void {
    if (this.#text === 0) this.#refused(displayText(text).trimEnd())
    this.#text += text.length
    if (TEXT_LIMIT < this.#text)
      throw new MalformedError('scp: the protocol was expected from the target, found text')
    this.#frames.stream(FRAME.output, text)
  }

  /**
   * Builds a path for the recording: the command's path, then the record's folders and name. The bastion
   * cannot see whether the command's path is a folder on the target; if the names are equal, the path is
   * taken for the file itself.
   */
  #path(name?: string): string {
    const names = name === undefined ? this.#folders : [...this.#folders, name]
    const base = this.#command.path
    if (names.length === 0) return base
    if (this.#command.direction === 'down') return posix.join(posix.dirname(base), ...names)
    if (names.length === 1 && posix.basename(base) === names[0]) return base
    return posix.join(base, ...names)
  }
}
