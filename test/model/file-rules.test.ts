import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FileJudge } from '../../src/model/file-judge.ts'
import { FileRuleError, MAX_FILE_RULE_LENGTH, parseFileRule } from '../../src/model/file-rules.ts'
import { matches, parsePattern, pathOf } from '../../src/model/path-pattern.ts'
import { processorTime } from '../processor-time.ts'

const judge = (...rules: string[]) => new FileJudge(rules.map(parseFileRule))

describe('a rule', () => {
  test('has an action, a direction, a pattern and conditions', () => {
    expect(parseFileRule('deny  up /srv/*.d/** size>10MiB ext=EXE,tar.gz')).toEqual({
      text: 'deny  up /srv/*.d/** size>10MiB ext=EXE,tar.gz',
      action: 'deny',
      direction: 'up',
      pattern: [['srv'], ['', '.d'], '**'],
      size: { operator: '>', bytes: 10 * 2 ** 20 },
      extensions: ['exe', 'tar.gz'],
    })
    expect(parseFileRule('allow any /My\\ Files/a\\*b').pattern).toEqual([['My Files'], ['a*b']])
    expect(parseFileRule('allow down /').pattern).toEqual([])
  })

  test.each([
    ['', 0, 'allow or deny'],
    ['permit up /a', 0, 'allow or deny'],
    ['deny', 4, 'up or down or any'],
    ['deny both /a', 5, 'up or down or any'],
    ['deny up', 7, 'a path pattern'],
    ['deny up a/b', 8, 'absolute path'],
    ['deny up ~/b', 8, 'absolute path'],
    ['deny up /a/../b', 11, 'a name that stands for itself'],
    ['deny up /a//b', 11, 'a name between two "/"'],
    ['deny up /a/', 11, 'a name between two "/"'],
    ['deny up /a/b**', 11, '"**" alone'],
    ['deny up /a/***', 11, '"**" alone'],
    ['deny up /a\\b', 11, 'after "\\"'],
    ['deny up /a\\', 11, 'after "\\"'],
    ['deny up /a\tb', 10, 'a printable character'],
    ['deny up /a size<10MiB', 11, 'size<=SIZE'],
    ['deny up /a size<=10MB', 17, 'a size such as'],
    ['deny up /a size<=1B size>2B', 20, 'one size'],
    ['deny up /a ext=', 15, 'extensions such as'],
    ['deny up /a ext=a,.b', 17, 'extensions such as'],
    ['deny up /a owner=root', 11, 'size<=SIZE'],
    [`deny up /${'x'.repeat(MAX_FILE_RULE_LENGTH)}`, MAX_FILE_RULE_LENGTH, 'at most'],
  ])('%j is wrong at %i', (text, position, expected) => {
    const error = thrownBy(() => parseFileRule(text))
    expect(error).toBeInstanceOf(FileRuleError)
    expect(error).toMatchObject({ position, message: expect.stringContaining(expected) })
  })

  test('throws nothing else, whatever the text', () => {
    const pieces = fc.constantFrom(
      'allow ',
      'deny ',
      'up ',
      '/',
      '*',
      '**',
      '\\',
      ' ',
      'size<=',
      'ext=',
      '1B',
      'é',
      '\0',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string({ maxLength: 3 }))), (parts) => {
        const error = thrownBy(() => parseFileRule(parts.join('')))
        if (error !== undefined) expect(error).toBeInstanceOf(FileRuleError)
      }),
      { numRuns: 2000 },
    )
  })
})

function thrownBy(work: () => unknown): unknown {
  try {
    work()
    return undefined
  } catch (error) {
    return error
  }
}

