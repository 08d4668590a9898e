/**
 * One line of the shell: finds its command, each a file of this folder, and turns its errors into a line and an exit
 * code: 1 for an error, 2 for wrong usage.
 */
import { parseArgs } from 'node:util'
import { nearest } from '../config/nearest.ts'
import { COMMANDS, commandsNamed, isCommand, usage } from './all.ts'
import { type Command, UsageError } from './command.ts'
import { configPath } from './config-path.ts'
import { plain } from './output.ts'
import { optionsOf } from './syntax.ts'

const HELP: readonly (string | undefined)[] = ['--help', '-h']

export interface Outputs {
  out: (text: string) => unknown
  error: (text: string) => unknown
}

/** Runs the words after `sallyport`. Resolves to the exit code. Only help and errors are written to `outputs`. */
export async function commandLine([name, ...args]: string[], outputs: Outputs): Promise<number> {
  try {
    return await run(name, args, outputs)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    outputs.error(`sallyport: ${plain(message)}\n`)
    if (!(error instanceof UsageError)) return 1
    outputs.error(`${await usage(name)}\n`)
    return 2
  }
}

async function run(name: string | undefined, args: string[], { out }: Pick<Outputs, 'out'>): Promise<number> {
  if (name === undefined) {
    out(`${await usage(undefined)}\n`)
    return 2
  }
  if (name === 'help' || HELP.includes(name)) {
    out(`${await usage(args[0] === undefined ? undefined : known(args[0]))}\n`)
    return 0
  }
  if (name === '--version') return await run('version', args, { out })
  const command = await COMMANDS[known(name)]!()
  if (asksForHelp(args)) {
    out(`${await usage(name)}\n`)
    return 0
  }
  const { values, positionals, tokens } = parse(name, command, args)
  const dashes = tokens.findIndex(({ kind }) => kind === 'option-terminator')
  return await command.run({
    config: values['config'] === undefined ? configPath() : String(values['config']),
    options: values,
    words: positionals,
    all: () => commandsNamed(undefined),
    ...(dashes >= 0 && {
      beforeDashes: tokens.slice(0, dashes).filter(({ kind }) => kind === 'positional').length,
    }),
  })
}

/** Returns the name of a command. Throws UsageError if there is none of that name. */
function known(name: string): string {
  if (isCommand(name)) return name
  throw new UsageError(`there is no command ${JSON.stringify(name)}${meant(name, Object.keys(COMMANDS))}`)
}

/** Returns whether help is asked for: behind `--` the words are of another program. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((word) => HELP.includes(word))
}

/** Returns the end of an error's text: the known word that is nearest, if one is near. */
function meant(word: string, words: readonly string[]): string {
  const near = nearest(word, words)
  return near === undefined ? '' : `: did you mean ${near}?`
}

function parse(name: string, command: Command, args: string[]) {
  try {
    return parseArgs({
      args,
      options: { config: { type: 'string' }, ...command.options },
      allowPositionals: true,
      strict: true,
      tokens: true,
    })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const [, unknown] = /^Unknown option '([^']*)'/.exec(message) ?? []
    if (unknown === undefined) throw new UsageError(message)
    const options = optionsOf(command).map(([option]) => `--${option}`)
    throw new UsageError(`${name} has no option ${JSON.stringify(unknown)}${meant(unknown, options)}`)
  }
}
