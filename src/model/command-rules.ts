/**
 * A connection policy's rules for command lines: `ACTION REGEX`, one text per rule. REGEX is in RE2's syntax,
 * which has no back references and no look-around, so the time to match grows only with the line and the size
 * of the expression. `^` and `$` match at the ends of each line. docs/api.md describes the language for
 * administrators.
 */
import { RE2JS, RE2JSSyntaxException } from 're2js'

/** `ask`: approvers decide before the line runs. */
export type RuleAction = 'notify' | 'ask' | 'kill'
/** The strictest first. */
const ACTIONS: readonly RuleAction[] = ['kill', 'ask', 'notify']

export const MAX_COMMAND_RULES = 64
export const MAX_COMMAND_RULE_LENGTH = 512
/** Instructions of all expressions of a policy together: the most that one character of a line costs. */
export const MAX_RULE_PROGRAM = 2048

const FORM = /^(notify|ask|kill) (\S.*)$/s

interface Rule {
  /** The rule as written. */
  text: string
  action: RuleAction
  expression: RE2JS
}

/** A rule could not be parsed. */
export class CommandRuleError extends Error {
  override name = 'CommandRuleError'
}

/** @throws CommandRuleError with the position, counted from 1 */
function parse(text: string): Rule {
  if (text.length > MAX_COMMAND_RULE_LENGTH)
    throw new CommandRuleError(`expected at most ${MAX_COMMAND_RULE_LENGTH} characters, found ${text.length}`)
  const [, action, source] = FORM.exec(text) ?? []
  if (action === undefined || source === undefined)
    throw new CommandRuleError(
      'at character 1: expected "notify REGEX", "ask REGEX" or "kill REGEX", with one space between',
    )
  try {
    return { text, action: action as RuleAction, expression: RE2JS.compile(source, RE2JS.MULTILINE) }
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error
    throw new CommandRuleError(`at character ${placeOf(error, text, source)}: ${error.getDescription()}`)
  }
}

/** Finds the first piece that RE2 rejects: its error names the piece, not the position. */
function placeOf(error: RE2JSSyntaxException, text: string, source: string): number {
  const piece = error.getPattern() ?? ''
  const at = piece === '' ? -1 : source.indexOf(piece)
  return text.length - source.length + Math.max(0, at) + 1
}

/** Returns the first invalid rule and its error, or undefined if all are valid. */
export function commandRulesFlaw(texts: readonly string[]): { index: number; message: string } | undefined {
  if (texts.length > MAX_COMMAND_RULES)
    return { index: MAX_COMMAND_RULES, message: `expected at most ${MAX_COMMAND_RULES} rules` }
  let size = 0
  for (const [index, text] of texts.entries()) {
    try {
      size += parse(text).expression.programSize()
    } catch (error) {
      if (!(error instanceof CommandRuleError)) throw error
      return { index, message: error.message }
    }
    if (size > MAX_RULE_PROGRAM)
      return { index, message: 'with this rule the expressions take too much work: make repetitions smaller' }
  }
  return undefined
}

/** The parsed rules of one policy. */
export class CommandRules {
  readonly #rules: readonly Rule[]

  /** @throws CommandRuleError */
  constructor(texts: readonly string[]) {
    this.#rules = texts.map(parse)
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0
  }

  get canKill(): boolean {
    return this.#rules.some(({ action }) => action === 'kill')
  }

  /** Whether a line can be held back: it has to be known before it runs. */
  get canHold(): boolean {
    return this.#rules.some(({ action }) => action !== 'notify')
  }

  /** The first rule that asks, for lines that cannot be read. */
  get asking(): string | undefined {
    return this.#rules.find(({ action }) => action === 'ask')?.text
  }

  /** Returns the rule that applies to the line: the first of the strictest action. */
  find(line: string): { action: RuleAction; text: string } | undefined {
    return this.findIn([line])
  }

  /** Returns the rule that applies to any of several forms of one line. */
  findIn(lines: readonly string[]): { action: RuleAction; text: string } | undefined {
    const matches = ({ expression }: Rule) => lines.some((line) => expression.test(line))
    const met = this.#rules.filter(matches)
    return strictest(met)
  }
}

/** Returns the first rule of the strictest action, or undefined if there is none. */
export function strictest<T extends { action: RuleAction }>(
  rules: readonly (T | undefined)[],
): T | undefined {
  for (const action of ACTIONS) {
    const rule = rules.find((one) => one?.action === action)
    if (rule) return rule
  }
  return undefined
}
