/** One event as a JSON object with the names of the Elastic Common Schema (ECS) 8.17. */
import type { StoredEvent } from '../../chain.ts'
import { type EventCode, isBad, severityOf } from '../../events/catalogue.ts'
import { type EventField, NUMERIC_FIELDS } from '../../events/fields.ts'
import { sentenceOf, timestampOf } from '../../sentence.ts'
import { type Maker, PRODUCT, SEVERITY_NUMBERS } from './cef.ts'
import { ecsAddressOf, namesOf } from './names.ts'

const ECS_VERSION = '8.17.0'
const NANOSECONDS = 1_000_000

/** `session` of `session.open`, and `command` of `command`. */
type Group = EventCode extends infer C ? (C extends `${infer G}.${string}` ? G : C) : never

/** event.category of each group of codes. */
const CATEGORIES: Readonly<Record<Group, string>> = {
  auth: 'authentication',
  ticket: 'authentication',
  factor: 'authentication',
  sign_in: 'authentication',
  session: 'session',
  channel: 'session',
  watch: 'session',
  command: 'process',
  file: 'file',
  clipboard: 'file',
  hostkey: 'network',
  recording: 'file',
  audit: 'configuration',
  backup: 'configuration',
  config: 'configuration',
  object: 'configuration',
  store: 'database',
  database: 'database',
  checkout: 'iam',
  secret: 'iam',
  approval: 'iam',
  sink: 'host',
  notification: 'host',
  service: 'process',
  worker: 'process',
}

/** event.type of a code; `info` for all others. */
const TYPES: Partial<Record<EventCode, string>> = {
  'auth.success': 'start',
  'auth.offline': 'start',
  'auth.sign_out': 'end',
  'auth.withdraw': 'end',
  'session.open': 'start',
  'session.close': 'end',
  'session.kill': 'end',
  'session.guest_join': 'start',
  'session.guest_leave': 'end',
  'channel.open': 'start',
  'watch.begin': 'start',
  'watch.end': 'end',
  command: 'start',
  'file.transfer': 'access',
  clipboard: 'access',
  'recording.sealed': 'creation',
  'recording.recovered': 'creation',
  'recording.view': 'access',
  'recording.deleted': 'deletion',
  'audit.export': 'access',
  'object.create': 'creation',
  'object.update': 'change',
  'object.delete': 'deletion',
  'object.export': 'access',
  'config.reload': 'change',
  'secret.change': 'change',
  'service.start': 'start',
  'service.stop': 'end',
  'worker.lost': 'end',
  'database.away': 'error',
}

/** Codes that report a failure if their fields say nothing else. */
const FAILED = /\.(failure|denied|failed|unavailable|locked|mismatch|lost|loop|away|down|missed)$/

/** Returns `event.category` and `event.type`. */
export function ecsKindOf(code: EventCode): { category: string; type: string } {
  const group = code.split('.')[0] as Group
  return { category: CATEGORIES[group], type: TYPES[code] ?? 'info' }
}

function outcomeOf({ code, fields: { result } }: StoredEvent): 'success' | 'failure' {
  if (result === 'success') return 'success'
  return FAILED.test(code) || isBad(result) ? 'failure' : 'success'
}

export function ecs(event: StoredEvent, { hostname, version }: Maker): string {
  const { code, sequence, fields } = event
  const { category, type } = ecsKindOf(code)
  const severity = severityOf(event)
  const document: Tree = {
    '@timestamp': timestampOf(event),
    ecs: { version: ECS_VERSION },
    message: sentenceOf(event),
    log: { level: severity },
    event: {
      kind: 'event',
      provider: 'sallyport',
      dataset: 'sallyport.audit',
      action: code,
      category: [category],
      type: [type],
      outcome: outcomeOf(event),
      severity: SEVERITY_NUMBERS[severity],
      sequence,
    },
    observer: { vendor: PRODUCT, product: PRODUCT, version, hostname },
  }
  for (const [name, value] of Object.entries(fields)) {
    const field = name as EventField
    put(document, namesOf(field).ecs, inEcs(field, value))
    const address = ecsAddressOf(field, value)
    if (address !== undefined) put(document, address, value)
  }
  if (code === 'command' && fields.object !== undefined) {
    put(document, 'process.command_line', fields.object)
  }
  return JSON.stringify(document)
}

/** Returns a value in the type and the unit that its field has in ECS: an index refuses others. */
function inEcs(field: EventField, value: string | number): string | number {
  if (field === 'duration') return Number(value) * NANOSECONDS
  if (field === 'protocol') return String(value).toLowerCase()
  return NUMERIC_FIELDS.some((numeric) => numeric === field) ? Number(value) : String(value)
}

interface Tree {
  [name: string]: Tree | string | number | string[]
}

/** Puts a value where the names of the path lead. */
function put(tree: Tree, path: string, value: string | number): void {
  const [name = '', ...rest] = path.split('.')
  if (rest.length === 0) {
    tree[name] = value
    return
  }
  const branch = (tree[name] ?? {}) as Tree
  tree[name] = branch
  put(branch, rest.join('.'), value)
}
