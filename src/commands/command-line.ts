/**
 * One line of the shell: finds its command, each a file of this folder, and turns its errors into a line and an exit
 * code: 1 for an error, 2 for wrong usage.
 */
import { parseArgs } from 'node:util'
import { COMMANDS, commandsNamed, isCommand, usage } from './all.ts'
import { type Command, UsageError } from './command.ts'
import { configPath } from './config-path.ts'
import { plain } from './output.ts'

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

async function run(name: string | undefined, args: string[], { out }: Outputs): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    out(`${await usage(undefined)}\n`)
    return name === undefined ? 2 : 0
  }
  if (!isCommand(name)) throw new UsageError(`there is no command ${JSON.stringify(name)}`)
  const command = await COMMANDS[name]!()
  const { values, positionals, tokens } = parse(command, args)
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

function parse(command: Command, args: string[]) {
  try {
    return parseArgs({
      args,
      options: { config: { type: 'string' }, ...command.options },
      allowPositionals: true,
      strict: true,
      tokens: true,
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
