/**
 * Rules of connection policies, and their checks: any text is a valid rule or an error, and any check has a
 * result.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CommandRuleError, CommandRules } from '../../src/model/command-rules.ts'
import { forwardRuleError, isConnectAllowed, isForwardAllowed } from '../../src/model/forward-rules.ts'

const host = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.ipV4(),
  fc.ipV6(),
  fc.stringMatching(/^[0-9a-fx.:%*[\]]{0,40}$/),
)
const port = fc.oneof(fc.nat(65_536), fc.constantFrom('*', '1-65535', '9-8', '', '-'))

test('rules for forwarded connections', () => {
  const text = fc.oneof(
    fc.string(),
    fc.tuple(host, port).map(([name, number]) => `${name}:${number}`),
    fc.tuple(host, fc.nat(130), port).map(([name, bits, number]) => `[${name}/${bits}]:${number}`),
  )
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), host, fc.nat(70_000), (rules, name, number) => {
      const good = rules.filter((rule) => forwardRuleError(rule) === undefined)
      // An invalid rule allows nothing.
      expect(isForwardAllowed(rules, name, number)).toBe(isForwardAllowed(good, name, number))
      if (isConnectAllowed(rules, name, number) && rules.length > 0)
        expect(isForwardAllowed(rules, name, number)).toBe(true)
    }),
    { numRuns: 5_000 },
  )
})

test('an address is the same place, whatever form of inet_aton(3) it has', () => {
  const inMetadata = fc.nat(0xffff).map((low) => 0xa9fe0000 + low)
  const radix = fc.constantFrom(
    (part: number) => String(part),
    (part: number) => `0x${part.toString(16)}`,
    (part: number) => `0${part.toString(8)}`,
  )
  fc.assert(
    fc.property(
      fc.oneof(inMetadata, fc.nat(0xffffffff)),
      fc.integer({ min: 1, max: 4 }),
      fc.tuple(radix, radix, radix, radix),
      (address, parts, forms) => {
        const bytes = [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff)
        const last = address % 256 ** (5 - parts)
        const written = [...bytes.slice(0, parts - 1), last]
          .map((part, index) => forms[index]!(part))
          .join('.')
        const plain = bytes.join('.')
        expect(isConnectAllowed([], written, 80), written).toBe(isConnectAllowed([], plain, 80))
        const hex = address.toString(16).padStart(8, '0')
        const mapped = `::ffff:${hex.slice(0, 4)}:${hex.slice(4)}`
        expect(isConnectAllowed([], mapped, 80), mapped).toBe(isConnectAllowed([], plain, 80))
      },
    ),
    { numRuns: 5_000 },
  )
})

test('rules for commands', () => {
  const text = fc.oneof(
    fc.string(),
    fc.tuple(fc.constantFrom('kill ', 'notify ', 'deny ', ''), fc.string()).map((parts) => parts.join('')),
    fc.stringMatching(/^kill [()[\]{}*+?|\\^$.a-c0-9,-]{0,30}$/),
  )
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), fc.string({ maxLength: 200 }), (texts, line) => {
      let rules: CommandRules
      try {
        rules = new CommandRules(texts)
      } catch (error) {
        expect(error).toBeInstanceOf(CommandRuleError)
        return
      }
      const found = rules.find(line)
      if (found) expect(['kill', 'notify']).toContain(found.action)
    }),
    { numRuns: 3_000 },
  )
})
