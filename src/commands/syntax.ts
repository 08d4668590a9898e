/** The words and options of commands, as their syntax has them. */
import type { Command } from './command.ts'

export interface NamedCommand extends Command {
  name: string
}

/** Returns the words that may follow the command's name, as its syntax has them: `list`, `kill`. */
export function actionsOf({ name, synopsis }: NamedCommand): string[] {
  const words = synopsis.flatMap(([form]) => {
    const [first, second = ''] = form.split(' ')
    return first === name && /^[a-z|-]+$/.test(second) && !second.startsWith('-') ? second.split('|') : []
  })
  return [...new Set(words)]
}

/** Returns the command's options; `true` for those that take a value. */
export function optionsOf({ options }: Command): [name: string, takesValue: boolean][] {
  const own = Object.entries(options ?? {}).map(([name, { type }]): [string, boolean] => [
    name,
    type === 'string',
  ])
  return [['config', true], ...own]
}
