/**
 * Reads the command lines of a shell from what its terminal shows. The user's keys only say when a line begins and
 * ends; what it says is read from the screen when the target answers Return by going to the next row. So there is no
 * line where nothing is echoed (passwords), and none in the alternate screen (editors, pagers, multiplexers).
 *
 * The confidence of a line is `certain` when
 *  - what stands before it is a prompt: it ends as prompts do, or a line editor had turned bracketed paste on;
 *  - that prompt stands unchanged before the line from the first key to Return;
 *  - the line is one line, and where it was only typed, it is what was typed.
 * Each of these is a doubt: the prompt is one that goes on with an earlier line, or is known from an earlier line or
 * by the typed text only; the line has several lines; it was typed before the prompt was there; the terminal was
 * resized, or output was skipped, since the line before; it fills its row and was edited; it is not what was typed. With one doubt the line is
 * `likely`, with more `uncertain`; so is one without a prompt, and one on a screen where the cursor was sent to a row by
 * its number, as programs do that draw a whole screen; there a line without a prompt is none.
 *
 * Output is looked at only when that matters: while Return waits for its answer, and when a key comes (unread.ts). A
 * terminal that floods is given up until the next key, so what it costs is bounded by PARSE_RATE.
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
  /** It goes on with the line before. */
  isContinuation: boolean
  /** The text with which it was judged before Return went to the target; undefined: it was not. */
  judged: string | undefined
}

/** A line that could not be read. */
export interface UnreadLine {
  /** By its keys, for the rules alone: it may be a secret. undefined: they do not tell it. */
  guess: string | undefined
  /** The same by the keys as a terminal without a line editor takes them; undefined: they were shown. */
  cooked: string | undefined
  /** Nothing was shown from its first key to Return. */
  isUnechoed: boolean
  /** Return went to the next row, as after a password. */
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

/** Bytes of output that are parsed at once, and then for each second. */
const PARSE_BURST = 1024 * 1024
const PARSE_RATE = 256 * 1024
/** Output is parsed in pieces of this size, so that what follows an answered Return is not. */
const PIECE = 2048
/** Lines that wait for the target to take them. */
const MAX_WAITING = 32
/** Line feeds within which a line is looked for after Return. */
const MAX_FEEDS = 100
/** More than the characters by which a prompt is known take, with their second cells. */
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
  /** The line that is being typed. */
  #line: TypedLine | undefined
  /** Keys that came before the prompt of the line. */
  #ahead: TypedLine | undefined
  /** The screen when keys came that seemed to be none, while no line was typed. */
  #maybe: TypedLine | undefined
  readonly #cooked = new CookedLine()
  /** The first of those that wait, as it stood when the cursor left its row while the line editor was still on. */
  #tentative: { found: Reading; written: number } | undefined
  /** The row of the line that was read last. */
  #takenRow = -1
  /** Lines whose Return went to the target. */
  #waiting: TypedLine[] = []
  /** The newest prompt first. */
  #prompts: string[] = []
  readonly #certainty = new Certainty()
  /** The terminal's size is one with which lines can be read. */
  #isReadable: boolean
  /** Milliseconds: when output came last. */
  #outputAt = 0
  /** Pieces of output so far. */
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

