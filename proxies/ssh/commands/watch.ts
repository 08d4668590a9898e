/**
 * Checks the commands of one channel with a terminal: reports each line that the reader finds, with the rule
 * that it matches. If a rule can kill, Return is held until the screen shows the keys typed before it, so
 * that the line is checked before the target receives it. That takes no time for an echoed line, and
 * otherwise at most HOLD_MS. In total it is limited to HOLD_BURST_MS and then a tenth of the time, so that
 * input without echo is not slowed down for long. A line that cannot be read in time is checked by its keys,
 * and again when the target accepts it.
 *
 * A rule that asks holds Return until approvers have answered. What is typed meanwhile is dropped by the channel; ^C
 * gives up.
 *
 * Keys may be a password's: they are checked but never reported. If neither screen nor keys determine a line,
 * the session ends: for a line from the history that is not shown at a prompt for HIDDEN_MS, or a line drawn
 * where it cannot be read. Elsewhere such a line is probably a password with arrow keys in it: it is
 * forwarded, and logged as an event.
 */
import { type CommandRules, strictest } from '../../../src/model/command-rules.ts'
import { Bucket } from '../../bytes/bucket.ts'
import type { Confidence } from './certainty.ts'
import { type CommandLine, CommandReader, type UnreadLine } from './reader.ts'

/** Longest time that Return waits for the echo of the keys before it, and of the Return before it. */
export const HOLD_MS = 150
export const HOLD_BURST_MS = 3_000
const HOLD_RATE_MS = 100
/** Longest time that Return waits for output of a line that its keys do not determine. */
export const HIDDEN_MS = 10_000
/** After holding this long, the user may want to interrupt. */
const LONG_HOLD_MS = 1_000
/** A Return without output for this long was not echoed. */
export const UNECHOED_MS = 3_000
/** An edited line counts as complete after this long without output. */
const QUIET_MS = 15
/** Characters of a line that are reported; a longer line is cut after its check. */
const MAX_REPORTED = 4096
/** Characters of a line joined with its continuations. */
const MAX_JOINED = 16_384

export interface Command {
  /** Empty if the line could not be read. */
  line: string
  confidence: Confidence | 'unread'
  /** Why the line could not be read. */
  reason?: string
  rule?: string
  /** The rule ends the session. `before`: the target does not receive the line. */
  kills?: 'before' | 'after'
  /** The line did not run, and the session goes on. */
  isRefused?: true
}

/** A line that approvers are asked about. */
export interface Question {
  /** Empty if it could not be read: its keys may be a password's. */
  line: string
  rule: string
  /** The screen, from the top. */
  screen: string[]
}

export type Answered = (isAccepted: boolean, message: string) => void

const HIDDEN = 'nothing is shown of it, and its keys do not tell it'
const BLIND = 'the terminal has a size with which it cannot be read, and its keys do not tell it'
const BY_KEYS = 'it was judged by its keys'
const UNECHOED = 'it was typed without echo'
const UNREADABLE = 'the screen did not show it'

export interface CommandWatchOptions {
  columns: number
  rows: number
  rules: CommandRules
  /** Milliseconds, never decreasing. */
  now: () => number
  onCommand: (command: Command) => void
  /** Called when the bytes held back may be passed to `admit` again. */
  onAdmit: () => void
  /** Asks approvers; calls back later. Returns a function that gives up. */
  ask: (question: Question, answered: Answered) => () => void
  /** Called with the answer: of the bytes held back, only Return is offered again, if it is accepted. */
  onAnswered: Answered
}

export class CommandWatch {
  readonly #rules: CommandRules
  readonly #onCommand: CommandWatchOptions['onCommand']
  readonly #onAdmit: () => void
  readonly #ask: CommandWatchOptions['ask']
  readonly #onAnswered: Answered
  readonly #now: () => number
  readonly #reader: CommandReader
  readonly #holds: Bucket
  /** The line before, joined with the lines that it continues. */
  #before = ''
  #timer: NodeJS.Timeout | undefined
  #heldAt: number | undefined
  #unanswered: NodeJS.Timeout | undefined
  #ended = false
  /** The question that is not answered yet. */
  #asking: { question: Question; giveUp: () => void } | undefined
  /** The answer that lets the held Return pass, and then belongs to the line that the target accepts. */
  #accepted: { message: string; isSent: boolean } | undefined

