/**
 * The command line. Each command is a file in commands/; this file finds it, and turns its errors into a line
 * on standard error and an exit code: 1 for an error, 2 for wrong usage.
 */
import { Buffer } from 'node:buffer'
import { parseArgs } from 'node:util'
import { type Command, UsageError } from './commands/command.ts'
import { configPath } from './commands/config-path.ts'
import { plain } from './commands/output.ts'
import { withholdFromCoreDumps } from './host/process-memory.ts'

// Node cuts small buffers from a pool of 64 KiB, which stays in memory as long as any of them: the few that a
// session keeps (names of versions, keys, tags) cost it 36 KiB, and each lies beside other users' data.
Buffer.poolSize = 0
withholdFromCoreDumps()

/** Loaded on demand: a broker has many parts, and most commands need few of them. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  drain: async () => (await import('./commands/drain.ts')).drain,
  check: async () => (await import('./commands/check.ts')).check,
  demo: async () => (await import('./commands/demo.ts')).demo,
  import: async () => (await import('./commands/import.ts')).importCommand,
  export: async () => (await import('./commands/export.ts')).exportCommand,
  recordings: async () => (await import('./commands/recordings.ts')).recordings,
  audit: async () => (await import('./commands/audit.ts')).auditCommand,
  approvals: async () => (await import('./commands/approvals.ts')).approvals,
  checkout: async () => (await import('./commands/checkout.ts')).checkout,
  checkin: async () => (await import('./commands/checkout.ts')).checkin,
  login: async () => (await import('./commands/login.ts')).login,
  sessions: async () => (await import('./commands/sessions.ts')).sessions,
  secret: async () => (await import('./commands/secret.ts')).secret,
  admin: async () => (await import('./commands/admin.ts')).adminResets,
  'master-key': async () => (await import('./commands/master-key.ts')).rotateMasterKey,
  backup: async () => (await import('./commands/backup.ts')).backup,
  restore: async () => (await import('./commands/restore.ts')).restore,
  store: async () => (await import('./commands/store.ts')).storeCommand,
  version: async () => (await import('./commands/version.ts')).version,
}

/** Returns the usage of the command, or of all of them. */
async function usage(name: string | undefined): Promise<string> {
  const loads = known(name) ? [COMMANDS[name]!] : Object.values(COMMANDS)
  const commands = await Promise.all(loads.map((load) => load()))
  const lines = commands.flatMap(({ synopsis }) =>
    synopsis.map(([form, meaning]) => `  sallyport ${form.padEnd(52)} ${meaning}`),
  )
  return [
    'usage:',
    ...lines,
    '',
    'every command takes --config FILE (default: $SALLYPORT_CONFIG, /etc/sallyport/sallyport.yaml, config/sallyport.yaml)',
  ].join('\n')
}

function known(name: string | undefined): name is string {
  return name !== undefined && Object.hasOwn(COMMANDS, name)
}

async function main(name: string | undefined, args: string[]): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(`${await usage(undefined)}\n`)
    return name === undefined ? 2 : 0
  }
  if (!known(name)) throw new UsageError(`there is no command ${JSON.stringify(name)}`)
  const command = await COMMANDS[name]!()
  const { values, positionals, tokens } = parse(command, args)
  const dashes = tokens.findIndex(({ kind }) => kind === 'option-terminator')
  return await command.run({
    config: values['config'] === undefined ? configPath() : String(values['config']),
    options: values,
    words: positionals,
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