  /** Output of the target, of both kinds. */
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
        // A flood: whatever waits for an answer in it is not found any more.
        this.close()
        this.#watched = false
        this.#unread.append(data.subarray(at))
        return
      }
      this.#parse(piece)
    }
  }

  /** What waits for an answer gets none. */
  close(): void {
    for (const line of this.#waiting.splice(0)) this.#missed(line)
    this.#tentative = undefined
  }

  /** Tells of the lines after whose Return nothing has come for so many milliseconds. */
  expire(ms: number): void {
    for (const line of this.#waiting) {
      if (!this.#isUnanswered(line) || this.#now() - line.lastKeyAt < ms) continue
      this.#missed(line)
      line.isTold = true
    }
  }

  /** Keys of the user, as they go to the target. */
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
   * Where a line first may end in these keys, were they to come next; undefined: nowhere. Where that is by no Return, it
   * is one only where no line editor is: a line's end in a paste, and ^D, the second of two where an editor seems to be.
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

  /** Returns went to the target and it has not answered yet. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Everything that was typed has its echo, as far as can be told; `quiet`: milliseconds without output. */
  isSettled(quiet: number): boolean {
    const line = this.#line
    if (line === undefined || line.keys === 0) return true
    const { text } = line
    if (text !== undefined) return readLine(this.#screen, line, this.#prompts, true)?.text === text
    return this.#outputs > line.outputs && this.#now() - this.#outputAt >= quiet
  }

  /** What the keys of the line say, for the rules alone; undefined: there is none, or they do not tell. */
  get guess(): string | undefined {
    return this.#line?.guess
  }

  /** The same with those that came before its prompt. */
  get guessAhead(): string | undefined {
    const ahead = this.#ahead?.guess
    return ahead && ahead + (this.#line?.guess ?? '')
  }

  /** What the keys say to a terminal without a line editor, for the rules alone. */
  get cooked(): string {
    return this.#cooked.text
  }

  /** Something was shown since the first key of the line. */
  get isShown(): boolean {
    return this.#line !== undefined && this.#line.firstWritten !== this.#screen.written
  }

  /** The line is, as far as can be told, one for a shell, and no password. */
  get isAtPrompt(): boolean {
    const line = this.#line
    return line !== undefined && (line.isAtPrompt || line.isAhead || this.#prompts.includes(line.mark.prompt))
  }

  /** The line was told as one that could not be read. */
  tell(): void {
    if (this.#line) this.#line.isTold = true
  }

  /** Keys have put a line there that nothing shows: it can be known neither by the screen nor by the keys. */
  get isHidden(): boolean {
    const line = this.#line
    return line !== undefined && line.guess === undefined && line.firstOutputs === this.#outputs
  }

  /** Neither do its keys tell it, nor can the screen be relied on. */
  get isBlind(): boolean {
    return this.#line !== undefined && this.#line.guess === undefined && this.#line.isBlind
  }

  /** A Return went to the target with nothing shown of its line, and nothing since. */
  get isUnanswered(): boolean {
    return this.#waiting.some((line) => this.#isUnanswered(line))
  }

  #isUnanswered(line: TypedLine): boolean {
    return line.isQuiet && !line.isTold && line.outputs === this.#outputs
  }

  /** Milliseconds since the last Return that was not answered. */
  get sinceReturn(): number {
    const last = this.#waiting.at(-1)
    return last === undefined ? Number.POSITIVE_INFINITY : this.#now() - last.lastKeyAt
  }

  /** Milliseconds since the last key of the line. */
  get sinceKey(): number {
    return this.#line === undefined ? Number.POSITIVE_INFINITY : this.#now() - this.#line.lastKeyAt
  }

  /** While true, output is looked at as it comes. */
  set watched(watched: boolean) {
    this.#watched = watched
    if (watched) this.#readUnread()
  }

  /** The line as it stands before Return, and remembers that it was judged. */
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
    // What was dropped may have ended within a sequence: begin where one begins, or a row.
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
      // Lines that were answered without going to the next row: passwords, keys for programs.
      const answered = this.#waiting.filter(({ outputs }) => outputs !== this.#outputs)
      this.#waiting = this.#waiting.filter(({ outputs }) => outputs === this.#outputs)
      for (const one of answered) this.#missed(one)
    }
    line.isAhead = this.#waiting.length > 0
    line.isBlind = !this.#isReadable
    return line
  }

  /** What seemed to be an answer of the terminal has a Return in it: its keys have done what nobody knows. */
  #lose(): void {
    const line = this.#line ?? this.#begin(this.#maybe)
    line.edit('unknown')
  }

  /** The line that keys which seemed to be none have put behind a prompt since. */
  #found(): TypedLine | undefined {
    const line = this.#maybe
    if (!line?.isAtPrompt || !this.#isShownBehind(line.mark.prompt)) return undefined
    line.find()
    return line
  }

  /** The same, or any that stands behind a prompt, though no key is known for it: Return will run it. */
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

  /** A line whose prompt is gone, and with the cursor at a prompt: its keys were for something else, or typed ahead. */
  #beginAnew(): void {
    const line = this.#line
    if (line === undefined || this.#screen.alternate) return
    // Asked for each key, and seldom true: the whole line is only put together then.
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

  /** The cursor is about to leave its row: whoever waits for that may find his line here. */
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

  /** That the cursor goes to the next row means that the target has taken this line. */
  #isAnswer(line: TypedLine, found: Reading | undefined): boolean {
    if (line.keys === 0) return true
    if (found === undefined) return false
    if (line.isAhead && (found.text === '' || line.text !== undefined || this.#row === this.#takenRow))
      return false
    // The row is full, and the rest of the line comes in the next one.
    return !(this.#screen.isFilled && line.text?.startsWith(found.text))
  }

  /**
   * A line editor has turned bracketed paste off, and so has taken the line. An edited line goes to the next row when
   * it is drawn as well, if it has several rows: only this tells the one from the other.
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

  /** The first line that waits is done with. */
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

  /** The target has taken the line, or never will, and nothing of it could be read. */
  #missed(line: TypedLine): void {
    const { guess, cooked } = line
    if (line.isTold || line.isEmpty) return
    // Where programs draw a whole screen, keys are for them.
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
 * False: nothing of the line was shown before its Return, and what stands in its place now is not what was typed. Line
 * editors may put something else there (abbreviations), terminals do not.
 */
function isEcho({ isQuiet, text, mark }: TypedLine, found: Reading): boolean {
  if (!isQuiet || text === undefined || text === found.text) return true
  return found.text !== '' && mark.byEditor
}
