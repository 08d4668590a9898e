/**
 * The command line. Each command is a file in commands/; this file finds it, and turns its errors into a line
 * on standard error and an exit code: 1 for an error, 2 for wrong usage.
 */
import { Buffer } from 'node:buffer'
import { parseArgs } from 'node:util'
import { COMMANDS, commandsNamed, isCommand, usage } from './commands/all.ts'
import { type Command, UsageError } from './commands/command.ts'
import { configPath } from './commands/config-path.ts'
import { plain } from './commands/output.ts'
import { withholdFromCoreDumps } from './host/process-memory.ts'
import { nameProcess } from './host/process-name.ts'

// Node cuts small buffers from a pool of 64 KiB, which stays in memory as long as any of them: the few that a
// session keeps (names of versions, keys, tags) cost it 36 KiB, and each lies beside other users' data.
Buffer.poolSize = 0
withholdFromCoreDumps()
nameProcess()

async function main(name: string | undefined, args: string[]): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(`${await usage(undefined)}\n`)
    return name === undefined ? 2 : 0
  }
  if (name === '--version') return await main('version', args)
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

const [name, ...rest] = process.argv.slice(2)
try {
  process.exitCode = await main(name, rest)
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`sallyport: ${plain(message)}\n`)
  if (error instanceof UsageError) process.stderr.write(`${await usage(name)}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
