/**
 * The command line. Each command is a file in commands/; this one finds it, and turns what it throws into a line
 * on standard error and an exit code: 1 for an error, 2 for a wrong usage.
 */
import { parseArgs } from 'node:util'
import { adminResetPassword } from './commands/admin.ts'
import { auditCommand } from './commands/audit.ts'
import { check } from './commands/check.ts'
import { type Command, UsageError } from './commands/command.ts'
import { demo } from './commands/demo.ts'
import { rotateMasterKey } from './commands/master-key.ts'
import { recordings } from './commands/recordings.ts'
import { serve } from './commands/serve.ts'
import { version } from './commands/version.ts'

const COMMANDS: Record<string, Command> = {
  serve,
  check,
  demo,
  recordings,
  audit: auditCommand,
  admin: adminResetPassword,
  'master-key': rotateMasterKey,
  version,
}

function usage(): string {
  const lines = Object.values(COMMANDS).flatMap(({ synopsis }) =>
    synopsis.map(([form, meaning]) => `  sallyport ${form.padEnd(44)} ${meaning}`),
  )
  return ['usage:', ...lines, '', 'every command takes --config FILE (default: config/sallyport.yaml)'].join(
    '\n',
  )
}

async function main(args: string[]): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(`${usage()}\n`)
    return name === undefined ? 2 : 0
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command) throw new UsageError(`there is no command ${JSON.stringify(name)}`)
  const { values, positionals } = parse(command, rest)
  return await command.run({
    config: values['config'] === undefined ? 'config/sallyport.yaml' : String(values['config']),
    options: values,
    words: positionals,
  })
}

function parse(command: Command, args: string[]) {
  try {
    return parseArgs({
      args,
      options: { config: { type: 'string' }, ...command.options },
      allowPositionals: true,
      strict: true,
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`sallyport: ${message}\n`)
  if (error instanceof UsageError) process.stderr.write(`${usage()}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
