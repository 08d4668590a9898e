import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { latin1 } from '../../../../proxies/bytes/text.ts'
import * as build from '../../../../proxies/ssh/codec/build.ts'
import * as messages from '../../../../proxies/ssh/codec/messages.ts'
import { Reader } from '../../../../proxies/ssh/codec/reader.ts'
import * as requests from '../../../../proxies/ssh/codec/requests.ts'
import { Writer } from '../../../../proxies/ssh/codec/writer.ts'

const uint32 = fc.integer({ min: 0, max: 0xffffffff })
const bytes = fc.uint8Array({ maxLength: 40 })
const hex = (text: string) => Buffer.from(text.replace(/\s/g, ''), 'hex')

describe('the data types of RFC 4251', () => {
  it('come back as they were written', () => {
    const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
    const names = fc.array(fc.stringMatching(/^[a-z0-9@.-]{1,64}$/), { maxLength: 5 })
    fc.assert(
      fc.property(uint32, uint64, fc.boolean(), bytes, names, (number, large, flag, value, list) => {
        const written = new Writer(1)
          .uint32(number)
          .uint64(large)
          .boolean(flag)
          .string(value)
          .nameList(list)
          .finish()
        const reader = new Reader(written, 'test')
        expect([reader.uint32(), reader.uint64(), reader.boolean()]).toEqual([number, large, flag])
        expect(Buffer.from(reader.string())).toEqual(Buffer.from(value))
        expect(reader.nameList()).toEqual(list)
        reader.end()
      }),
    )
  })

  it('are views, not copies', () => {
    const source = hex('00000002 6162')
    const view = new Reader(source, 'test').string()
    source[4] = 0x7a
    expect(latin1(view)).toBe('zb')
  })

  it('take the values of RFC 4251 section 5', () => {
    expect(new Reader(hex('29b7f4aa'), 'test').uint32()).toBe(699921578)
    expect(new Reader(hex('00000000'), 'test').nameList()).toEqual([])
    expect(new Reader(hex('00000009 7a6c69622c6e6f6e65'), 'test').nameList()).toEqual(['zlib', 'none'])
    expect(new Reader(hex('02'), 'test').boolean()).toBe(true)
  })

  it.each([
    ['a cut number', () => new Reader(hex('000000'), 'x').uint32()],
    ['a cut string', () => new Reader(hex('00000003 6162'), 'x').string()],
    ['a string of 4 GiB', () => new Reader(hex('ffffffff 61'), 'x').string()],
    ['a string over its limit', () => new Reader(hex('00000003 616263'), 'x').string(2)],
    ['an empty name in a list', () => new Reader(hex('00000003 612c2c'), 'x').nameList()],
    ['a size over 2^53', () => new Reader(hex('0020000000000000'), 'x').size()],
    ['something after the end', () => new Reader(hex('00'), 'x').end()],
    ['an offset behind the end', () => new Reader(hex('00'), 'x', 2)],
  ])('are refused: %s', (_, read) => {
    expect(read).toThrow(MalformedError)
  })
})

