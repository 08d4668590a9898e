// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the grammar look like that
import { describe, expect, it } from 'vitest'
import { bind } from '../../src/search/bind.ts'
import { isLike, meets } from '../../src/search/evaluate.ts'
import type { Fields } from '../../src/search/fields.ts'
import { SearchError } from '../../src/search/grammar.ts'
import { parse } from '../../src/search/parser.ts'
import { processorTime } from '../processor-time.ts'

const FIELDS: Fields = {
  id: { kind: 'id' },
  user_name: { kind: 'name' },
  description: { kind: 'text' },
  protocol: { kind: 'label' },
  groups: { kind: 'name' },
  'session.accounts': { kind: 'name' },
  is_disabled: { kind: 'flag' },
  port: { kind: 'integer' },
  end: { kind: 'time' },
}
const VARIABLES = { user: 'Zoë*', subject_cn: undefined }
const OBJECT = {
  id: '01K9T5RZ8Q4W6X2C3V1B0N7M5J',
  user_name: 'Zoë',
  description: 'Web server, 50% of the load',
  protocol: 'SSH',
  groups: ['Linux-Admins', 'dba'],
  session: { accounts: ['root@local:srv1:ssh'] },
  is_disabled: false,
  port: 22,
  end: '2031-06-30T12:00:00.000Z',
}
const condition = (source: string) => bind({ expression: parse(source), variables: VARIABLES }, FIELDS)
const found = (source: string, object: object = OBJECT) => meets(object, condition(source))

