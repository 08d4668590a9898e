import { readFileSync, rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { kindOf, severityOf, TRAP_CODES } from '../../../src/audit/events/catalogue.ts'
import { EVENT_FIELDS, type EventFields, NUMERIC_FIELDS } from '../../../src/audit/events/fields.ts'
import { sentenceOf } from '../../../src/audit/sentence.ts'
import { AUDIT_FAULTS } from '../../../src/audit/verify.ts'
import { SESSION_FAULTS } from '../../../src/recording-service/evidence.ts'
import { run } from '../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../peers/program.ts'
import { baseMibs } from '../../peers/snmptrapd.ts'
import { EVENT_CODES } from '../codes.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

/** Returns the `| a | b |` lines under a heading, without the table's head. */
function table(text: string, heading: string): string[][] {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
}
const plain = (cell: string | undefined) => (cell ?? '').replaceAll('`', '')

describe('docs/events.md', () => {
  const text = read('docs/events.md')

  test('lists the codes of the catalogue, all and no others, with what they are', () => {
    expect(
      table(text, 'Codes').map(([code, severity, trap, meaning, fields]) => [
        plain(code),
        severity,
        trap,
        meaning,
        plain(fields).split(' '),
      ]),
    ).toEqual(
      EVENT_CODES.map((code) => {
        const { severity, meaning, fields } = kindOf(code)
        const number = TRAP_CODES.indexOf(code) + 1
        return [code, severity, number > 0 ? `.0.${number}` : '', meaning, [...fields]]
      }),
    )
  })

  test('lists what verifying finds, all and no others', () => {
    expect(table(text, 'Proof').map(([code, meaning]) => [plain(code), meaning])).toEqual(
      Object.entries({ ...AUDIT_FAULTS, ...SESSION_FAULTS }),
    )
  })

  test('lists the fields, all and no others', () => {
    expect(table(text, 'Fields').map(([field, type]) => [plain(field), type])).toEqual(
      EVENT_FIELDS.map((field) => [
        field,
        NUMERIC_FIELDS.some((numeric) => numeric === field) ? 'number' : 'text',
      ]),
    )
  })
})

describe('the catalogue', () => {
  const all = Object.fromEntries(EVENT_FIELDS.map((field) => [field, `<${field}>`])) as EventFields

  test.each(EVENT_CODES)('%s reads as a sentence, with all fields and with none', (code) => {
    for (const fields of [{}, all]) {
      const sentence = sentenceOf({ sequence: 1, time: 0, code, fields })
      expect(sentence).not.toMatch(/undefined|NaN(?! s)|\[object|\.$|^\s|\s$|[\n\r]/)
    }
  })

  test.each([
    ['object.create', 'admin could not create service ssh: duplicate'],
    ['object.update', 'admin could not change service ssh: duplicate'],
    ['object.delete', 'admin could not remove service ssh: duplicate'],
    ['secret.change', 'admin could not change the secret of service ssh: duplicate'],
  ] as const)('%s that failed does not say that it was made', (code, sentence) => {
    const fields = { user: 'admin', object_type: 'service', object: 'ssh', changes: '{"port":[22,2222]}' }
    const failed = { ...fields, result: 'failure', reason: 'duplicate' }
    expect(sentenceOf({ sequence: 1, time: 0, code, fields: failed })).toBe(sentence)
    expect(sentenceOf({ sequence: 1, time: 0, code, fields })).not.toContain('could not')
  })

  test('whatever can fail says so when it did', () => {
    // A command reached the target, whether it succeeded there or not.
    const failing = EVENT_CODES.filter((code) => kindOf(code).fields.includes('result') && code !== 'command')
    expect(failing).toContain('object.delete')
    for (const code of failing) {
      const fields = { result: 'failure', reason: 'the reason' }
      expect(sentenceOf({ sequence: 1, time: 0, code, fields }), code).toMatch(/could not|ended|failure/)
    }
  })

  test.each(EVENT_CODES)('%s names each of its fields once', (code) => {
    const { fields } = kindOf(code)
    expect(new Set(fields).size).toBe(fields.length)
  })

  test('a denial or a failure is a warning, and five events are alerts', () => {
    for (const code of EVENT_CODES) {
      if (/\.(denied|failure|locked)$/.test(code)) expect(kindOf(code).severity, code).toBe('warning')
    }
    expect(EVENT_CODES.filter((code) => kindOf(code).severity === 'alert')).toEqual([
      'hostkey.changed',
      'recording.failed',
      'secret.mismatch',
      'worker.loop',
      'database.away',
    ])
    expect(severityOf({ code: 'session.close', fields: { result: 'success' } })).toBe('notice')
    expect(severityOf({ code: 'session.close', fields: { result: 'failure' } })).toBe('warning')
    expect(severityOf({ code: 'hostkey.new', fields: { result: 'refused' } })).toBe('warning')
    expect(severityOf({ code: 'recording.failed', fields: { result: 'failure' } })).toBe('alert')
  })

  test('marks the events that have a notification', () => {
    expect(EVENT_CODES.filter((code) => kindOf(code).trap).sort()).toEqual([...TRAP_CODES].sort())
  })
})

const camel = (name: string) =>
  name
    .split(/[._]/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('')

describe('config/SALLYPORT-MIB.txt', () => {
  const mib = read('config/SALLYPORT-MIB.txt')

  test.each(TRAP_CODES.map((code, i) => [code, i + 1] as const))(
    'has the notification of %s with number %d and the fields of the catalogue',
    (code, number) => {
      const found = new RegExp(
        `^sallyport${camel(code)} NOTIFICATION-TYPE\\s+OBJECTS \\{([^}]*)\\}[^:]*[\\s\\S]*?::= \\{ sallyportNotifications (\\d+) \\}`,
        'm',
      ).exec(mib)
      expect(Number(found?.[2])).toBe(number)
      expect(found?.[1]?.split(',').map((name) => name.trim())).toEqual(
        ['event_text', ...kindOf(code).fields].map((field) => `sallyport${camel(field)}`),
      )
    },
  )

  test('numbers the objects in the order of the fields', () => {
    const objects = [
      ...mib.matchAll(/^sallyport(\w+) OBJECT-TYPE[^{]*?::= \{ sallyportEventObjects (\d+) \}/gm),
    ]
    expect(objects.length).toBeGreaterThan(20)
    for (const [, name, number] of objects) {
      const field = EVENT_FIELDS.findIndex((candidate) => camel(candidate) === name)
      // The sentence and the row are no fields.
      const apart: Record<string, number> = { EventText: 1, Sequence: 1000 }
      expect(Number(number), name).toBe(apart[name!] ?? field + 2)
    }
  })
})

describeWithPeers('config/SALLYPORT-MIB.txt', ['smilint', 'snmptranslate'], () => {
  test('is clean in the eyes of smilint at its strictest', async () => {
    const mibs = baseMibs()
    try {
      const { stdout, stderr } = await run(
        findProgram('smilint'),
        ['-l', '6', '-s', './config/SALLYPORT-MIB.txt'],
        { env: { ...process.env, SMIPATH: mibs }, cwd: new URL('../../..', import.meta.url).pathname },
      )
      expect(stdout + stderr).toBe('')
    } finally {
      rmSync(mibs, { recursive: true })
    }
  })

  test('is read by the net-snmp tools', async () => {
    const mibs = baseMibs()
    try {
      const env = {
        ...process.env,
        MIBDIRS: `${new URL('../../../config', import.meta.url).pathname}:${mibs}`,
        MIBS: 'SALLYPORT-MIB',
      }
      const { stdout } = await run(
        findProgram('snmptranslate'),
        ['-On', 'SALLYPORT-MIB::sallyportSinkDown', 'SALLYPORT-MIB::sallyportUser.0'],
        { env },
      )
      expect(stdout.trim().split(/\s+/)).toEqual(['.1.3.6.1.4.1.32473.0.10', '.1.3.6.1.4.1.32473.2.3.0'])
    } finally {
      rmSync(mibs, { recursive: true })
    }
  })
})