describe('the messages of the connection layer', () => {
  it('come back as they were built', () => {
    fc.assert(
      fc.property(uint32, uint32, uint32, uint32, bytes, fc.boolean(), (a, b, c, d, data, flag) => {
        const rest = Buffer.from(data)
        const open = { type: 'session', sender: a, window: b, maxPacket: Math.max(c, 256), typeData: rest }
        expect(messages.parseChannelOpen(build.buildChannelOpen(open))).toEqual(open)
        const confirmation = {
          recipient: d,
          sender: a,
          window: b,
          maxPacket: Math.max(c, 256),
          typeData: rest,
        }
        expect(
          messages.parseChannelOpenConfirmation(build.buildChannelOpenConfirmation(confirmation)),
        ).toEqual(confirmation)
        const global = { name: 'keepalive@openssh.com', wantReply: flag, data: rest }
        expect(messages.parseGlobalRequest(build.buildGlobalRequest(global))).toEqual(global)
        const request = {
          recipient: a,
          type: 'simple@putty.projects.tartarus.org',
          wantReply: flag,
          data: rest,
        }
        expect(messages.parseChannelRequest(build.buildChannelRequest(a, request.type, flag, rest))).toEqual(
          request,
        )
        expect(messages.windowAdjustOf(build.buildWindowAdjust(a, b))).toBe(b)
        const message = build.buildData(a, rest)
        expect(messages.dataOf(message)).toEqual(rest)
        messages.setRecipient(message, d)
        expect(messages.recipientOf(message)).toBe(d)
        const extended = build.buildExtendedData(a, rest)
        expect(messages.extendedDataOf(extended)).toEqual(rest)
      }),
    )
  })

  it('have the bytes of RFC 4254', () => {
    expect(build.buildEof(7)).toEqual(hex('60 00000007'))
    expect(build.buildClose(7)).toEqual(hex('61 00000007'))
    expect(build.buildChannelSuccess(7)).toEqual(hex('63 00000007'))
    expect(build.buildChannelFailure(7)).toEqual(hex('64 00000007'))
    expect(build.buildRequestFailure()).toEqual(hex('52'))
    expect(build.buildRequestSuccess(hex('01'))).toEqual(hex('51 01'))
    expect(build.buildChannelOpenFailure(7, 1, 'no')).toEqual(
      hex('5c 00000007 00000001 00000002 6e6f 00000000'),
    )
    expect(build.buildExitStatus(7, 255)).toEqual(
      hex('62 00000007 0000000b 657869742d737461747573 00 000000ff'),
    )
    expect(build.buildShell(7, true)).toEqual(hex('62 00000007 00000005 7368656c6c 01'))
    expect(messages.parseChannelOpenFailure(build.buildChannelOpenFailure(7, 4, 'full'))).toEqual({
      recipient: 7,
      reason: 4,
      description: Buffer.from('full'),
    })
  })

  it.each([
    ['data longer than it says', () => messages.dataOf(hex('5e 00000001 00000001 6162'))],
    ['data shorter than it says', () => messages.dataOf(hex('5e 00000001 00000003 6162'))],
    ['data without a length', () => messages.dataOf(hex('5e 00000001 0000'))],
    ['extended data without a type', () => messages.extendedDataOf(hex('5f 00000001'))],
    ['no recipient', () => messages.recipientOf(hex('61 000000'))],
    ['another number', () => messages.parseChannelOpen(hex('5b'))],
    [
      'a name over 64 bytes',
      () => messages.parseGlobalRequest(new Writer().byte(80).string('x'.repeat(65)).boolean(true).finish()),
    ],
    [
      'a failure with something behind',
      () =>
        messages.parseChannelOpenFailure(Buffer.concat([build.buildChannelOpenFailure(1, 1, ''), hex('00')])),
    ],
  ])('are refused: %s', (_, parse) => {
    expect(parse).toThrow(MalformedError)
  })
})

describe('the data of channel requests', () => {
  const dataOf = (message: Uint8Array) => messages.parseChannelRequest(message).data

  it('comes back as it was built', () => {
    const pty = {
      terminal: 'xterm-256color',
      columns: 80,
      rows: 24,
      widthPixels: 640,
      heightPixels: 480,
      modes: hex('81 00009600 00'),
    }
    expect(requests.parsePtyRequest(dataOf(build.buildPtyRequest(1, true, pty)))).toEqual(pty)
    const change = { columns: 100, rows: 30, widthPixels: 0, heightPixels: 0 }
    expect(requests.parseWindowChange(hex('00000064 0000001e 00000000 00000000'))).toEqual(change)
    const command = hex('636174ff00')
    expect(requests.parseExec(dataOf(build.buildExec(1, true, command)))).toEqual(command)
    expect(latin1(requests.parseSubsystem(dataOf(build.buildSubsystem(1, true, 'sftp'))))).toBe('sftp')
    expect(requests.parseEnv(dataOf(build.buildEnv(1, false, 'LANG', 'C')))).toEqual({
      name: 'LANG',
      value: Buffer.from('C'),
    })
    expect(requests.parseExitStatus(dataOf(build.buildExitStatus(1, 42)))).toBe(42)
    const segv = new Writer().string('SEGV').boolean(false).string('ouch').string('').finish()
    expect(requests.parseExitSignal(segv)).toEqual({
      signal: 'SEGV',
      coreDumped: false,
      message: Buffer.from('ouch'),
    })
  })

  it('is refused with something behind it', () => {
    const exec = Buffer.concat([new Writer().string('id').finish(), hex('00')])
    expect(() => requests.parseExec(exec)).toThrow(MalformedError)
    expect(() => requests.parseExitStatus(hex('0000000000'))).toThrow(MalformedError)
  })
})
