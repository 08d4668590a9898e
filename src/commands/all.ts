/** The commands by their names, and what they say of themselves: for the usage, the shells' completion and the manual page. */
import type { Command } from './command.ts'
import type { NamedCommand } from './syntax.ts'

/** Loaded on demand: a broker has many parts, and most commands need few of them. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  drain: async () => (await import('./drain.ts')).drain,
  check: async () => (await import('./check.ts')).check,
  doctor: async () => (await import('./doctor.ts')).doctor,
  demo: async () => (await import('./demo.ts')).demo,
  import: async () => (await import('./import.ts')).importCommand,
  export: async () => (await import('./export.ts')).exportCommand,
  recordings: async () => (await import('./recordings.ts')).recordings,
  audit: async () => (await import('./audit.ts')).auditCommand,
  approvals: async () => (await import('./approvals.ts')).approvals,
  checkout: async () => (await import('./checkout.ts')).checkout,
  checkin: async () => (await import('./checkout.ts')).checkin,
  login: async () => (await import('./login.ts')).login,
  events: async () => (await import('./events.ts')).events,
  sessions: async () => (await import('./sessions.ts')).sessions,
  secret: async () => (await import('./secret.ts')).secret,
  admin: async () => (await import('./admin.ts')).adminResets,
  'master-key': async () => (await import('./master-key.ts')).rotateMasterKey,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./restore.ts')).restore,
  store: async () => (await import('./store.ts')).storeCommand,
  version: async () => (await import('./version.ts')).version,
  completion: async () => (await import('./completion.ts')).completion,
}

export function isCommand(name: string | undefined): name is string {
  return name !== undefined && Object.hasOwn(COMMANDS, name)
}

/** Returns the command, or all of them. */
export async function commandsNamed(name: string | undefined): Promise<NamedCommand[]> {
  const names = isCommand(name) ? [name] : Object.keys(COMMANDS)
  return await Promise.all(names.map(async (one) => ({ name: one, ...(await COMMANDS[one]!()) })))
}

/** Returns the usage of the command, or of all of them. */
export async function usage(name: string | undefined): Promise<string> {
  const lines = (await commandsNamed(name)).flatMap(({ synopsis }) =>
    synopsis.map(([form, meaning]) => `  sallyport ${form.padEnd(52)} ${meaning}`),
  )
  return [
    'usage:',
    ...lines,
    '',
    'every command takes --config FILE (default: $SALLYPORT_CONFIG, /etc/sallyport/sallyport.yaml, config/sallyport.yaml)',
  ].join('\n')
}
