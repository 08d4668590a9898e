/** `sallyport completion bash|zsh|fish`: a script by which a shell completes commands, their words and options. */
import { type Command, onlyWord, UsageError } from './command.ts'
import { actionsOf, type NamedCommand, optionsOf } from './syntax.ts'

const SHELLS: Readonly<Record<string, (commands: readonly NamedCommand[]) => string>> = { bash, zsh, fish }

const dashed = (command: Command) => optionsOf(command).map(([name]) => `--${name}`)
/** Options that take a value: the words behind them are the user's, perhaps files. */
const valued = (commands: readonly NamedCommand[]) => [
  ...new Set(
    commands.flatMap((one) => optionsOf(one).flatMap(([name, takes]) => (takes ? [`--${name}`] : []))),
  ),
]
const namesOf = (commands: readonly NamedCommand[]) => commands.map(({ name }) => name).join(' ')

function bash(commands: readonly NamedCommand[]): string {
  const cases = commands.map(
    (one) => `    ${one.name}) options='${dashed(one).join(' ')}' actions='${actionsOf(one).join(' ')}' ;;`,
  )
  return `# bash completion of sallyport: source <(sallyport completion bash)
_sallyport() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} options='' actions=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '${namesOf(commands)}' -- "$word")
    return
  fi
  case $before in
    ${valued(commands).join('|')}) return ;;
  esac
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif ((COMP_CWORD == 2)); then
    mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$word")
  fi
}
complete -o default -F _sallyport sallyport
`
}

function zsh(commands: readonly NamedCommand[]): string {
  const cases = commands.map(
    (one) => `    ${one.name}) options=(${dashed(one).join(' ')}) actions=(${actionsOf(one).join(' ')}) ;;`,
  )
  return `#compdef sallyport
# zsh completion of sallyport: source <(sallyport completion zsh), behind compinit
_sallyport() {
  local -a options actions
  if (( CURRENT == 2 )); then
    compadd -- ${namesOf(commands)}
    return
  fi
  case $words[CURRENT-1] in
    (${valued(commands).join('|')}) _files; return ;;
  esac
  case $words[2] in
${cases.join('\n')}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    compadd -- $options
  elif (( CURRENT == 3 && $#actions )); then
    compadd -- $actions
  else
    _files
  fi
}
compdef _sallyport sallyport
`
}

const inQuotes = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`

function fish(commands: readonly NamedCommand[]): string {
  const lines = commands.flatMap((one) => {
    const { name, synopsis } = one
    const here = `__fish_seen_subcommand_from ${name}`
    const actions = actionsOf(one).join(' ')
    return [
      `complete -c sallyport -n __fish_use_subcommand -f -a ${name} -d ${inQuotes(synopsis[0]?.[1] ?? '')}`,
      ...(actions === ''
        ? []
        : [
            `complete -c sallyport -n '${here}; and not __fish_seen_subcommand_from ${actions}' -f -a '${actions}'`,
          ]),
      ...optionsOf(one).map(
        ([option, takes]) => `complete -c sallyport -n '${here}' -l ${option}${takes ? ' -r' : ''}`,
      ),
    ]
  })
  return `# fish completion of sallyport: sallyport completion fish > ~/.config/fish/completions/sallyport.fish\n${lines.join('\n')}\n`
}

export const completion: Command = {
  synopsis: [
    ['completion bash|zsh|fish', 'print a script by which the shell completes commands and options'],
  ],
  async run({ words, all }) {
    const shell = onlyWord(words, 'completion bash, completion zsh or completion fish')
    const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
    if (!script) throw new UsageError('expected completion bash, completion zsh or completion fish')
    process.stdout.write(script(await all()))
    return 0
  },
}
