/**
 * A connection policy's rules for command lines: `ACTION REGEX`, one text per rule. REGEX is in RE2's syntax,
 * which has no back references and no look-around, so the time to match grows only with the line and the size
 * of the expression. `^` and `$` match at the ends of each line. docs/api.md describes the language for
 * administrators.
 */
import { RE2JS, RE2JSSyntaxException } from 're2js'

export type RuleAction = 'notify' | 'kill'

export const MAX_COMMAND_RULES = 64
export const MAX_COMMAND_RULE_LENGTH = 512
/** Instructions of all expressions of a policy together: the most that one character of a line costs. */
export const MAX_RULE_PROGRAM = 2048

const FORM = /^(notify|kill) (\S.*)$/s

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
      'at character 1: expected "notify REGEX" or "kill REGEX", with one space between',
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

  /** Returns the rule that applies to the line: the first that kills, or else the first that notifies. */
  find(line: string): { action: RuleAction; text: string } | undefined {
    return this.findIn([line])
  }

  /** Returns the rule that applies to any of several forms of one line. */
  findIn(lines: readonly string[]): { action: RuleAction; text: string } | undefined {
    const matches = ({ expression }: Rule) => lines.some((line) => expression.test(line))
    return (
      this.#rules.find((rule) => rule.action === 'kill' && matches(rule)) ??
      this.#rules.find((rule) => rule.action === 'notify' && matches(rule))
    )
  }
}
