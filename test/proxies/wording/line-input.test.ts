import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineInput } from '../../../proxies/wording/line-input.ts'

const BACKSPACE = '\x7f'

function typed(text: string): string {
  const line = new LineInput(1024)
  for (const character of text) line.type(character)
  return line.take()
}

test('backspace takes back one character, of whatever length', () => {
  const character = fc.constantFrom('a', 'é', '界', '👍', '𝒳')
  fc.assert(
    fc.property(fc.array(character, { minLength: 1, maxLength: 20 }), (characters) => {
      expect(typed(`${characters.join('')}${BACKSPACE}`)).toBe(characters.slice(0, -1).join(''))
    }),
  )
  expect(typed(`${BACKSPACE}a${BACKSPACE}${BACKSPACE}b`)).toBe('b')
})
