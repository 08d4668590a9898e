/**
 * Reads the command lines of a shell from its terminal's screen. The user's keys only mark the begin and end
 * of a line; its text is read from the screen when the target replies to Return by moving to the next row. So
 * no line is read where nothing is echoed (passwords), and none in the alternate screen (editors, pagers,
 * multiplexers).
 *
 * The confidence of a line is `certain` if
 * - the text before it is a prompt: it ends as prompts do, or a line editor had turned bracketed paste on;
 * - that prompt stands unchanged before the line from the first key to Return;
 * - the line is one line, and if it was only typed, it equals the typed text.
 * Each of these is a doubt: the prompt is a continuation prompt, or is only known from an earlier line or by
 * the typed text; the line has several lines; it was typed before the prompt was shown; the terminal was
 * resized, or output was skipped, since the line before; it fills its row and was edited; it differs from the
 * typed text. A line with one doubt is `likely`, with more `uncertain`. `uncertain` is also a line without a
 * prompt, and any line on a screen where the cursor was moved to a row by its number, as programs do that
 * draw a whole screen; there, text without a prompt is no line.
 *
 * Output is parsed only when needed: while Return waits for its echo, and when a key arrives (unread.ts).
 * Output of a flooding terminal is skipped until the next key, so its cost is bounded by PARSE_RATE.
 */
import type { Buffer } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import { TerminalParser } from '../../../recordings/decode/terminal/parser.ts'
import { Bucket } from '../../bytes/bucket.ts'
import { isReadable, readingSize } from '../codec/terminal-size.ts'
import type { Confidence } from './certainty.ts'
import { Certainty, MAX_PROMPTS } from './certainty.ts'
import { CookedLine } from './cooked-line.ts'
import { KeyReader } from './keys.ts'
import { isContinuation, isMasked, isPrompt, mayEndPrompt, searched } from './prompt.ts'
import { type Reading, readLine } from './reading.ts'
import { Screen } from './screen.ts'
import { TypedLine } from './typed-line.ts'
import { UnreadOutput } from './unread.ts'

export interface CommandLine {
  text: string
  confidence: Confidence
  /** Set if the line continues the line before. */
  isContinuation: boolean
  /** The text that was checked before Return was sent. Undefined if none was checked. */
  judged: string | undefined
}

/** A line that could not be read from the screen. */
export interface UnreadLine {
  /** The line by its keys, for the rules only: it may be a secret. Undefined if the keys are ambiguous. */
  guess: string | undefined
  /** The line by its keys, as read without a line editor. Undefined if the keys were echoed. */
  cooked: string | undefined
  /** Set if nothing was shown from the line's first key to Return. */
  isUnechoed: boolean
  /** Set if Return moved the cursor to the next row, as after a password. */
  isReturnEchoed: boolean
}

export interface CommandReaderOptions {
  columns: number
  rows: number
  /** Milliseconds, never decreasing. */
  now: () => number
  onCommand: (command: CommandLine) => void
  onUnread: (line: UnreadLine) => void
}

/** Burst of parsed output in bytes, and bytes per second after it. */
const PARSE_BURST = 1024 * 1024
const PARSE_RATE = 256 * 1024
/** Output is parsed in pieces of this size, so that parsing can stop soon after an answered Return. */
const PIECE = 2048
/** Lines that wait until the target accepts them. */
const MAX_WAITING = 32
/** Line feeds after Return within which its line is searched. */
const MAX_FEEDS = 100
/** Cells that hold any end of a prompt, second cells included. */
const PROMPT_END_CELLS = 6
const EOT = 0x04
const ESC = 0x1b
const LF = 0x0a

export class CommandReader {
  readonly #screen: Screen
  readonly #now: () => number
  readonly #onCommand: CommandReaderOptions['onCommand']
  readonly #onUnread: CommandReaderOptions['onUnread']
  readonly #keys = new KeyReader()
  readonly #unread = new UnreadOutput()
  readonly #budget: Bucket
  #parser: TerminalParser
  #decoder = new StringDecoder('utf8')
  /** The line being typed. */
  #line: TypedLine | undefined
  /** The line typed before its prompt was shown. */
  #ahead: TypedLine | undefined
  /** The screen at the first input that looked like no key, while no line was typed. */
  #maybe: TypedLine | undefined
  readonly #cooked = new CookedLine()
  /** The reading of the first waiting line when the cursor left its row, with the line editor still on. */
  #tentative: { found: Reading; written: number } | undefined
  /** The row of the last line read. */
  #takenRow = -1
  /** Lines whose Return was sent to the target. */
  #waiting: TypedLine[] = []
  /** Known prompts, newest first. */
  #prompts: string[] = []
  readonly #certainty = new Certainty()
  /** Whether lines can be read at the terminal's size. */
  #isReadable: boolean
  /** Time of the last output, in milliseconds. */
  #outputAt = 0
  /** Number of output chunks so far. */
  #outputs = 0
  #watched = false