describe('a condition', () => {
  it.each([
    ['user_name=ZOË', true],
    ['user_name=zoe\u0308', true],
    ['user_name=zo', false],
    ['user_name~O', true],
    ['user_name~z*', true],
    ['user_name~*z', false],
    ['description="Web server, 50% of the load"', true],
    ['description="web server, 50% of the load"', false],
    ['description~"web SERVER"', true],
    ['description~50%', true],
    ['description~5_%', false],
    ['description~"50*load"', false],
    ['description~"*50*load"', true],
    ['description~"web*load*load"', false],
    ['protocol=ssh', true],
    ['id=01k9t5rz8q4w6x2c3v1b0n7m5j', true],
    ['id~01K9*', true],
    ['groups=DBA', true],
    ['groups=db', false],
    ['groups~linux', true],
    ['groups~*', true],
    ['groups=""', false],
    ['session.accounts~*:srv1:*', true],
    ['is_disabled=false', true],
    ['is_disabled=true', false],
    ['port=22', true],
    ['port=0022', true],
    ['end=2031-06-30T14:00:00+02:00', true],
    ['end=2031-06-30T12:00:00.001Z', false],
    ['end~2031', true],
    ['end~2031-06*', true],
    ['end~2031-06-30T12', true],
    ['end~2031-06-30T11', false],
    ['end~2031-07', false],
    ['port<23', true],
    ['port<22', false],
    ['port<=22', true],
    ['port<=21', false],
    ['port>21', true],
    ['port>22', false],
    ['port>=22', true],
    ['port>=23', false],
    ['end<2031-06-30T12:00:00Z', false],
    ['end<=2031-06-30T14:00:00+02:00', true],
    ['end>2031-06-30T11:59:59.999Z', true],
    ['end>=2031-06-30T12:00:00.001Z', false],
    ['end>2031-06', false],
    ['end>=2031-06', true],
    ['end<2031-06', false],
    ['end<=2031-06', true],
    ['end<2031-07 && end>2031-05', true],
    ['end>=2031-06-30T12', true],
    ['end>2031-06-30T12', false],
    ['user_name=x || port=22 && is_disabled=false', true],
    ['(user_name=x || port=22) && is_disabled=true', false],
  ])('%s holds: %j', (source, expected) => {
    expect(found(source)).toBe(expected)
  })

  it('takes "" for what is not there', () => {
    const nothing = { user_name: null, description: '', groups: [], end: null }
    for (const operator of ['<', '<=', '>', '>=']) {
      expect(found(`end${operator}2031`, nothing)).toBe(false)
    }
    for (const field of ['user_name', 'description', 'groups', 'end']) {
      expect(found(`${field}=""`, nothing), field).toBe(true)
      expect(found(`${field}=""`), field).toBe(false)
    }
    for (const field of ['user_name', 'description', 'groups']) {
      expect(found(`${field}~*`, nothing), field).toBe(false)
      expect(found(`${field}~""`, nothing), field).toBe(false)
      expect(found(`${field}~*`), field).toBe(true)
    }
  })

  it('reads variables as text, never as wildcards or more of the grammar', () => {
    expect(found('user_name=${user}')).toBe(false)
    expect(found('user_name~${user}')).toBe(false)
    expect(found('user_name=${user}', { user_name: 'zoË*' })).toBe(true)
    expect(found('user_name~"x"${user}*', { user_name: 'xzoë*s' })).toBe(true)
    const sly = bind({ expression: parse('user_name=${user}'), variables: { user: 'x" || id~"*' } }, FIELDS)
    expect(meets(OBJECT, sly)).toBe(false)
  })

  it.each([
    ['nobody=1', 'field', 0, 'one of the fields id, user_name, description,'],
    ['port=1 && toString=1', 'field', 10, 'one of the fields'],
    ['constructor~1', 'field', 0, 'one of the fields'],
    ['user_name=${nobody}', 'value', 10, 'one of ${user}, ${subject_cn}'],
    ['user_name=${constructor}', 'value', 10, 'one of ${user}'],
    ['user_name=${subject_cn}', 'value', 10, 'a variable that you have'],
    ['is_disabled=1', 'value', 12, 'true or false'],
    ['is_disabled=""', 'value', 12, 'true or false'],
    ['is_disabled~true', 'value', 11, '"=" for "is_disabled"'],
    ['user_name<x', 'value', 9, '"=" or "~" for "user_name"'],
    ['is_disabled>=true', 'value', 11, '"=" for "is_disabled"'],
    ['port<ssh', 'value', 5, 'an integer'],
    ['port<""', 'value', 5, 'an integer'],
    ['end>=2031-13', 'value', 5, 'a time, or the beginning of one'],
    ['end<""', 'value', 4, 'a time, or the beginning of one'],
    ['end>2031*', 'value', 4, 'a time, or the beginning of one'],
    ['port=ssh', 'value', 5, 'an integer'],
    ['port=1e3', 'value', 5, 'an integer'],
    ['port=9999999999999999', 'value', 5, 'an integer'],
    ['port~2', 'value', 4, '"=" for "port"'],
    ['end=yesterday', 'value', 4, 'a time such as'],
    ['end=2031-02-29T00:00:00Z', 'value', 4, 'a time such as'],
    ['end=2031-12-31', 'value', 4, 'a time such as'],
    ['end~2031-13', 'value', 4, 'the beginning of a time'],
    ['end~2031-02-30', 'value', 4, 'the beginning of a time'],
    ['end~""', 'value', 4, 'the beginning of a time'],
    ['end~*06', 'value', 4, 'the beginning of a time'],
    ['end~0031', 'value', 4, 'the beginning of a time'],
  ])('%s is refused', (source, fault, position, expected) => {
    const act = () => condition(source)
    expect(act).toThrow(SearchError)
    expect(act).toThrow(
      expect.objectContaining({ fault, position, expected: expect.stringContaining(expected) }),
    )
  })
})

describe('a pattern', () => {
  it.each([
    ['', ['', ''], false],
    ['a', ['', ''], true],
    ['ab', ['ab', ''], true],
    ['aba', ['ab', 'ba'], false],
    ['abba', ['ab', 'ba'], true],
    ['a', ['a', 'a'], false],
    ['xaxbx', ['', 'a', 'b', ''], true],
    ['xbxax', ['', 'a', 'b', ''], false],
  ])('%j like %j: %j', (text, parts, expected) => {
    expect(isLike(text, parts)).toBe(expected)
  })

  it('costs no more than the length of the text for each part', () => {
    const begin = processorTime()
    expect(isLike('a'.repeat(100_000), ['', ...Array.from({ length: 8 }, () => 'a'.repeat(20)), 'b'])).toBe(
      false,
    )
    expect(processorTime() - begin).toBeLessThan(1000)
  })
})