describe('a pattern', () => {
  test.each([
    ['/a/*', '/a/b', true],
    ['/a/*', '/a', false],
    ['/a/*', '/a/b/c', false],
    ['/a/**', '/a', true],
    ['/a/**', '/a/b/c', true],
    ['/a/**', '/ab', false],
    ['/**', '/', true],
    ['/**/x', '/x', true],
    ['/**/x', '/a/b/x', true],
    ['/**/x/**', '/a/x/b', true],
    ['/**/x/**', '/a/y/b', false],
    ['/a*b*c', '/abc', true],
    ['/a*b*c', '/aXbYc', true],
    ['/a*a', '/a', false],
    ['/*', '/.hidden', true],
    ['/a\\*', '/a*', true],
    ['/a\\*', '/ab', false],
    ['/\u00e9', '/e\u0301', true],
    ['/A', '/a', false],
  ])('%s and %s: %s', (pattern, path, expected) => {
    expect(matches(parsed(pattern), pathOf(path))).toBe(expected)
  })

  const segment = fc.constantFrom('a', 'b', 'ab', '*', 'a*', '*b', '**')
  const name = fc.constantFrom('a', 'b', 'ab', 'ba')

  test('matches as a regular expression does that says the same', () => {
    fc.assert(
      fc.property(
        fc.array(segment, { maxLength: 5 }),
        fc.array(name, { maxLength: 6 }),
        (segments, names) => {
          const pattern = `/${segments.join('/')}`
          const path = names.map((one) => `/${one}`).join('')
          const expression = segments.map((one) =>
            one === '**' ? '(?:/[^/]+)*' : `/${one.replaceAll('*', '[^/]*')}`,
          )
          const expected = new RegExp(`^${expression.join('')}$`).test(path)
          expect(matches(parsed(pattern), pathOf(path))).toBe(expected)
        },
      ),
      { numRuns: 3000 },
    )
  })

  test('takes no time that grows out of bounds', () => {
    const pattern = parsed(`/${'**/a*a/'.repeat(60)}x`)
    const path = pathOf('/aa'.repeat(1300))
    const begin = processorTime()
    matches(pattern, path)
    matches(parsed(`/${'*a'.repeat(200)}b`), pathOf(`/${'a'.repeat(4000)}`))
    expect(processorTime() - begin).toBeLessThan(1_000)
  })
})

function parsed(text: string) {
  const pattern = parsePattern(text)
  if ('expected' in pattern) throw new Error(pattern.expected)
  return pattern
}

