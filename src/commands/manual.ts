/**
 * The manual pages: sallyport(1) from what the commands say of themselves, sallyport.yaml(5) from the JSON schema of the
 * configuration. `npm run man` writes them to man/; a test fails if they are out of date.
 */
import { actionsOf, type NamedCommand, optionsOf } from './syntax.ts'

/** Of the pages' last change that readers should know of. */
const DATE = '2026-11-28'

/** Exit codes; the usage and scripts rely on them. */
export const EXIT_CODES: readonly [code: string, meaning: string][] = [
  ['0', 'it is done; of a check or a verification: all is in order'],
  [
    '1',
    'an error, which is on standard error; a check, a verification or a search that found a fault, or nothing',
  ],
  ['2', 'wrong usage: nothing was done'],
]

const VARIABLES: readonly [name: string, meaning: string][] = [
  ['SALLYPORT_CONFIG', 'in place of --config'],
  ['SALLYPORT_URL', 'in place of --url'],
  ['SALLYPORT_CA', 'in place of --ca-file'],
  ['SALLYPORT_USER', 'in place of --user, and of --as where --user asks for something else'],
  ['SALLYPORT_API_KEY_FILE', 'in place of --key-file'],
  ['SALLYPORT_API_KEY', 'an API key, if there is no file of one'],
]

const FILES: readonly [name: string, meaning: string][] = [
  [
    '/etc/sallyport/sallyport.yaml, else config/sallyport.yaml',
    'the configuration, unless --config or SALLYPORT_CONFIG names another: see sallyport.yaml(5)',
  ],
  [
    '$XDG_STATE_HOME/sallyport/sign-in.json',
    'the sign-in of login --keep; without the variable below ~/.local/state',
  ],
]

/** Escapes text for roff: no request, no escape, and hyphens that can be copied. */
const roff = (text: string) => {
  const escaped = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(
      /[^\x20-\x7e]/gu,
      (character) => `\\[u${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`,
    )
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped
}
const heading = (title: string) => `.SH "${title}"`
const entry = (term: string, text: string) => `.TP\n.B ${roff(term)}\n${roff(text)}`
/** A line of a page ends a sentence, so that roff sets the space behind it. */
const entries = (all: readonly (readonly [string, string])[]) => all.map(([term, text]) => entry(term, text))

/** Returns sallyport(1). */
export function commandPage(commands: readonly NamedCommand[]): string {
  const described = commands.flatMap((one) => {
    const options = optionsOf(one).map(([name, takes]) => `--${name}${takes ? ' VALUE' : ''}`)
    const actions = actionsOf(one)
    const words = actions.length > 1 ? [`Words: ${actions.join(', ')}.`] : []
    return [
      `.SS "${roff(one.name)}"`,
      ...entries(one.synopsis.map(([form, meaning]) => [`sallyport ${form}`, meaning])),
      '.PP',
      roff([...words, `Options: ${options.join(', ')}.`].join(' ')),
    ]
  })
  return [
    '.\\" made by: npm run man',
    `.TH SALLYPORT 1 ${DATE} sallyport "User commands"`,
    heading('NAME'),
    'sallyport \\- privileged\\-access bastion',
    heading('SYNOPSIS'),
    '.B sallyport',
    roff('COMMAND [WORDS] [OPTIONS]'),
    heading('DESCRIPTION'),
    roff(
      'Clients of SSH, Telnet, rlogin, VNC and RDP enter by the bastion, which knows the secrets of the targets.',
    ),
    roff('It records what passes, and writes each decision to an audit log.'),
    roff(
      'Times are RFC 3339 or the beginning of such a time, a duration such as 2h (ago), yesterday, today or now, in UTC.',
    ),
    roff('Listings are tables on a terminal, words in a line elsewhere, and with --json one object a line.'),
    roff('A key is never in a command line: give it as a file or a variable.'),
    heading('COMMANDS'),
    ...described,
    heading('EXIT STATUS'),
    ...entries(EXIT_CODES),
    heading('ENVIRONMENT'),
    ...entries(VARIABLES),
    heading('FILES'),
    ...entries(FILES),
    heading('SEE ALSO'),
    '.BR sallyport.yaml (5),',
    '.BR ssh (1)',
    '',
  ].join('\n')
}

interface Schema {
  type?: string | string[]
  title?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

/** Returns sallyport.yaml(5) for the text of the JSON schema. */
export function configurationPage(schema: string): string {
  return [
    '.\\" made by: npm run man',
    `.TH SALLYPORT.YAML 5 ${DATE} sallyport "File formats"`,
    heading('NAME'),
    'sallyport.yaml \\- configuration of the sallyport bastion',
    heading('DESCRIPTION'),
    roff('The file is YAML. Unknown keys are errors that name the nearest known one.'),
    roff('data_dir is relative to the file; every other relative path is relative to data_dir.'),
    roff('Durations are written as 90s, 15m, 8h or 30d, sizes as 64KiB or 1GiB.'),
    roff('A secret is a text, or { file: PATH }, or { env: NAME }.'),
    heading('KEYS'),
    ...keysOf(JSON.parse(schema) as Schema, ''),
    heading('SEE ALSO'),
    '.BR sallyport (1)',
    '',
  ].join('\n')
}

/** Returns the entries of an object's keys, and of those below them: `log.level`, `syslog[].host`. */
function keysOf({ properties = {} }: Schema, path: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const whole = `${path}${name}`
    return [entry(whole, meaningOf(schema)), ...below(schema, whole)]
  })
}

function below(schema: Schema, path: string): string[] {
  if (schema.properties) return keysOf(schema, `${path}.`)
  if (schema.items) return below(schema.items, `${path}[]`)
  const forms = (schema.anyOf ?? []).map((form) => below(form, path))
  return [...new Set(forms.flat())]
}

function meaningOf(schema: Schema): string {
  const { title, description, default: standard } = schema
  const words = schema.enum ?? (schema.const === undefined ? [] : [schema.const])
  const kind = title ?? (words.length > 0 ? words.join(', ') : kindOf(schema))
  return [
    kind,
    ...(description === undefined ? [] : [description]),
    ...(standard === undefined ? [] : [`default: ${JSON.stringify(standard)}`]),
  ].join('; ')
}

function kindOf({ type, properties, items, anyOf }: Schema): string {
  if (anyOf)
    return [...new Set(anyOf.map(({ title, const: word, ...form }) => title ?? word ?? kindOf(form)))].join(
      ', or ',
    )
  if (properties) return 'an object of the keys below'
  if (items) return 'a list'
  return [type ?? 'a value']
    .flat()
    .filter((one) => one !== 'null')
    .join(' or ')
}
