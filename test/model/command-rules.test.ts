import { describe, expect, test } from 'vitest'
import {
  CommandRuleError,
  CommandRules,
  commandRulesFlaw,
  MAX_COMMAND_RULE_LENGTH,
  MAX_COMMAND_RULES,
} from '../../src/model/command-rules.ts'
import { processorTime } from '../processor-time.ts'

describe('a rule that cannot be read', () => {
  test.each([
    ['kill [', 'at character 6: missing closing ]'],
    ['notify a**', 'at character 9: invalid nested repetition operator'],
    ['kill (a)\\1', 'at character 9: invalid escape sequence'],
    ['kill x(?=y)', 'at character 7: invalid or unsupported Perl syntax'],
    ['kill ((a{100}){100}){100}', 'invalid repeat count'],
    ['kill', 'at character 1: expected'],
    ['kill  x', 'at character 1: expected'],
    ['Kill x', 'at character 1: expected'],
    [`kill ${'x'.repeat(MAX_COMMAND_RULE_LENGTH)}`, 'at most 512 characters'],
    [`kill ${'(x{1000}y)'.repeat(3)}`, 'too much work'],
  ])('%s', (text, message) => {
    const flaw = commandRulesFlaw(['notify ok', text])
    expect(flaw?.index).toBe(1)
    expect(flaw?.message).toContain(message)
    if (!message.includes('work')) expect(() => new CommandRules([text])).toThrow(CommandRuleError)
  })

  test('nor can be too many, or too large ones together', () => {
    expect(commandRulesFlaw(new Array(MAX_COMMAND_RULES).fill('kill x'))).toBeUndefined()
    expect(commandRulesFlaw(new Array(MAX_COMMAND_RULES + 1).fill('kill x'))?.index).toBe(MAX_COMMAND_RULES)
    expect(commandRulesFlaw(new Array(10).fill('kill x{300}'))?.index).toBe(6)
  })
})

describe('rules', () => {
  test('hold anywhere in the line, at the ends of its lines where they say so', () => {
    const rules = new CommandRules(['notify sudo', 'kill ^reboot$', 'kill (?i)FORMAT c:'])
    expect(rules.find('echo sudo')).toMatchObject({ action: 'notify', text: 'notify sudo' })
    expect(rules.find('sleep 1; reboot')).toBeUndefined()
    expect(rules.find('sleep 1\nreboot\nsudo')).toMatchObject({ action: 'kill', text: 'kill ^reboot$' })
    expect(rules.find('format C:')?.action).toBe('kill')
    expect(rules.canKill).toBe(true)
    expect(new CommandRules(['notify x']).canKill).toBe(false)
  })

  test.each([
    '(a+)+$',
    '(a|aa)+$',
    '(.*a){20}z',
    '([a-z]+)*!',
    '(?:(?:a?){30}){30}b',
    '(?:[\\p{L}]{50}){19}z?',
  ])('take time in proportion to the line: %s', (expression) => {
    const rules = new CommandRules([`kill ${expression}`])
    rules.find('a')
    const begin = processorTime()
    rules.find(`${'a'.repeat(35_000)}!`)
    // Milliseconds, while a backtracking engine needs years; a loaded machine is slow.
    expect(processorTime() - begin).toBeLessThan(3000)
  })
})
