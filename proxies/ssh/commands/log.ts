/**
 * Writes one session's commands to the audit log at a bounded rate, since all sessions share the log, and
 * applies the result of the connection policy's rules.
 */
import type { ProxyEventCode, ProxyFields } from '../../../src/contract/gate.ts'
import { CommandRules } from '../../../src/model/command-rules.ts'
import type { Right } from '../../../src/model/rights.ts'
import { Bucket } from '../../bytes/bucket.ts'
import type { Command } from './watch.ts'

/** Burst of events, and events per second after it. Commands that match a rule have a budget of their own. */
const BURST = 50
const RATE = 5
/** Compiled rules in the cache: sessions under one policy share them. */
const MAX_COMPILED = 32
const compiled = new Map<string, CommandRules>()

export interface CommandLogOptions {
  rules: readonly string[]
  /** Milliseconds, never decreasing. */
  now: () => number
  tell: <C extends ProxyEventCode>(code: C, fields: ProxyFields<C>) => void
  /** Ends the session. */
  kill: (reason: string) => void
}

export class CommandLog {
  readonly rules: CommandRules
  readonly #options: CommandLogOptions
  readonly #lines: Bucket
  readonly #hits: Bucket
  #omitted = { lines: 0, hits: 0 }

  constructor(options: CommandLogOptions) {
    this.#options = options
    this.rules = rulesOf(options.rules)
    this.#lines = new Bucket(BURST, RATE, options.now)
    this.#hits = new Bucket(BURST, RATE, options.now)
  }

  /** Logs a line read from a terminal. */
  heard(subprotocol: Right, { line, confidence, reason, rule, kills, isRefused }: Command): void {
    this.#tell({
      subprotocol,
      ...(line !== '' && { object: line }),
      confidence,
      ...(reason !== undefined && { reason }),
      ...(rule !== undefined && { rule }),
      ...((kills === 'before' || isRefused) && { result: 'denied' }),
    })
    if (kills === undefined) return
    if (rule !== undefined) this.kill(rule)
    else this.#end('a command line cannot be read, and a rule for commands has to be asked of it')
  }

  /** Logs a match of a rule in the input of a shell without a terminal. */
  piped(subprotocol: Right, rule: string, kills: boolean): void {
    this.#tell({
      subprotocol,
      rule,
      ...(kills && { result: 'denied' }),
      reason: 'in the input of a shell without a terminal: the recording has the line',
    })
    if (kills) this.kill(rule)
  }

  /** Ends the session because of this rule. */
  kill(rule: string): void {
    this.#end(`the command is not allowed here: rule ${JSON.stringify(rule)}`)
  }

  #end(reason: string): void {
    this.flush()
    this.#options.tell('session.kill', { reason })
    this.#options.kill(reason)
  }

  /** Logs how many lines were left out, if any. */
  flush(): void {
    const { lines, hits } = this.#omitted
    if (lines === 0) return
    this.#omitted = { lines: 0, hits: 0 }
    const count = `${lines} command line${lines === 1 ? ' was' : 's were'} left out: too many at a time`
    this.#options.tell('command', {
      reason: hits === 0 ? count : `${count}; ${hits} of them met a rule`,
      ...(hits > 0 && { result: 'lost' }),
    })
  }

  #tell(fields: ProxyFields<'command'>): void {
    const isHit = fields.rule !== undefined
    if (fields.result === undefined && !(isHit ? this.#hits : this.#lines).take(1)) {
      this.#omitted.lines++
      if (isHit) this.#omitted.hits++
      return
    }
    this.flush()
    this.#options.tell('command', fields)
  }
}

function rulesOf(texts: readonly string[]): CommandRules {
  const name = JSON.stringify(texts)
  const known = compiled.get(name)
  if (known !== undefined) return known
  const rules = new CommandRules(texts)
  for (const oldest of compiled.keys()) {
    if (compiled.size < MAX_COMPILED) break
    compiled.delete(oldest)
  }
  compiled.set(name, rules)
  return rules
}
