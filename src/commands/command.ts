/** What a command of the command line is. */
import type { ParseArgsOptionsConfig } from 'node:util'

export interface Invocation {
  /** Path of the configuration file. */
  config: string
  options: Record<string, string | boolean | (string | boolean)[] | undefined>
  /** What is left after the command's name and the options. */
  words: string[]
}

export interface Command {
  /** Form and meaning, for the usage text. */
  synopsis: [form: string, meaning: string][]
  options?: ParseArgsOptionsConfig
  /** Resolves with the exit code. Throws UsageError, or an error whose message is for people. */
  run(invocation: Invocation): Promise<number>
}

/** The command line is not of any known form: exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Throws UsageError when there are words: for commands that take none. */
export function expectNoWords(command: string, words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`${command} takes no words, got ${JSON.stringify(words[0])}`)
}

/** The one word of a command that takes one. */
export function onlyWord(words: readonly string[], form: string): string {
  const [word, ...more] = words
  if (word === undefined || word === '' || more.length > 0) throw new UsageError(`expected ${form}`)
  return word
}

/** An option that takes a text. */
export function textOption({ options }: Invocation, name: string): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}
