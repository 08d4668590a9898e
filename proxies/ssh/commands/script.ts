/**
 * Checks the input of a shell without a terminal (`ssh -T`). Nothing is echoed, so commands cannot be
 * distinguished from passwords, and no line becomes an event of its own. Rules are applied to each line
 * before its last bytes are forwarded; the recording shows which line matched.
 */
import { Buffer } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import type { CommandRules } from '../../../src/model/command-rules.ts'

/** Characters of a line that are checked together. */
const MAX_LINE = 32_768
/** Up to this length, an unfinished line is checked with each chunk: a shell runs it at the end of input. */
const MAX_UNFINISHED = 4096

export class ScriptWatch {
  readonly #rules: CommandRules
  readonly #onRule: (rule: string, kills: boolean) => void
  readonly #decoder = new StringDecoder('utf8')
  #line = ''

  constructor(rules: CommandRules, onRule: (rule: string, kills: boolean) => void) {
    this.#rules = rules
    this.#onRule = onRule
  }

  fromClient(data: Uint8Array): void {
    if (this.#rules.isEmpty) return
    const lines = (
      this.#line + this.#decoder.write(Buffer.from(data.buffer, data.byteOffset, data.byteLength))
    ).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) if (this.#judge(line, true)) return
    if (this.#line.length > MAX_LINE) {
      if (this.#judge(this.#line, true)) return
      this.#line = ''
    } else if (this.#line.length <= MAX_UNFINISHED) {
      this.#judge(this.#line, false)
    }
  }

  /** Returns true if the session ends. */
  #judge(line: string, isWhole: boolean): boolean {
    if (line === '') return false
    const rule = this.#rules.find(line)
    if (rule === undefined || (rule.action === 'notify' && !isWhole)) return false
    // A stream cannot be held for approvers, so a rule that asks forbids the line.
    const kills = rule.action !== 'notify'
    this.#onRule(rule.text, kills)
    return kills
  }
}