describe('the rules', () => {
  test('the first that matches decides, and none allows', () => {
    const rules = judge('allow down /srv/open/**', 'deny down /srv/**', 'deny any /**/*.key')
    expect(rules.forbids('down', pathOf('/srv/open/x'))).toBeUndefined()
    expect(rules.forbids('down', pathOf('/srv/x'))?.text).toBe('deny down /srv/**')
    expect(rules.forbids('up', pathOf('/srv/x'))).toBeUndefined()
    expect(rules.forbids('up', pathOf('/srv/x.key'))?.text).toBe('deny any /**/*.key')
    expect(rules.forbids('down', pathOf('/etc/passwd'))).toBeUndefined()
  })

  test('a size is compared with its bound included', () => {
    const rules = judge('allow up /** size<=10B', 'deny up /**')
    expect(rules.forbids('up', pathOf('/a'), 10)).toBeUndefined()
    expect(rules.forbids('up', pathOf('/a'), 11)).toBeDefined()
    expect(judge('deny up /** size>10B').forbids('up', pathOf('/a'), 10)).toBeUndefined()
  })

  test('what may be forbidden below a folder', () => {
    const below = (path: string, ...rules: string[]) =>
      judge(...rules).forbidsBelow('down', pathOf(path)) !== undefined
    expect(below('/data', 'deny down /data/secret/**')).toBe(true)
    expect(below('/data', 'deny up /data/secret/**')).toBe(false)
    expect(below('/other', 'deny down /data/secret/**')).toBe(false)
    expect(below('/other', 'deny down /**/*.key')).toBe(true)
    expect(below('/in/x', 'allow any /in/**', 'deny any /**')).toBe(false)
    expect(below('/in/x', 'allow any /in/** ext=txt', 'deny any /**')).toBe(true)
    expect(below('/in', 'allow any /in/*', 'deny any /**')).toBe(true)
  })

  const isDenied = (rules: string[], ...names: string[]) =>
    names.map((name) => judge(...rules).forbids('up', pathOf(name)) !== undefined)
  const EXE = [
    '/in/evil.exe',
    '/in/EVIL.EXE',
    '/in/.exe',
    '/in/evil.exe.',
    '/in/evil.exe . ..',
    '/in/evil.exe::$DATA',
    '/in/evil.exe:stream',
    '/in/evil.exe.:x.txt',
    '/in/notes.txt:evil.exe',
    '/in/notes.txt:evil.exe:$DATA',
    '/in\\evil.exe',
    '/in/evil.exe\\',
    '/in/evil.exe\\.',
    '/in/evil.exe\\x\\..',
    '/in/evil.e\u200cxe',
    '/in/EVILTO~1.EXE',
  ]

  test.each(EXE)('an extension is forbidden in whatever a target makes of a name: %j', (name) => {
    expect(isDenied(['deny up /** ext=exe'], name)).toEqual([true])
    expect(isDenied(['allow up /** ext=txt', 'deny up /**'], name)).toEqual([true])
  })

  test.each([
    ['sh', ['/x.\u017fh', '/x.\uff33\uff28', '/x\uff0esh']],
    ['diff', ['/x.di\ufb00', '/x.DI\ufb00']],
    ['tiff', ['/x.ti\ufb00']],
    ['key', ['/x.\u212aey']],
    ['\u03b1\u03c3', ['/x.\u0391\u03a3', '/x.\u03b1\u03c2']],
    ['\u03c3', ['/x.\u03a3', '/x.\u03c2']],
  ])('an extension is forbidden where a target folds letters to it: %s', (extension, names) => {
    expect(isDenied([`deny up /** ext=${extension}`], ...names)).toEqual(names.map(() => true))
  })

  test('a wide dot begins no extension that is allowed', () => {
    expect(isDenied(['allow up /** ext=txt', 'deny up /**'], '/x.exe\uff0etxt', '/x.TXT')).toEqual([
      true,
      false,
    ])
  })

  test('an extension is not seen where none is', () => {
    const names = [
      '/in/exe',
      '/in/evil.exe.txt',
      '/in/x:exe',
      '/in/evil.exe/notes',
      '/in/a.exe2',
      '/in/~1.txt',
    ]
    expect(isDenied(['deny up /** ext=exe'], ...names)).toEqual(names.map(() => false))
  })

  test('an extension is allowed where it is the only one that a name can have', () => {
    const rules = ['allow up /** ext=txt,htm', 'deny up /**']
    expect(isDenied(rules, '/in/a.txt', '/in/A.TXT', '/in/b c.txt', '/in/~a.txt')).toEqual([
      false,
      false,
      false,
      false,
    ])
    expect(isDenied(rules, '/in/PAGE~1.HTM', '/in/a.txt:b', '/in/a:b.txt', '/in/a.txt\\b')).toEqual([
      true,
      true,
      true,
      true,
    ])
  })

  test('a short name has the beginning of an extension', () => {
    const rules = ['deny up /** ext=html,tar.gz,json']
    expect(isDenied(rules, '/PAGE~1.HTM', '/ARCHIV~2.GZ', '/DATA~12.JSO', '/page.htm', '/a~.gz')).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
  })

  test.each([
    '/in/x\\..\\..\\secret\\key',
    '/in\\..\\secret/key',
    '/secret./key',
    '/secret /key',
    '/secret::$INDEX_ALLOCATION/key',
    '/secret:$I30:$INDEX_ALLOCATION/key',
    '/secret/key:stream',
  ])('a folder is forbidden in whatever a target makes of a path: %j', (name) => {
    expect(isDenied(['deny up /secret/**'], name)).toEqual([true])
    expect(isDenied(['allow up /in/**', 'deny up /**'], name)).toEqual([true])
    expect(judge('deny up /secret/**').forbidsBelow('up', pathOf(name))).toBeDefined()
  })

  test('a drive is a folder, and what else has a colon or a backslash is within its own', () => {
    const rules = ['allow up /C:/in/**', 'allow up /in/**', 'deny up /**']
    expect(isDenied(rules, '/C:/in/x', '/in/12:30', '/in/a\\b', '/in/v1.')).toEqual([
      false,
      false,
      false,
      false,
    ])
    expect(isDenied(rules, '/C:/x', '/D:/in/x')).toEqual([true, true])
  })

  test('what they can make a difference by', () => {
    expect(judge('deny up /** ext=exe').asksName).toBe(true)
    expect(judge('deny up /a').asksName).toBe(true)
    expect(judge('deny up /** size>1B').asksName).toBe(false)
    expect(judge('deny up /** size>1B', 'deny up /a size<=5B').sizes).toEqual([0, 2, 6])
    expect(judge('deny up /** ext=exe').asksPath).toBe(false)
    expect(judge('deny up /a').asksPath).toBe(true)
    expect(judge('deny up /a').asksSize).toBe(false)
    expect(judge('deny up /** size>1B').asksSize).toBe(true)
  })
})
