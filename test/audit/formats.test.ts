import { readFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { severityOf } from '../../src/audit/events/catalogue.ts'
import { cleanFields } from '../../src/audit/events/clean.ts'
import { EVENT_FIELDS, type EventField, type EventFields } from '../../src/audit/events/fields.ts'
import { sentenceOf } from '../../src/audit/sentence.ts'
import { titleOf } from '../../src/audit/sinks/formats/cef.ts'
import { ecsKindOf } from '../../src/audit/sinks/formats/ecs.ts'
import { MAX_MESSAGE, syslogMessage } from '../../src/audit/sinks/formats/message.ts'
import { cefNameOf, ecsAddressOf, leefNameOf, namesOf } from '../../src/audit/sinks/formats/names.ts'
import { EVENT_CODES } from './codes.ts'
import { readCef, readEcs, readLeef, readMessage } from './readers.ts'

const origin = { hostname: 'bastion.example.com', version: '1.2.3', processId: 42, enterprise: 32473 }
const time = Date.UTC(2026, 10, 20, 18, 30, 0, 7)
const event = (fields: EventFields) => ({ sequence: 7, time, code: 'auth.failure', fields }) as const
const bodyOf = (fields: EventFields, format: 'cef' | 'leef' | 'ecs') =>
  readMessage(syslogMessage(event(fields), origin, format))!.text

const signIn = {
  user: 'ops1',
  client_ip: '192.0.2.7',
  client_port: 50022,
  method: 'password',
  reason: 'wrong',
}

test('CEF has its header, standard keys where there are any, and keys of its own', () => {
  expect(syslogMessage(event(signIn), origin, 'cef').toString()).toBe(
    '<84>1 2026-11-20T18:30:00.007Z bastion.example.com sallyport 42 auth.failure - ' +
      'CEF:0|Sallyport|Sallyport|1.2.3|auth.failure|a sign-in failed|6|' +
      `rt=${time} externalId=7 cat=auth dvchost=bastion.example.com suser=ops1 src=192.0.2.7 spt=50022 ` +
      'sallyportMethod=password reason=wrong msg=ops1 from 192.0.2.7 could not sign in by password: wrong',
  )
})

test('LEEF has its header, and attributes between tabs', () => {
  expect(bodyOf(signIn, 'leef')).toBe(
    `LEEF:2.0|Sallyport|Sallyport|1.2.3|auth.failure|x09|devTime=${time}\tcat=auth\tsev=6\tsequence=7\t` +
      'bastion=bastion.example.com\tusrName=ops1\tsrc=192.0.2.7\tsrcPort=50022\tmethod=password\treason=wrong\t' +
      'message=ops1 from 192.0.2.7 could not sign in by password: wrong',
  )
})

test('ECS is an object with the names of the schema', () => {
  const { event: about, ...rest } = JSON.parse(bodyOf({ ...signIn, duration: 1500, protocol: 'SSH' }, 'ecs'))
  expect(about).toEqual({
    kind: 'event',
    provider: 'sallyport',
    dataset: 'sallyport.audit',
    action: 'auth.failure',
    category: ['authentication'],
    type: ['info'],
    outcome: 'failure',
    severity: 6,
    sequence: 7,
    reason: 'wrong',
    duration: 1_500_000_000,
  })
  expect(rest).toEqual({
    '@timestamp': '2026-11-20T18:30:00.007Z',
    ecs: { version: '8.17.0' },
    message: 'ops1 from 192.0.2.7 could not sign in by password: wrong',
    log: { level: 'warning' },
    observer: {
      vendor: 'Sallyport',
      product: 'Sallyport',
      version: '1.2.3',
      hostname: 'bastion.example.com',
    },
    user: { name: 'ops1' },
    source: { address: '192.0.2.7', ip: '192.0.2.7', port: 50022 },
    network: { protocol: 'ssh' },
    sallyport: { method: 'password' },
  })
})

test.each([
  ['192.0.2.7', { cef: 'src', leef: 'src' }, '192.0.2.7'],
  ['2001:db8::1', { cef: 'c6a2', leef: 'src' }, '2001:db8::1'],
  ['nowhere', { cef: 'shost', leef: 'identHostName' }, undefined],
])('an address is under a name for addresses only if it is one: %s', (value, names, ip) => {
  expect(readCef(bodyOf({ client_ip: value }, 'cef'))?.extension[names.cef]).toBe(value)
  expect(readLeef(bodyOf({ client_ip: value }, 'leef'))?.attributes[names.leef]).toBe(value)
  expect(readEcs(bodyOf({ client_ip: value }, 'ecs'))['source.ip']).toBe(ip)
})

test('no two fields have one name in a format', () => {
  for (const format of ['ecs', 'cef', 'leef'] as const) {
    const names = EVENT_FIELDS.map((field) => namesOf(field)[format])
    expect(new Set(names).size).toBe(EVENT_FIELDS.length)
  }
})

/** Returns the tables of docs/events.md: codes, and fields, by their names in each format. */
function tables(): string {
  const address = (field: EventField, format: 'cef' | 'leef' | 'ecs'): string => {
    const [four, six] = ['192.0.2.1', '2001:db8::1']
    const names = {
      cef: [cefNameOf(field, four), cefNameOf(field, six), namesOf(field).cef],
      leef: [leefNameOf(field, four), namesOf(field).leef],
      ecs: [namesOf(field).ecs, ecsAddressOf(field, four) ?? namesOf(field).ecs],
    }
    return [...new Set(names[format])].map((name) => `\`${name}\``).join(' ')
  }
  return [
    '| code | event.category | event.type | CEF name |',
    '|---|---|---|---|',
    ...EVENT_CODES.map((code) => {
      const { category, type } = ecsKindOf(code)
      return `| \`${code}\` | ${category} | ${type} | ${titleOf({ code })} |`
    }),
    '',
    'Fields. `client_ip` and `target_host` have the names for addresses only if they are one: in CEF `src` and `dst` for IPv4,',
    '`c6a2` and `c6a3` for IPv6. `event.duration` is in nanoseconds; the command line of `command` is in `process.command_line` too.',
    '',
    '| field | ECS | CEF | LEEF |',
    '|---|---|---|---|',
    ...EVENT_FIELDS.map(
      (field) =>
        `| \`${field}\` | ${address(field, 'ecs')} | ${address(field, 'cef')} | ${address(field, 'leef')} |`,
    ),
  ].join('\n')
}

test('docs/events.md shows what codes and fields become', () => {
  const path = new URL('../../docs/events.md', import.meta.url)
  const page = readFileSync(path, 'utf8')
  const [BEGIN, END] = ['<!-- formats:begin -->', '<!-- formats:end -->']
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  expect(end).toBeGreaterThan(begin)
  const written = `${page.slice(0, begin)}${BEGIN}\n${tables()}\n${page.slice(end)}`
  if (!process.env['CI'] && page !== written) writeFileSync(path, written)
  else expect(page).toBe(written)
})

/** Types that ECS 8.17 allows in each category. */
const ALLOWED: Record<string, string[]> = {
  authentication: ['start', 'end', 'info'],
  configuration: ['access', 'change', 'creation', 'deletion', 'info'],
  database: ['access', 'change', 'info', 'error'],
  file: ['access', 'change', 'creation', 'deletion', 'info'],
  host: ['access', 'change', 'end', 'info', 'start'],
  iam: ['admin', 'change', 'creation', 'deletion', 'group', 'info', 'user'],
  network: ['access', 'allowed', 'connection', 'denied', 'end', 'info', 'protocol', 'start'],
  process: ['access', 'change', 'end', 'info', 'start'],
  session: ['start', 'end', 'info'],
}

test.each(EVENT_CODES)('%s has a category and a type that ECS allows together', (code) => {
  const { category, type } = ecsKindOf(code)
  expect(ALLOWED[category]).toContain(type)
})

// attack: log injection
describe('whatever values an event has', () => {
  const hostile = [
    ']',
    '"',
    '\\',
    '|',
    '=',
    '\t',
    '\n',
    '\r\n',
    '日',
    '\u0000',
    '\u2028',
    '\ud800',
    ' suser=admin',
    '\\ suser=admin',
    '\\\\= outcome=success',
    '|10|suser=admin',
    'x\tusrName=admin',
    '","user":{"name":"admin"},"x":"',
    '__proto__',
    'x\n<86>1 - - sallyport - auth.success - CEF:0|a|b|c|d|e|1|suser=admin',
  ]
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 3000 }),
    fc.array(fc.constantFrom(...hostile), { maxLength: 40 }).map((parts) => parts.join('')),
    fc.constantFrom(...hostile).map((part) => part.repeat(2048)),
  )
  const anything = fc.record(
    {
      fields: fc.dictionary(fc.constantFrom(...EVENT_FIELDS), fc.oneof(text, fc.integer()), {
        maxKeys: EVENT_FIELDS.length,
      }),
      code: fc.constantFrom(...EVENT_CODES),
    },
    { requiredKeys: ['fields', 'code'] },
  )
  /** Expects what was read to be the values, or their beginnings in a message that was shortened. */
  function expectValue(read: unknown, value: string | number, isWhole: boolean): void {
    if (isWhole || typeof value === 'number') expect(String(read)).toBe(String(value))
    else if (read !== value) {
      expect(read).toMatch(/…$/)
      expect(value.startsWith(String(read).slice(0, -1))).toBe(true)
    }
  }

  test.each(['cef', 'leef', 'ecs'] as const)('%s reads as these values, in its bounds', (format) => {
    fc.assert(
      fc.property(anything, ({ fields: raw, code }) => {
        const fields = cleanFields(raw as EventFields)
        const made = { sequence: 7, time, code, fields }
        const message = syslogMessage(made, origin, format)
        expect(message.length).toBeLessThanOrEqual(MAX_MESSAGE)
        const read = readMessage(message)
        expect(read).toMatchObject({ code })
        expect(read!.text.replaceAll('\t', '')).not.toMatch(/\p{Cc}|\u2028/u)
        const isWhole = !read!.text.includes('…')
        const entries = Object.entries(fields) as [EventField, string | number][]
        const sentence = sentenceOf(made)
        if (format === 'cef') {
          const { header, extension } = readCef(read!.text)!
          expect(header.slice(0, 4)).toEqual(['Sallyport', 'Sallyport', '1.2.3', code])
          for (const [field, value] of entries)
            expectValue(extension[cefNameOf(field, value)], value, isWhole)
          const labels = Object.keys(extension).filter((key) => key.endsWith('Label'))
          // rt, externalId, cat, dvchost and msg
          expect(Object.keys(extension)).toHaveLength(entries.length + labels.length + 5)
          if (isWhole) expect(extension['msg']).toBe(sentence)
        } else if (format === 'leef') {
          const { header, attributes } = readLeef(read!.text)!
          expect(header).toEqual(['Sallyport', 'Sallyport', '1.2.3', code])
          for (const [field, value] of entries)
            expectValue(attributes[leefNameOf(field, value)], value, isWhole)
          // devTime, cat, sev, sequence, bastion and message
          expect(Object.keys(attributes)).toHaveLength(entries.length + 6)
        } else {
          const document = readEcs(read!.text)
          expect(document['event.action']).toBe(code)
          expect(document['log.level']).toBe(severityOf(made))
          if (typeof fields.user === 'string') expectValue(document['user.name'], fields.user, isWhole)
          if (typeof fields.object === 'string')
            expectValue(document['sallyport.object'], fields.object, isWhole)
          expect(document['@timestamp']).toBe('2026-11-20T18:30:00.007Z')
          const own = entries.map(([field]) => namesOf(field).ecs)
          expect(Object.keys(document)).toEqual(expect.arrayContaining(own))
        }
      }),
      { numRuns: 150 },
    )
  })

  test.each(['cef', 'leef', 'ecs'] as const)(
    '%s is within its bound with every field at its longest',
    (format) => {
      for (const character of [']', '日', 'x', '=', '\\', '"']) {
        const fields = Object.fromEntries(EVENT_FIELDS.map((field) => [field, character.repeat(2048)]))
        const message = syslogMessage(event(cleanFields(fields as EventFields)), origin, format)
        expect(message.length).toBeLessThanOrEqual(MAX_MESSAGE)
        expect(readMessage(message)).toBeDefined()
      }
    },
  )
})
