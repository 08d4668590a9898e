/** The interface of a command of the command line. */
import type { ParseArgsOptionsConfig } from 'node:util'

export interface Invocation {
  /** Path of the configuration file. */
  config: string
  options: Record<string, string | boolean | (string | boolean)[] | undefined>
  /** The arguments without the command's name and the options. */
  words: string[]
  /** How many of them are before `--`, if it is there. */
  beforeDashes?: number
  /** Returns all commands. */
  all: () => Promise<(Command & { name: string })[]>
}

export interface Command {
  /** Syntax and meaning, for the usage text. */
  synopsis: [form: string, meaning: string][]
  options?: ParseArgsOptionsConfig
  /** Resolves with the exit code. Throws UsageError, or an error with a message for the user. */
  run(invocation: Invocation): Promise<number>
}

/** The command line has no known syntax: exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Throws UsageError if there are words: for commands without any. */
export function expectNoWords(command: string, words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`${command} takes no words, got ${JSON.stringify(words[0])}`)
}

/** Returns the one word of a command that needs one. */
export function onlyWord(words: readonly string[], form: string): string {
  const [word, ...more] = words
  if (word === undefined || word === '' || more.length > 0) throw new UsageError(`expected ${form}`)
  return word
}

/** Returns an option that has a text. */
export function textOption({ options }: Invocation, name: string): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}
