/** Random bytes: the codecs return or throw MalformedError, nothing else. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { classifyExec, classifySubsystem } from '../../proxies/ssh/codec/classify.ts'
import * as forwarding from '../../proxies/ssh/codec/forwarding.ts'
import * as gssapi from '../../proxies/ssh/codec/gssapi.ts'
import * as messages from '../../proxies/ssh/codec/messages.ts'
import { gitPreamble, rsyncPreamble } from '../../proxies/ssh/codec/preamble.ts'
import * as requests from '../../proxies/ssh/codec/requests.ts'
import { parseRecord } from '../../proxies/ssh/codec/scp.ts'
import { parseRequest, parseWriteHead, replyHead, requestHead } from '../../proxies/ssh/codec/sftp.ts'

const parsers: Record<string, (bytes: Uint8Array) => unknown> = {
  parseGlobalRequest: messages.parseGlobalRequest,
  parseChannelOpen: messages.parseChannelOpen,
  parseChannelOpenConfirmation: messages.parseChannelOpenConfirmation,
  parseChannelOpenFailure: messages.parseChannelOpenFailure,
  parseChannelRequest: messages.parseChannelRequest,
  recipientOf: messages.recipientOf,
  windowAdjustOf: messages.windowAdjustOf,
  dataOf: messages.dataOf,
  extendedDataOf: messages.extendedDataOf,
  parsePtyRequest: requests.parsePtyRequest,
  parseWindowChange: requests.parseWindowChange,
  parseExec: requests.parseExec,
  parseSubsystem: requests.parseSubsystem,
  parseEnv: requests.parseEnv,
  parseExitStatus: requests.parseExitStatus,
  parseExitSignal: requests.parseExitSignal,
  parseConnection: forwarding.parseConnection,
  parseAddress: forwarding.parseAddress,
  parsePort: forwarding.parsePort,
  parseDirectSocket: forwarding.parseDirectSocket,
  parseForwardedSocket: forwarding.parseForwardedSocket,
  parseSocketPath: forwarding.parseSocketPath,
  parseX11Request: forwarding.parseX11Request,
  namesKerberos: gssapi.namesKerberos,
  parseGssapiToken: gssapi.parseGssapiToken,
  parseGssapiMic: gssapi.parseGssapiMic,
  parseGssapiError: gssapi.parseGssapiError,
  parseWriteHead,
  parseRecord,
}

/** Small numbers make lengths that fit, so that more than the first field is read. */
const bytes = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(12), fc.nat(255)), {
  maxLength: 64,
})

function returnsOrRefuses(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError)
    return false
  }
}

describe('random bytes', () => {
  it.each(Object.entries(parsers))('%s returns or throws MalformedError', (_, parse) => {
    fc.assert(
      fc.property(bytes, fc.nat(255), (body, first) => {
        returnsOrRefuses(() => parse(Uint8Array.from(body)))
        returnsOrRefuses(() => parse(Uint8Array.from([first, ...body])))
        for (const number of [80, 90, 91, 92, 98])
          returnsOrRefuses(() => parse(Uint8Array.from([number, ...body])))
      }),
      { numRuns: 300 },
    )
  })

  it('are some SFTP request or none, of every type', () => {
    fc.assert(
      fc.property(fc.nat(255), bytes, (type, body) => {
        const head = Uint8Array.from(body)
        returnsOrRefuses(() => parseRequest(type, head))
        returnsOrRefuses(() => requestHead(type, head.length, head))
        returnsOrRefuses(() => replyHead(type, head.length))
      }),
      { numRuns: 3000 },
    )
  })

  it('are always some command', () => {
    const text = fc.array(
      fc.constantFrom(...Buffer.from("scp -tfr.'\\/*~\n\0;rsync--server git-upload-pack\xff", 'latin1')),
    )
    fc.assert(
      fc.property(
        fc.constantFrom('', 'scp -t ', 'rsync --server ', 'git-upload-pack '),
        text,
        (head, tail) => {
          const command = Buffer.concat([Buffer.from(head), Buffer.from(tail)])
          expect(['scp', 'rsync', 'git', 'command']).toContain(classifyExec(command).kind)
          expect(['sftp', 'subsystem']).toContain(classifySubsystem(command))
        },
      ),
      { numRuns: 3000 },
    )
  })

  it('are judged at once as the beginning of a stream: never undecided after 24 bytes', () => {
    const preambles = [
      rsyncPreamble,
      gitPreamble('git-upload-pack', 'client'),
      gitPreamble('git-upload-pack', 'target'),
      gitPreamble('git-receive-pack', 'client'),
      gitPreamble('git-upload-archive', 'client'),
    ]
    const begin = fc.tuple(
      fc.constantFrom('', '\x1f\0', '00', '003f', '0000', 'fff0'),
      fc.uint8Array({ maxLength: 40 }),
    )
    fc.assert(
      fc.property(begin, fc.constantFrom(...preambles), ([head, tail], preamble) => {
        const all = Buffer.concat([Buffer.from(head, 'latin1'), tail])
        const verdicts = Array.from(all, (_, index) => preamble(all.subarray(0, index + 1)))
        const first = verdicts.findIndex((verdict) => verdict !== 'more')
        if (24 <= all.length) expect(first).toBeGreaterThanOrEqual(0)
        if (first !== -1) expect(new Set(verdicts.slice(first)).size).toBe(1)
      }),
      { numRuns: 3000 },
    )
  })
})
