/** The clipboard, filtered by rights. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  ClipboardFilter,
  type ClipboardRights,
  type ClipboardVisitor,
} from '../../../../proxies/rdp/channels/clipboard-filter.ts'
import { FORMAT } from '../../../../proxies/rdp/codec/clipboard-formats.ts'
import {
  buildClipboard,
  CLIPBOARD_FLAG,
  CLIPBOARD_LIMIT,
  CLIPBOARD_MESSAGE,
  parseClipboard,
  parseClipboardCapabilities,
  parseFormatList,
} from '../../../../proxies/rdp/codec/cliprdr.ts'
import { buildChunks } from '../../../../proxies/rdp/codec/virtual-channel.ts'
import { ByteWriter } from '../../../../proxies/rdp/codec/writer.ts'
import { hex } from '../../stream-events.ts'
import { betweenEnds, type Ends } from './harness.ts'

const ALL: ClipboardRights = { up: true, down: true, files: true }
const FILES = 0xc0bc
const { formatList, formatListResponse, formatDataRequest, formatDataResponse } = CLIPBOARD_MESSAGE

const capabilities = buildClipboard(
  CLIPBOARD_MESSAGE.capabilities,
  0,
  Buffer.from('0100000001000c00020000003e000000', 'hex'),
)
function list(...formats: [number, string][]): Buffer {
  const writer = new ByteWriter()
  for (const [id, name] of formats) writer.uint32(id).bytes(Buffer.from(`${name}\0`, 'utf16le'))
  return buildClipboard(formatList, 0, writer.finish())
}
const taken = buildClipboard(formatListResponse, CLIPBOARD_FLAG.ok)
const ask = (format: number) =>
  buildClipboard(formatDataRequest, 0, new ByteWriter(4).uint32(format).finish())
const refused = buildClipboard(formatDataResponse, CLIPBOARD_FLAG.fail)
const text = (words: string) =>
  buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, Buffer.from(`${words}\0`, 'utf16le'))
const part = (stream: number, index: number) =>
  buildClipboard(
    CLIPBOARD_MESSAGE.fileContentsRequest,
    0,
    new ByteWriter().uint32(stream).uint32(index).uint32(2).zeros(8).uint32(65536).finish(),
  )

const given = (stream: number, bytes: Uint8Array, flags: number = CLIPBOARD_FLAG.ok) =>
  buildClipboard(
    CLIPBOARD_MESSAGE.fileContentsResponse,
    flags,
    new ByteWriter().uint32(stream).bytes(bytes).finish(),
  )

const createEnds = (rights: ClipboardRights): Ends =>
  betweenEnds<ClipboardVisitor>(
    ['denied', 'text', 'data', 'files', 'transferred'],
    (options) => new ClipboardFilter({ ...options, rights }),
  )

function open(rights: ClipboardRights): Ends {
  const ends = createEnds(rights)
  ends.say('target', capabilities)
  ends.say('client', capabilities)
  return ends
}
const nothing = { client: [], target: [] }
const sha256 = (bytes: Uint8Array) => hash('sha256', bytes)

describe.each([
  ['up', 'client', 'target'],
  ['down', 'target', 'client'],
] as const)('%s', (direction, giver, taker) => {
  test('text passes, and is told', () => {
    const { say, heard } = open({ ...ALL, files: false })
    const offer = list([FORMAT.unicodeText, ''], [FORMAT.locale, ''])
    expect(say(giver, offer)).toEqual({ ...nothing, [taker]: [hex(offer)] })
    expect(say(taker, taken)).toEqual({ ...nothing, [giver]: [hex(taken)] })
    expect(say(taker, ask(FORMAT.unicodeText))[giver]).toEqual([hex(ask(FORMAT.unicodeText))])
    expect(say(giver, text('Grüße'))[taker]).toEqual([hex(text('Grüße'))])
    expect(heard).toEqual([['text', direction, 'Grüße', 7]])
  })

  test('nothing passes without the right, and its giver is content', () => {
    const { say, heard } = open({ ...ALL, [direction]: false })
    expect(say(giver, list([FORMAT.unicodeText, '']))).toEqual({ ...nothing, [giver]: [hex(taken)] })
    expect(say(taker, ask(FORMAT.unicodeText))).toEqual({ ...nothing, [taker]: [hex(refused)] })
    expect(say(giver, text('unasked'))).toEqual(nothing)
    expect(say(taker, part(1, 0))[giver]).toEqual([])
    expect(heard).toEqual([['denied', direction, 'clipboard']])
  })

  test('files pass with their right, and are told', () => {
    const { say, heard } = open(ALL)
    say(giver, list([FILES, 'FileGroupDescriptorW']))
    say(taker, ask(FILES))
    const descriptor = Buffer.alloc(592)
    descriptor.writeUInt32LE(70_000, 68)
    descriptor.write('secret.xlsx', 72, 'utf16le')
    const files = Buffer.concat([Buffer.from([1, 0, 0, 0]), descriptor])
    say(giver, buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, files))
    expect(say(taker, part(7, 0))[giver]).toEqual([hex(part(7, 0))])
    // File 1 is in no list.
    expect(say(taker, part(8, 1))).toEqual({ ...nothing, [taker]: ['090002000400000008000000'] })
    const contents = given(7, Buffer.alloc(70_000, 7))
    expect(say(giver, contents)[taker]).toEqual([hex(contents)])
    expect(say(giver, contents)[taker]).toEqual([])
    const file = { name: 'secret.xlsx', size: 70_000, isFolder: false }
    expect(heard).toEqual([
      ['files', direction, [file]],
      ['transferred', direction, file, 70_000],
    ])
  })

  test('without that right they are taken out of what is offered', () => {
    const { say, heard } = open({ ...ALL, files: false })
    const [offered] = say(
      giver,
      list([FILES, 'FileGroupDescriptorW'], [FORMAT.unicodeText, ''], [FORMAT.files, '']),
    )[taker]
    const formats = parseFormatList(parseClipboard(Buffer.from(offered!, 'hex')), true)
    expect(formats.map(({ id }) => id)).toEqual([FORMAT.unicodeText])
    expect(say(taker, ask(FILES))).toEqual({ ...nothing, [taker]: [hex(refused)] })
    expect(say(taker, part(3, 0))[taker]).toEqual(['090002000400000003000000'])
    expect(heard).toEqual([['denied', direction, 'files']])
  })

  test('a large picture passes piece by piece, an unasked one not at all', () => {
    const { say, heard } = open(ALL)
    const picture = buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, Buffer.alloc(300_000, 3))
    expect(say(giver, picture)).toEqual(nothing)
    say(giver, list([FORMAT.dib, ''], [0xc123, 'PNG']))
    say(taker, ask(0xc123))
    expect(say(giver, picture)[taker]).toEqual([hex(picture)])
    expect(heard).toEqual([['data', direction, 'png', 300_000, sha256(Buffer.alloc(300_000, 3))]])
  })
})

test('what nobody knows, and answers to nothing, do not pass', () => {
  const { say } = open(ALL)
  expect(say('client', buildClipboard(99, 0))).toEqual(nothing)
  expect(say('client', taken)).toEqual(nothing)
  expect(say('client', buildClipboard(CLIPBOARD_MESSAGE.monitorReady, 0))).toEqual(nothing)
  expect(say('target', buildClipboard(CLIPBOARD_MESSAGE.monitorReady, 0)).client).toHaveLength(1)
})

test('who may have no files is not told that there could be some', () => {
  const { say } = open({ ...ALL, files: false })
  const [told] = say('target', capabilities).client
  expect(parseClipboardCapabilities(parseClipboard(Buffer.from(told!, 'hex')).body)?.flags).toBe(0x2)
  expect(say('client', buildClipboard(CLIPBOARD_MESSAGE.lock, 0, Buffer.alloc(4)))).toEqual(nothing)
})

test('names are long before anybody has said so, and short once somebody has none', () => {
  const { say } = createEnds(ALL)
  const long = list([FORMAT.unicodeText, ''], [0xc123, 'PNG'])
  expect(say('target', long).client).toEqual([hex(long)])
  const without = Buffer.from(capabilities)
  without[20] = 0
  say('client', without)
  const short = buildClipboard(formatList, 0, Buffer.concat([Buffer.from([13, 0, 0, 0]), Buffer.alloc(32)]))
  expect(say('target', short).client).toEqual([hex(short)])
  expect(say('client', ask(FORMAT.unicodeText)).target).toHaveLength(1)
})

describe('what is behind what anybody reads of a message stays here', () => {
  const secret = Buffer.from('secret')
  const withMore = (message: Uint8Array): Buffer => {
    const { type, flags, body } = parseClipboard(message)
    return buildClipboard(type, flags, Buffer.concat([body, secret]))
  }

  test.each<[string, Uint8Array]>([
    ['monitor ready', buildClipboard(CLIPBOARD_MESSAGE.monitorReady, 0)],
    ['capabilities', capabilities],
  ])('%s', (_, message) => {
    const { say } = createEnds(ALL)
    expect(say('target', withMore(message)).client).toEqual([hex(message)])
    expect(say('target', Buffer.concat([message, secret])).client).toEqual([hex(message)])
  })

  test('requests, answers and refusals', () => {
    const { say } = open(ALL)
    say('client', list([FORMAT.unicodeText, ''], [FILES, 'FileGroupDescriptorW']))
    expect(say('target', withMore(taken)).client).toEqual([hex(taken)])
    expect(say('target', withMore(ask(FORMAT.unicodeText))).client).toEqual([hex(ask(FORMAT.unicodeText))])
    expect(say('client', withMore(refused)).target).toEqual([hex(refused)])
    say('target', ask(FORMAT.unicodeText))
    expect(say('client', Buffer.concat([text('told'), secret])).target).toEqual([hex(text('told'))])
  })

  test('large refusals', () => {
    const { say, heard } = open(ALL)
    say('client', list([FORMAT.dib, '']))
    say('target', ask(FORMAT.dib))
    const large = buildClipboard(formatDataResponse, CLIPBOARD_FLAG.fail, Buffer.alloc(300_000, 7))
    expect(say('client', large).target).toEqual([hex(refused)])
    expect(heard).toEqual([])
  })

  test('locks without end, and folders for files, which nobody needs', () => {
    const { say } = open(ALL)
    const lock = (type: number, id: number) => buildClipboard(type, 0, new ByteWriter(4).uint32(id).finish())
    const { lock: locks, unlock, temporaryFolder } = CLIPBOARD_MESSAGE
    expect(say('target', lock(unlock, 0))).toEqual(nothing)
    for (let id = 0; id < 64; id++) {
      expect(say('target', withMore(lock(locks, id))).client).toEqual([hex(lock(locks, id))])
    }
    expect(say('target', lock(locks, 64))).toEqual(nothing)
    expect(say('target', lock(unlock, 3)).client).toEqual([hex(lock(unlock, 3))])
    expect(say('target', lock(locks, 64)).client).toHaveLength(1)
    expect(say('client', buildClipboard(temporaryFolder, 0, Buffer.alloc(520)))).toEqual(nothing)
  })
})

test('an answer is what it was asked as, whatever is offered in between', () => {
  const { say, heard } = open(ALL)
  say('client', list([FILES, 'FileGroupDescriptorW']))
  say('target', ask(FILES))
  say('client', list([FILES, 'harmless']))
  const descriptor = Buffer.alloc(592)
  descriptor.write('secret.xlsx', 72, 'utf16le')
  const files = Buffer.concat([Buffer.from([1, 0, 0, 0]), descriptor])
  say('client', buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, files))
  const file = { name: 'secret.xlsx', size: 0, isFolder: false }
  expect(heard).toEqual([['files', 'up', [file]]])
})

describe('of a file is told what has gone', () => {
  const file = { name: 'plan.txt', size: 100, isFolder: false }
  const size = (stream: number) =>
    buildClipboard(
      CLIPBOARD_MESSAGE.fileContentsRequest,
      0,
      new ByteWriter().uint32(stream).uint32(0).uint32(1).zeros(8).uint32(8).finish(),
    )
  function offered(): Ends {
    const ends = open(ALL)
    const descriptor = Buffer.alloc(592)
    descriptor.writeUInt32LE(file.size, 68)
    descriptor.write(file.name, 72, 'utf16le')
    ends.say('client', list([FILES, 'FileGroupDescriptorW']))
    ends.say('target', ask(FILES))
    const files = Buffer.concat([Buffer.from([1, 0, 0, 0]), descriptor])
    ends.say('client', buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, files))
    ends.heard.length = 0
    return ends
  }

  test('when it is whole, once, and the rest of it at the end', () => {
    const { say, heard, close } = offered()
    for (const stream of [1, 2, 3]) {
      say('target', part(stream, 0))
      say('client', given(stream, Buffer.alloc(50)))
    }
    expect(heard).toEqual([['transferred', 'up', file, 100]])
    close()
    expect(heard).toEqual([
      ['transferred', 'up', file, 100],
      ['transferred', 'up', file, 50],
    ])
  })

  test('when another list takes its place', () => {
    const { say, heard } = offered()
    say('target', part(1, 0))
    say('client', given(1, Buffer.alloc(30)))
    say('client', list([FILES, 'FileGroupDescriptorW']))
    say('target', ask(FILES))
    say('client', buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, Buffer.alloc(4)))
    expect(heard).toEqual([
      ['transferred', 'up', file, 30],
      ['files', 'up', []],
    ])
  })

  test('and nothing of its size, of what is refused, and of what nobody has asked for', () => {
    const { say, heard, close } = offered()
    say('target', size(1))
    expect(say('client', given(1, Buffer.alloc(50))).target).toEqual([hex(given(1, Buffer.alloc(8)))])
    say('target', part(2, 0))
    const refusal = hex(given(2, Buffer.alloc(0), CLIPBOARD_FLAG.fail))
    expect(say('client', given(2, Buffer.alloc(50), CLIPBOARD_FLAG.fail)).target).toEqual([refusal])
    say('target', part(3, 0))
    expect(say('client', given(4, Buffer.alloc(50)))).toEqual(nothing)
    expect(say('client', given(4, Buffer.alloc(80_000)))).toEqual(nothing)
    close()
    expect(heard).toEqual([])
  })
})

test('a long text is told whole, and what is behind its end stays here', () => {
  const { say, heard } = open(ALL)
  const words = `${' '.repeat(100_000)}secret`
  say('client', list([FORMAT.unicodeText, ''], [FORMAT.text, '']))
  say('target', ask(FORMAT.unicodeText))
  const long = text(words)
  expect(say('client', long).target).toEqual([hex(long)])
  say('target', ask(FORMAT.unicodeText))
  expect(say('client', text('harmless\0more')).target).toEqual([hex(text('harmless'))])
  say('target', ask(FORMAT.text))
  const narrow = (bytes: string) => buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, Buffer.from(bytes))
  expect(say('client', narrow('harmless\0more')).target).toEqual([hex(narrow('harmless\0'))])
  expect(heard).toEqual([
    ['text', 'up', words, words.length],
    ['text', 'up', 'harmless', 8],
    ['text', 'up', 'harmless', 8],
  ])
})

test('a text that is too long to be looked at is refused, and other things go on', () => {
  const { say, heard } = open(ALL)
  say('client', list([FORMAT.unicodeText, '']))
  say('target', ask(FORMAT.unicodeText))
  expect(say('client', text(' '.repeat(CLIPBOARD_LIMIT / 2))).target).toEqual([hex(refused)])
  say('target', ask(FORMAT.unicodeText))
  expect(say('client', text('short')).target).toEqual([hex(text('short'))])
  expect(heard).toEqual([['text', 'up', 'short', 5]])
})

test('files are files under their names in any letters', () => {
  const { say, heard } = open({ ...ALL, files: false })
  say('client', list([FILES, 'filegroupdescriptorW'], [0xc0bd, 'TEXT/uri-list']))
  expect(say('target', ask(FILES))).toEqual({ ...nothing, target: [hex(refused)] })
  expect(heard).toEqual([['denied', 'up', 'files']])
})

test('who may take nothing locks nothing', () => {
  const { say } = open({ up: true, down: false, files: true })
  const lock = buildClipboard(CLIPBOARD_MESSAGE.lock, 0, Buffer.alloc(4))
  expect(say('client', lock)).toEqual(nothing)
  expect(say('target', lock).client).toHaveLength(1)
})

describe('formats', () => {
  const offered = (ends: Ends, ...formats: [number, string][]) =>
    ends
      .say('client', list(...formats))
      .target.flatMap((message) => parseFormatList(parseClipboard(Buffer.from(message, 'hex')), true))

  test.each<[string, [number, string][], boolean]>([
    [
      'texts',
      [
        [FORMAT.unicodeText, ''],
        [0xc001, 'HTML Format'],
        [0xc002, 'rich text format'],
      ],
      true,
    ],
    [
      'pictures',
      [
        [FORMAT.dib, ''],
        [FORMAT.dibV5, ''],
        [0xc003, 'PNG'],
        [0xc004, 'image/jpeg'],
      ],
      true,
    ],
    [
      'metafiles',
      [
        [3, ''],
        [14, ''],
      ],
      true,
    ],
    ['what nobody knows', [[0xc005, 'Backup 7']], false],
    ['objects', [[0xc006, 'Embed Source']], false],
    ['sound', [[12, '']], false],
    ['a private number', [[0x201, '']], false],
    ['a number without its name', [[0xc007, '']], false],
    ['a known number under another name', [[FORMAT.unicodeText, 'FileContents']], false],
    ['a known number under a name of its own', [[FORMAT.unicodeText, 'whatever']], false],
    ['a known name with more behind it', [[0xc008, 'PNG ']], false],
  ])('%s take the right to files or not', (_name, formats, isFree) => {
    const without = open({ ...ALL, files: false })
    expect(offered(without, ...formats)).toEqual(isFree ? formats.map(([id, name]) => ({ id, name })) : [])
    expect(without.heard).toEqual(isFree ? [] : [['denied', 'up', 'files']])
    const [[id]] = formats as [[number, string]]
    expect(without.say('target', ask(id))[isFree ? 'client' : 'target']).toHaveLength(1)
    expect(offered(open(ALL), ...formats)).toHaveLength(formats.length)
  })

  test('that a program offers beside a text are left out, which is nobody’s loss', () => {
    const ends = open({ ...ALL, files: false })
    expect(offered(ends, [0xc009, 'Object Descriptor'], [FORMAT.unicodeText, ''])).toEqual([
      { id: FORMAT.unicodeText, name: '' },
    ])
    expect(ends.heard).toEqual([])
    expect(offered(ends, [0xc009, 'Preferred DropEffect'], [FORMAT.unicodeText, ''])).toHaveLength(1)
    expect(ends.heard).toEqual([['denied', 'up', 'files']])
  })

  test('of one number are what the first says', () => {
    const ends = open(ALL)
    expect(offered(ends, [0xc010, 'PNG'], [0xc010, 'FileGroupDescriptorW'])).toEqual([
      { id: 0xc010, name: 'PNG' },
    ])
  })

  test('are told by what they are called, their size and their hash', () => {
    const { say, heard } = open(ALL)
    say('client', list([0xc011, 'Rich Text Format'], [0xc012, `${'x'.repeat(80)}`], [12, '']))
    const body = Buffer.from('{\\rtf1}')
    const labels = [
      [0xc011, 'rtf'],
      [0xc012, 'x'.repeat(64)],
      [12, 'format 12'],
    ] as const
    for (const [format, label] of labels) {
      say('target', ask(format))
      say('client', buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, body))
      expect(heard.splice(0)).toEqual([['data', 'up', label, body.length, sha256(body)]])
    }
  })

  test('that do not come whole are told by what has gone, without a hash', () => {
    const { heard, close, ...ends } = open(ALL)
    ends.say('client', list([FORMAT.dib, '']))
    ends.say('target', ask(FORMAT.dib))
    const picture = buildClipboard(formatDataResponse, CLIPBOARD_FLAG.ok, Buffer.alloc(100_000, 3))
    ends.sayChunks('client', buildChunks(picture).slice(0, 3))
    expect(heard).toEqual([])
    close()
    expect(heard).toEqual([['data', 'up', 'dib', 3 * 1600 - 8, undefined]])
  })

  test('whose names are said to be short after they were long are read as before', () => {
    const { say } = open(ALL)
    const without = Buffer.from(capabilities)
    without[20] = 0
    expect(say('client', without)).toEqual(nothing)
    expect(say('client', capabilities).target).toHaveLength(1)
    const long = list([0xc013, 'PNG'])
    expect(say('client', long).target).toEqual([hex(long)])
  })
})

describe('a list of files that is locked', () => {
  const lock = (type: number, id: number) => buildClipboard(type, 0, new ByteWriter(4).uint32(id).finish())
  const listOf = (name: string) => {
    const descriptor = Buffer.alloc(592)
    descriptor.writeUInt32LE(10, 68)
    descriptor.write(name, 72, 'utf16le')
    return buildClipboard(
      formatDataResponse,
      CLIPBOARD_FLAG.ok,
      Buffer.concat([Buffer.from([1, 0, 0, 0]), descriptor]),
    )
  }
  const partOf = (stream: number, id: number) =>
    buildClipboard(
      CLIPBOARD_MESSAGE.fileContentsRequest,
      0,
      new ByteWriter().uint32(stream).uint32(0).uint32(2).zeros(8).uint32(65536).uint32(id).finish(),
    )

  test('stays what it is under its number, whatever is offered after it', () => {
    const { say, heard } = open(ALL)
    const offer = (name: string, id: number) => {
      say('client', list([FILES, 'FileGroupDescriptorW']))
      say('target', lock(CLIPBOARD_MESSAGE.lock, id))
      say('target', ask(FILES))
      say('client', listOf(name))
    }
    offer('first', 1)
    offer('second', 2)
    heard.length = 0
    for (const [stream, id] of [
      [1, 1],
      [2, 2],
      [3, 0],
    ] as const) {
      say('target', partOf(stream, id))
      say('client', given(stream, Buffer.alloc(10)))
    }
    const gone = heard.map(([, , file]) => (file as { name: string }).name)
    expect(gone).toEqual(['first', 'second'])
    say('target', lock(CLIPBOARD_MESSAGE.unlock, 1))
    say('target', partOf(4, 1))
    heard.length = 0
    say('client', given(4, Buffer.alloc(10)))
    expect(heard).toEqual([])
  })

  test('of the last list nothing passes before its names are known', () => {
    const { say } = open(ALL)
    say('client', list([FILES, 'FileGroupDescriptorW']))
    say('target', ask(FILES))
    say('client', listOf('first'))
    say('client', list([FILES, 'FileGroupDescriptorW']))
    expect(say('target', partOf(1, 0))).toEqual({ ...nothing, target: ['090002000400000001000000'] })
  })
})
