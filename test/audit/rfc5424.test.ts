import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cleanFields } from '../../src/audit/events/clean.ts'
import { EVENT_FIELDS, type EventFields } from '../../src/audit/events/fields.ts'
import { MAX_MESSAGE, syslogMessage } from '../../src/audit/sinks/formats/message.ts'

const origin = { hostname: 'bastion.example.com', version: '1.2.3', processId: 42, enterprise: 32473 }
const time = Date.UTC(2026, 10, 20, 18, 30, 0, 7)
const event = (fields: EventFields) => ({ sequence: 1, time, code: 'auth.failure', fields }) as const

/** A strict reader of RFC 5424 6, written from its grammar. Returns undefined if the message is malformed. */
function parse(message: Buffer) {
  const text = message.toString('utf8')
  const found =
    /^<(\d{1,3})>1 (\S+) ([\x21-\x7e]{1,255}) ([\x21-\x7e]{1,48}) ([\x21-\x7e]{1,128}) ([\x21-\x7e]{1,32}) (\[([^\s=\]"]{1,32})((?: [^\s=\]"]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*)\])(?: (\ufeff?.*))?$/su.exec(
      text,
    )
  if (!found) return undefined
  const parameters = [...(found[9] ?? '').matchAll(/ ([^=]+)="((?:[^"\\\]]|\\["\\\]])*)"/g)]
  return {
    priority: Number(found[1]),
    code: found[6],
    id: found[8],
    data: Object.fromEntries(parameters.map(([, key, value]) => [key, value?.replace(/\\(["\\\]])/g, '$1')])),
    text: found[10] ?? '',
  }
}

describe('a message', () => {
  test('has the header, the structured data and the sentence', () => {
    const fields = {
      user: 'ops1',
      client_ip: '192.0.2.7',
      client_port: 50022,
      method: 'password',
      reason: 'wrong',
    }
    expect(syslogMessage(event(fields), origin).toString()).toBe(
      '<84>1 2026-11-20T18:30:00.007Z bastion.example.com sallyport 42 auth.failure ' +
        '[sallyport@32473 sequence="1" user="ops1" client_ip="192.0.2.7" client_port="50022" method="password" reason="wrong"] ' +
        'ops1 from 192.0.2.7 could not sign in by password: wrong',
    )
  })

  test('escapes quote, backslash and bracket, and nothing else', () => {
    const text = syslogMessage(event({ user: 'a"b\\c]d[e=f' }), origin).toString()
    expect(text).toContain(String.raw`user="a\"b\\c\]d[e=f"]`)
  })

  test('begins its sentence with a byte order mark only when it is not ASCII', () => {
    expect(syslogMessage(event({ user: 'plain' }), origin).toString()).not.toContain('\ufeff')
    expect(syslogMessage(event({ user: 'Élodie' }), origin).toString()).toContain('] \ufeffÉlodie')
  })

  test('has empty structured data where there are no fields, and no host name where it is none', () => {
    expect(syslogMessage(event({}), { ...origin, hostname: 'é \n' }).toString()).toContain(
      'Z - sallyport 42 auth.failure [sallyport@32473 sequence="1"] ',
    )
  })

  test('is bounded, and whole, whatever the values are', () => {
    const value = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3000 }),
      fc.constantFrom(
        ']'.repeat(2048),
        '"'.repeat(2048),
        '日'.repeat(2048),
        '\\'.repeat(2048),
        '\n'.repeat(2048),
      ),
      fc.integer(),
    )
    const fields = fc.dictionary(fc.constantFrom(...EVENT_FIELDS), value, { maxKeys: EVENT_FIELDS.length })
    fc.assert(
      fc.property(fields, (raw) => {
        const clean = cleanFields(raw as EventFields)
        const message = syslogMessage(event(clean), origin)
        expect(message.length).toBeLessThanOrEqual(MAX_MESSAGE)
        const read = parse(message)
        expect(read).toMatchObject({ priority: 84, code: 'auth.failure', id: 'sallyport@32473' })
        expect(Object.keys(read?.data ?? {})).toEqual(['sequence', ...Object.keys(clean)])
        expect(message.toString()).not.toMatch(/\p{Cc}/u)
      }),
      { numRuns: 200 },
    )
  })

  test('is within its bound with every field at its longest', () => {
    for (const character of [']', '日', 'x']) {
      const fields = Object.fromEntries(EVENT_FIELDS.map((field) => [field, character.repeat(2048)]))
      const message = syslogMessage(event(cleanFields(fields as EventFields)), origin)
      expect(message.length).toBeLessThanOrEqual(MAX_MESSAGE)
      expect(parse(message)).toBeDefined()
    }
  })
})