  constructor({ columns, rows, now, onCommand, onUnread }: CommandReaderOptions) {
    this.#now = now
    this.#onCommand = onCommand
    this.#onUnread = onUnread
    this.#budget = new Bucket(PARSE_BURST, PARSE_RATE, now)
    this.#isReadable = isReadable({ columns, rows })
    const size = readingSize({ columns, rows })
    this.#screen = new Screen(size.columns, size.rows)
    this.#screen.onLineFeed = () => this.#fed()
    this.#screen.onPasteOff = () => this.#editorOff()
    this.#parser = new TerminalParser(this.#screen)
  }

  /** Receives the target's output, both kinds. */
  output(data: Uint8Array): void {
    this.#outputAt = this.#now()
    this.#outputs++
    if (!this.#isLooking) {
      this.#unread.append(data)
      return
    }
    this.#readUnread()
    for (let at = 0; at < data.length; at += PIECE) {
      const piece = data.subarray(at, at + PIECE)
      if (!this.#isLooking) {
        this.#unread.append(data.subarray(at))
        return
      }
      if (!this.#budget.take(piece.length)) {
        // Too much output: lines in it that wait for their echo can no longer be found.
        this.close()
        this.#watched = false
        this.#unread.append(data.subarray(at))
        return
      }
      this.#parse(piece)
    }
  }

