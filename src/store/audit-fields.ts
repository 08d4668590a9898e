/** The SQL of the fields of events: those of the row, those of its JSON, and three that are made of others. */
import { sql } from 'kysely'
import { BAD_RESULTS, EVENTS, kindOf } from '../audit/events/catalogue.ts'
import { EVENT_FIELDS, type EventField, NUMERIC_FIELDS, type Severity } from '../audit/events/fields.ts'
import type { Kind } from '../search/fields.ts'
import { either, type Sql } from './engine/either.ts'
import { withoutIndex } from './engine/here.ts'
import { column, nullable, related, type SqlField } from './searchable.ts'

/** Names and words, which are found in any case. All others are texts or numbers. */
const LABELS: ReadonlySet<EventField> = new Set([
  'user',
  'profile',
  'method',
  'protocol',
  'subprotocol',
  'account',
  'domain',
  'device',
  'service',
  'authorization',
  'result',
  'object_type',
  'direction',
  'confidence',
  'api_key',
  'holder',
])

/** Returns the value of a member of `fields`. */
function member(name: EventField): Sql {
  return either({
    sqlite: sql`(audit.json ->> ${sql.lit(`$.fields.${name}`)})`,
    // Without a collation of its own, a text would be compared and folded by the database's.
    postgres: sql`((audit.json)::json -> 'fields' ->> ${sql.lit(name)} collate "C")`,
  })
}

function numeric(name: EventField): Sql {
  const text = member(name)
  return either({ sqlite: text, postgres: sql`(${text})::numeric` })
}

function fieldOf(name: EventField): SqlField {
  if (NUMERIC_FIELDS.some((one) => one === name)) return valued('integer', numeric(name))
  return valued(LABELS.has(name) ? 'label' : 'text', member(name))
}

const valued = (kind: Kind, value: Sql): SqlField => ({ kind, value, isNullable: true })

const listOf = (words: readonly unknown[]) => sql.join(words.map((word) => sql.lit(String(word))))
const codesOf = (severity: Severity) =>
  listOf(Object.keys(EVENTS).filter((code) => kindOf(code as keyof typeof EVENTS).severity === severity))

/** The same as `severityOf`. */
const SEVERITY = sql`(case
  when audit.code in (${codesOf('alert')}) then 'alert'
  when audit.code in (${codesOf('warning')}) or ${member('result')} in (${listOf(BAD_RESULTS)})
    or ${member('rule')} is not null then 'warning'
  else 'notice' end)`

const orNone = (name: EventField) => sql`coalesce(${member(name)}, '')`
/** The canonical name, as in target groups. */
const TARGET = sql`(${orNone('account')} || '@' || ${orNone('domain')} || ':' || ${orNone('device')} || ':' || ${orNone('service')})`

/** By the API's spelling. */
export const AUDIT_FIELDS: Readonly<Record<string, SqlField>> = {
  sequence: column('integer', 'audit.sequence'),
  // The rows between two moments are found first (audit-search.ts), and then read in their order.
  time: { kind: 'time', value: withoutIndex(sql.ref('audit.time')) },
  event: column('text', 'audit.code'),
  severity: { kind: 'label', value: SEVERITY },
  target: { kind: 'label', value: TARGET },
  /** Any value of the event. */
  text: related('text', {
    value: sql.lit(1),
    equals: sql.lit(1),
    from: either({
      sqlite: sql`json_each(audit.json, '$.fields') as j`,
      postgres: sql`(select value collate "C" as value from json_each_text((audit.json)::json -> 'fields')) as j`,
    }),
    member: sql`cast(j.value as text)`,
  }),
  ...Object.fromEntries(EVENT_FIELDS.map((name) => [name, fieldOf(name)])),
  session: nullable('id', 'audit.session'),
}