  constructor({ columns, rows, rules, now, onCommand, onAdmit, ask, onAnswered }: CommandWatchOptions) {
    this.#rules = rules
    this.#now = now
    this.#onCommand = onCommand
    this.#onAdmit = onAdmit
    this.#ask = ask
    this.#onAnswered = onAnswered
    this.#holds = new Bucket(HOLD_BURST_MS, HOLD_RATE_MS, now)
    this.#reader = new CommandReader({
      columns,
      rows,
      now,
      onCommand: (line) => this.#read(line),
      onUnread: (line) => this.#missed(line),
    })
  }

  /** Returns how many of these bytes may be sent to the target now; the rest must wait for `onAdmit`. */
  admit(data: Uint8Array): number {
    if (this.#ended || !this.#rules.canHold) return data.length
    if (this.#asking) return 0
    const end = this.#reader.findEnd(data)
    if (end === undefined) return data.length
    const { at, isReturn } = end
    if (at === 0 && this.#accepted && !this.#accepted.isSent) {
      this.#accepted.isSent = true
      return 1
    }
    if (!isReturn) {
      this.#release()
      return at > 0 ? at : this.#judgeKeys([this.#reader.guess, this.#reader.cooked]) ? 1 : 0
    }
    const isEarly = this.#reader.isWaiting && this.#reader.sinceReturn < HOLD_MS
    if (isEarly && !this.#holds.isEmpty) return this.#hold()
    if (at > 0) {
      this.#release()
      return at
    }
    const isUnseen = this.#reader.sinceKey < HOLD_MS && !this.#reader.isSettled(QUIET_MS)
    if (isUnseen && !this.#holds.isEmpty) return this.#hold()
    const { isBlind, isHidden, isAtPrompt } = this.#reader
    if (isHidden && isAtPrompt && !isBlind && this.#reader.sinceKey < HIDDEN_MS) return this.#hold()
    this.#release()
    if (isHidden && !isAtPrompt && !isBlind) {
      this.#report({ line: '', confidence: 'unread', reason: HIDDEN })
      this.#reader.tell()
    } else if (isBlind || isHidden) {
      const reason = isBlind ? BLIND : HIDDEN
      if (!this.#rules.canKill) return this.#hasAsked('', this.#rules.asking ?? '')
      this.#report({ line: '', confidence: 'unread', reason, kills: 'before' })
      return 0
    }
    return this.#judge() ? 1 : 0
  }

  /** Whether `admit` has been holding bytes back for a while. */
  get isHolding(): boolean {
    return this.#heldAt !== undefined && this.#now() - this.#heldAt >= LONG_HOLD_MS
  }

  /** Whether approvers are asked: nothing that is typed now counts, but ^C. */
  get isAsking(): boolean {
    return this.#asking !== undefined
  }

  /** Gives up the question, for this reason. */
  giveUp(reason: string): void {
    const asking = this.#asking
    if (!asking) return
    this.#asking = undefined
    asking.giveUp()
    this.#refused(asking.question, reason)
  }

  fromClient(data: Uint8Array): void {
    if (this.#ended) return
    this.#release()
    this.#reader.input(data)
    this.#awaitEcho()
  }

  /** Schedules the report of a Return that is never echoed. */
  #awaitEcho(): void {
    if (this.#unanswered || !this.#reader.isUnanswered) return
    this.#unanswered = setTimeout(() => {
      this.#unanswered = undefined
      this.#reader.expire(UNECHOED_MS)
      this.#awaitEcho()
    }, UNECHOED_MS)
  }

  fromTarget(data: Uint8Array): void {
    if (this.#ended) return
    this.#reader.output(data)
    if (this.#heldAt !== undefined) this.#onAdmit()
  }

  resize(columns: number, rows: number): void {
    this.#reader.resize(columns, rows)
  }

  /** Reports the last typed line: no more output will arrive. */
  close(): void {
    this.#asking?.giveUp()
    this.#asking = undefined
    this.#reader.close()
    this.#ended = true
    clearTimeout(this.#timer)
    clearTimeout(this.#unanswered)
  }

  #hold(): 0 {
    this.#reader.watched = true
    this.#heldAt ??= this.#now()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onAdmit, QUIET_MS)
    return 0
  }

  #release(): void {
    if (this.#heldAt === undefined) return
    this.#holds.spend(this.#now() - this.#heldAt)
    this.#heldAt = undefined
    this.#reader.watched = false
    clearTimeout(this.#timer)
  }

  /** Checks the line before its Return is forwarded. Returns false if the Return must not be forwarded now. */
  #judge(): boolean {
    const current = this.#reader.current()
    const rule = current && this.#find(current.text, current.isContinuation)
    if (current && rule?.action === 'kill') {
      this.#report({ line: current.text, confidence: 'likely', rule: rule.text, kills: 'before' })
      return false
    }
    const { guess, guessAhead, cooked, isShown } = this.#reader
    return this.#judgeKeys(
      [guess === current?.text ? undefined : guess, guessAhead, isShown ? undefined : cooked],
      current && rule?.action === 'ask' ? { line: current.text, rule: rule.text } : undefined,
    )
  }

  /** The same, by the text that the keys may stand for. `shown`: the line that has to be asked about anyway. */
  #judgeKeys(guesses: (string | undefined)[], shown?: { line: string; rule: string }): boolean {
    const other = strictest(guesses.map((one) => this.#findGuess(one)))
    if (other?.action === 'kill') {
      this.#report({ line: '', confidence: 'unread', reason: BY_KEYS, rule: other.text, kills: 'before' })
      return false
    }
    if (shown) this.#hasAsked(shown.line, shown.rule)
    else if (other?.action === 'ask') this.#hasAsked('', other.text)
    return this.#asking === undefined
  }

  /** Asks approvers about the line. */
  #hasAsked(line: string, rule: string): 0 {
    this.#release()
    const question = { line: cut(line), rule, screen: this.#reader.screen }
    const giveUp = this.#ask(question, (isAccepted, message) => {
      if (this.#asking?.question !== question || this.#ended) return
      this.#asking = undefined
      if (isAccepted) this.#accepted = { message, isSent: false }
      else this.#refused(question, message)
      this.#onAnswered(isAccepted, message)
    })
    this.#asking = { question, giveUp }
    return 0
  }

  #refused({ line, rule }: Question, reason: string): void {
    this.#report({ line, confidence: line === '' ? 'unread' : 'likely', rule, reason, isRefused: true })
  }

  /** Returns and forgets the answer for the line that the target has accepted. */
  #takeAccepted(): string | undefined {
    const accepted = this.#accepted
    if (!accepted?.isSent) return undefined
    this.#accepted = undefined
    return accepted.message
  }

  /** Finds the rule for a line by its keys. Only the line before shows whether the line continues it. */
  #findGuess(guess: string | undefined): ReturnType<CommandRules['find']> {
    return guess ? this.#find(guess, this.#before.endsWith('\\')) : undefined
  }

  /** Reports a line that the target has accepted but that could not be read. */
  #missed({ guess, cooked, isUnechoed, isReturnEchoed }: UnreadLine): void {
    if (this.#ended) return
    const rules = [this.#findGuess(guess), this.#findGuess(cooked)]
    const rule = strictest(rules)
    const accepted = this.#takeAccepted()
    const kills =
      rule !== undefined && (rule.action === 'kill' || (rule.action === 'ask' && accepted === undefined))
    this.#before = guess === undefined ? '' : this.#joined(guess, this.#before.endsWith('\\'))
    // Probably a password.
    if (isUnechoed && isReturnEchoed && !rule) return
    this.#report({
      line: '',
      confidence: 'unread',
      reason: accepted ?? (isUnechoed ? UNECHOED : UNREADABLE),
      ...(rule && { rule: rule.text }),
      ...(kills && { kills: 'after' }),
    })
  }

  /** Reports a line that the target has accepted. */
  #read({ text, confidence, isContinuation, judged }: CommandLine): void {
    if (this.#ended) return
    const rule = this.#find(text, isContinuation)
    this.#before = this.#joined(text, isContinuation)
    // The line passed before Return, so it matches only together with a line that was not known then.
    const accepted = this.#takeAccepted()
    const holds = rule?.action === 'kill' || (rule?.action === 'ask' && accepted === undefined)
    const kills = holds && judged !== text
    this.#report({
      line: text,
      confidence,
      ...(accepted !== undefined && { reason: accepted }),
      ...(rule && { rule: rule.text }),
      ...(kills && { kills: 'after' }),
    })
  }

  #find(text: string, isContinuation: boolean): ReturnType<CommandRules['find']> {
    if (this.#rules.isEmpty) return undefined
    const own = this.#rules.find(text)
    if (own?.action === 'kill' || !isContinuation) return own
    return strictest([own, this.#rules.find(this.#joined(text, true))])
  }

  /** Joins the line with the one that it continues, as a shell does. */
  #joined(text: string, isContinuation: boolean): string {
    if (!isContinuation || this.#before === '') return text
    const before = this.#before.endsWith('\\') ? this.#before.slice(0, -1) : `${this.#before}\n`
    return (before + text).slice(-MAX_JOINED)
  }

  #report(command: Command): void {
    this.#onCommand({ ...command, line: cut(command.line) })
  }
}

export function cut(line: string): string {
  return line.length <= MAX_REPORTED ? line : `${line.slice(0, MAX_REPORTED - 1)}…`
}