  /** Reports all waiting lines as unread. */
  close(): void {
    for (const line of this.#waiting.splice(0)) this.#missed(line)
    this.#tentative = undefined
  }

  /** Reports lines as unread whose Return got no output for `ms` milliseconds. */
  expire(ms: number): void {
    for (const line of this.#waiting) {
      if (!this.#isUnanswered(line) || this.#now() - line.lastKeyAt < ms) continue
      this.#missed(line)
      line.isTold = true
    }
  }

  /** Receives the user's keys when they are sent to the target. */
  input(data: Uint8Array): void {
    this.#readUnread()
    this.#beginAnew()
    for (const byte of data) {
      this.#key(byte)
      this.#cooked.type(byte)
    }
  }

  resize(columns: number, rows: number): void {
    this.#readUnread()
    this.#isReadable = isReadable({ columns, rows })
    if (this.#line && !this.#isReadable) this.#line.isBlind = true
    const size = readingSize({ columns, rows })
    this.#screen.resize(size.columns, size.rows)
    this.#certainty.resized = true
  }

  /**
   * Returns the first place in `data` where a line may end, or undefined if there is none. A place other than
   * a Return ends a line only without a line editor: a line end in a paste, or ^D (with a line editor
   * apparently on, the second of two).
   */
  findEnd(data: Uint8Array): { at: number; isReturn: boolean } | undefined {
    this.#readUnread()
    const { alternate, bracketedPaste } = this.#screen
    if (alternate) return undefined
    const keys = this.#keys.clone()
    let { isEnd } = this.#cooked
    for (const [at, byte] of data.entries()) {
      const { isInString } = keys
      const key = keys.read(byte, bracketedPaste)
      if (key === 'return' || keys.runs) {
        if (isInString && at === 0) this.#lose()
        return { at, isReturn: true }
      }
      if (key === 'newline' || (byte === EOT && (isEnd || !bracketedPaste))) return { at, isReturn: false }
      isEnd = byte === EOT
    }
    return undefined
  }

  /** The rows of the screen, without blank ones at its end. */
  get screen(): string[] {
    this.#readUnread()
    const rows = Array.from({ length: this.#screen.rows }, (_, row) =>
      (this.#screen.at(row)?.text(this.#screen.columns) ?? '').trimEnd(),
    )
    return rows.slice(0, rows.findLastIndex((row) => row !== '') + 1)
  }

  /** Whether the target has not yet accepted the line of a Return. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Whether all typed keys seem to be echoed. `quiet`: milliseconds without output that count as such. */
  isSettled(quiet: number): boolean {
    const line = this.#line
    if (line === undefined || line.keys === 0) return true
    const { text } = line
    if (text !== undefined) return readLine(this.#screen, line, this.#prompts, true)?.text === text
    return this.#outputs > line.outputs && this.#now() - this.#outputAt >= quiet
  }

  /** The line by its keys, for the rules only. Undefined if there is no line, or the keys are ambiguous. */
  get guess(): string | undefined {
    return this.#line?.guess
  }

  /** Like `guess`, with the keys typed before the line's prompt. */
  get guessAhead(): string | undefined {
    const ahead = this.#ahead?.guess
    return ahead && ahead + (this.#line?.guess ?? '')
  }

  /** The line by its keys as a terminal without a line editor reads them, for the rules only. */
  get cooked(): string {
    return this.#cooked.text
  }

  /** Whether anything was shown since the line's first key. */
  get isShown(): boolean {
    return this.#line !== undefined && this.#line.firstWritten !== this.#screen.written
  }

  /** Whether the line seems to be typed at a shell's prompt, and is no password. */
  get isAtPrompt(): boolean {
    const line = this.#line
    return line !== undefined && (line.isAtPrompt || line.isAhead || this.#prompts.includes(line.mark.prompt))
  }

  /** Marks the line as reported. */
  tell(): void {
    if (this.#line) this.#line.isTold = true
  }

  /** Whether keys inserted a line that is not shown: neither screen nor keys determine it. */
  get isHidden(): boolean {
    const line = this.#line
    return line !== undefined && line.guess === undefined && line.firstOutputs === this.#outputs
  }

  /** Whether keys do not determine the line, and the screen is unreliable. */
  get isBlind(): boolean {
    return this.#line !== undefined && this.#line.guess === undefined && this.#line.isBlind
  }

  /** Whether a Return got no output, and nothing of its line was shown before. */
  get isUnanswered(): boolean {
    return this.#waiting.some((line) => this.#isUnanswered(line))
  }

  #isUnanswered(line: TypedLine): boolean {
    return line.isQuiet && !line.isTold && line.outputs === this.#outputs
  }

  /** Milliseconds since the last Return whose line is not yet accepted. */
  get sinceReturn(): number {
    const last = this.#waiting.at(-1)
    return last === undefined ? Number.POSITIVE_INFINITY : this.#now() - last.lastKeyAt
  }

  /** Milliseconds since the line's last key. */
  get sinceKey(): number {
    return this.#line === undefined ? Number.POSITIVE_INFINITY : this.#now() - this.#line.lastKeyAt
  }

  /** If true, output is parsed as it arrives. */
  set watched(watched: boolean) {
    this.#watched = watched
    if (watched) this.#readUnread()
  }

  /** Returns the line as it stands before Return, and notes that it was checked. */
  current(): { text: string; isContinuation: boolean } | undefined {
    const line = this.#line ?? this.#find()
    if (line === undefined) return undefined
    const found = readLine(this.#screen, line, this.#prompts, line.text !== undefined)
    const text = found?.text ?? this.#searched()
    if (text === undefined || text === '') return undefined
    line.judged = text
    return { text, isContinuation: found !== undefined && isContinuation(found.prompt) }
  }

  get #isLooking(): boolean {
    return this.#watched || this.#waiting.length > 0
  }

  // The screen --------------------------------------------------------------------------------------------

  #parse(data: Uint8Array): void {
    this.#screen.isEdited = this.#line !== undefined || this.#waiting.length > 0
    this.#parser.push(this.#decoder.write(data as Buffer))
  }

  #readUnread(): void {
    if (this.#unread.isEmpty) return
    const { data, dropped, alternate } = this.#unread.take()
    if (!dropped) {
      this.#parse(data)
      return
    }
    // The dropped output may have ended within a sequence: start at the next sequence or row.
    this.#parser = new TerminalParser(this.#screen)
    this.#decoder = new StringDecoder('utf8')
    const wasAlternate = this.#screen.alternate
    this.#screen.forget()
    this.#screen.alternate = alternate ?? wasAlternate
    this.#certainty.skipped = true
    const begin = data.findIndex((byte) => byte === LF || byte === ESC)
    this.#parse(data.subarray(Math.max(0, begin)))
  }

  // The keys ----------------------------------------------------------------------------------------------

  #key(byte: number): void {
    const { isInString } = this.#keys
    const key = this.#keys.read(byte, this.#screen.bracketedPaste)
    if (this.#screen.alternate) return
    if (key === 'none') {
      if (!this.#line) this.#maybe ??= new TypedLine(this.#screen, this.#outputs)
      return
    }
    if (key === 'return') {
      if (isInString) this.#lose()
      this.#return()
      return
    }
    const line = this.#line ?? this.#begin(this.#found())
    line.lastKeyAt = this.#now()
    line.outputs = this.#outputs
    switch (key) {
      case 'text':
        line.type(byte)
        break
      case 'newline':
        line.hasNewlines = true
        line.type(LF)
        break
      case 'erase':
        line.erase()
        break
      case 'edit':
        line.edit(this.#keys.edit)
        break
      case 'suspend':
        line.edit('unknown')
        break
      case 'end':
        if (line.text === '') this.#line = undefined
        else if (this.#cooked.isEnd && !line.mark.byEditor) this.#return()
        else line.edit('delete')
        break
      case 'interrupt':
        this.#line = this.#ahead = this.#maybe = undefined
    }
  }

  #begin(line = new TypedLine(this.#screen, this.#outputs)): TypedLine {
    this.#maybe = undefined
    const [waiting] = this.#waiting
    if (waiting !== undefined && this.#tentative !== undefined) this.#take(waiting, this.#tentative.found)
    line.lastKeyAt = this.#now()
    this.#line = line
    this.#screen.addressed = false
    const { prompt, byEditor } = line.mark
    if (prompt !== '' && (byEditor || isPrompt(prompt))) {
      this.#prompts = [prompt, ...this.#prompts.filter((other) => other !== prompt)].slice(0, MAX_PROMPTS)
      // Lines answered without moving to the next row: passwords, keys for programs.
      const answered = this.#waiting.filter(({ outputs }) => outputs !== this.#outputs)
      this.#waiting = this.#waiting.filter(({ outputs }) => outputs === this.#outputs)
      for (const one of answered) this.#missed(one)
    }
    line.isAhead = this.#waiting.length > 0
    line.isBlind = !this.#isReadable
    return line
  }

  /** Handles a Return within an apparent reply of the terminal: the effect of its keys is unknown. */
  #lose(): void {
    const line = this.#line ?? this.#begin(this.#maybe)
    line.edit('unknown')
  }

  /** Returns the line that input without keys has put behind a prompt since. */
  #found(): TypedLine | undefined {
    const line = this.#maybe
    if (!line?.isAtPrompt || !this.#isShownBehind(line.mark.prompt)) return undefined
    line.find()
    return line
  }

  /** Returns that line, or any text behind a known prompt even if no key explains it: Return will run it. */
  #find(): TypedLine | undefined {
    if (this.#waiting.length > 0) return undefined
    const found = this.#found()
    if (found) return this.#begin(found)
    const prompt = this.#prompts.find((one) => this.#isShownBehind(one))
    if (prompt === undefined) return undefined
    const line = this.#begin()
    line.mark.prompt = prompt
    line.find()
    return line
  }

  #isShownBehind(prompt: string): boolean {
    const shown = this.#screen.text(this.#screen.span(this.#screen.row), this.#screen.cursor)
    return prompt !== '' && shown.startsWith(prompt) && shown.slice(prompt.length).trim() !== ''
  }

  /**
   * Starts anew if the line's prompt is gone and the cursor stands at a prompt: the keys went elsewhere, or
   * were typed ahead.
   */
  #beginAnew(): void {
    const line = this.#line
    if (line === undefined || this.#screen.alternate) return
    // A cheap check for each key, rarely true: only then is the whole line assembled.
    if (!mayEndPrompt(this.#screen.textBefore(PROMPT_END_CELLS))) return
    const before = this.#screen.text(this.#screen.span(this.#screen.row), this.#screen.cursor)
    if (!isPrompt(before) || readLine(this.#screen, line, []) !== undefined) return
    this.#line = undefined
    this.#ahead = line
  }

  #return(): void {
    const { isShown } = this
    const line = this.#line ?? this.#find() ?? this.#begin()
    if ((line.keys === 0 || line.isFound) && this.#ahead) line.follow(this.#ahead)
    if (!isShown) line.cooked = this.#cooked.text
    this.#line = this.#ahead = undefined
    line.lastKeyAt = this.#now()
    line.outputs = this.#outputs
    line.written = this.#screen.written
    this.#waiting.push(line)
    if (this.#waiting.length > MAX_WAITING) this.#missed(this.#waiting.shift()!)
  }

  // The lines ---------------------------------------------------------------------------------------------

  /** Called before the cursor leaves its row. The first waiting line may now be found there. */
  #fed(): void {
    const [first] = this.#waiting
    if (first === undefined) return
    for (const line of this.#waiting) line.isReturnEchoed ??= line.written === this.#screen.written
    if (++first.feeds > MAX_FEEDS) {
      this.#waiting.shift()
      this.#tentative = undefined
      this.#missed(first)
      return
    }
    const exact = this.#waiting.findIndex((line) => line.keys > 0 && this.#read(line)?.text === line.text)
    if (exact > 0) for (const other of this.#waiting.splice(0, exact)) this.#missed(other)
    const line = this.#waiting[0]!
    const found = this.#read(line)
    if (exact < 0 && !this.#isAnswer(line, found)) return
    if (found && line.text === undefined && line.mark.byEditor && this.#screen.bracketedPaste) {
      this.#tentative = { found, written: this.#screen.written }
    } else {
      this.#take(line, found)
    }
  }

  #read(line: TypedLine): Reading | undefined {
    return line.keys === 0 ? undefined : readLine(this.#screen, line, this.#prompts)
  }

  /** Returns whether the move to the next row means that the target has accepted this line. */
  #isAnswer(line: TypedLine, found: Reading | undefined): boolean {
    if (line.keys === 0) return true
    if (found === undefined) return false
    if (line.isAhead && (found.text === '' || line.text !== undefined || this.#row === this.#takenRow))
      return false
    // The row is full, and the line continues in the next row.
    return !(this.#screen.isFilled && line.text?.startsWith(found.text))
  }

  /**
   * Handles the end of bracketed paste: the line editor has accepted the line. Drawing an edited line of
   * several rows moves the cursor down too; only this event distinguishes acceptance from drawing.
   */
  #editorOff(): void {
    const [line] = this.#waiting
    if (line === undefined || line.keys === 0 || !line.mark.byEditor) return
    const { found, written } = this.#tentative ?? {}
    const now = written === this.#screen.written ? found : this.#read(line)
    if (
      now !== undefined &&
      (line.text === undefined ? !line.isAhead || this.#row !== this.#takenRow : line.text === now.text)
    )
      this.#take(line, now)
  }

  get #row(): number {
    return this.#screen.gone + this.#screen.span(this.#screen.row).first
  }

  /** Removes the first waiting line and reports it. */
  #take(line: TypedLine, found: Reading | undefined): void {
    this.#waiting.shift()
    this.#tentative = undefined
    this.#takenRow = this.#row
    if (found === undefined || !isEcho(line, found)) {
      this.#missed(line)
      return
    }
    if (found.text === '') return
    if (isMasked(found.text) && found.text !== line.text) return
    this.#report(line, found)
  }

  #report(line: TypedLine, found: Reading): void {
    const confidence = this.#certainty.of(line, found, this.#screen)
    if (confidence === undefined) return
    const { text, prompt } = found
    this.#onCommand({ text, confidence, isContinuation: isContinuation(prompt), judged: line.judged })
  }

  /** Reports a line that could not be read: the target has accepted it, or never will. */
  #missed(line: TypedLine): void {
    const { guess, cooked } = line
    if (line.isTold || line.isEmpty) return
    // In programs that draw a whole screen, keys are for the program.
    if (!line.isAtPrompt && this.#screen.addressed) return
    const isUnechoed = line.isQuiet
    if (!isUnechoed && (line.isAhead || !line.isAtPrompt)) return
    line.isTold = true
    this.#onUnread({ guess, cooked, isUnechoed, isReturnEchoed: line.isReturnEchoed === true })
  }

  #searched(): string | undefined {
    return searched(this.#screen.text(this.#screen.span(this.#screen.row)).trimEnd())
  }
}

/**
 * Returns false if nothing of the line was shown before its Return, and the text in its place now differs
 * from the typed text. Line editors may replace text (abbreviations), terminals do not.
 */
function isEcho({ isQuiet, text, mark }: TypedLine, found: Reading): boolean {
  if (!isQuiet || text === undefined || text === found.text) return true
  return found.text !== '' && mark.byEditor
}
