/** DER, TSRequests split from a stream, certificates, and SPNEGO's choice of a mechanism. */
import { Buffer } from 'node:buffer'
import { createHash, X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { DerReader, der, integer, readHead, TAG } from '../../../../proxies/bytes/der.ts'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  buildInit,
  buildMechanismList,
  buildResponse,
  parseResponse,
  STATE,
} from '../../../../proxies/bytes/spnego.ts'
import { channelBindings, subjectPublicKey } from '../../../../proxies/rdp/credssp/certificate.ts'
import { contextOf } from '../../../../proxies/rdp/credssp/kerberos-initiator.ts'
import { SpnegoAcceptor } from '../../../../proxies/rdp/credssp/spnego-acceptor.ts'
import { SpnegoInitiator } from '../../../../proxies/rdp/credssp/spnego-initiator.ts'
import {
  buildTsRequest,
  parseTsRequest,
  TS_REQUEST_LIMIT,
  TsRequestSplitter,
} from '../../../../proxies/rdp/credssp/ts-request.ts'
import type { Acceptor, Initiator } from '../../../../proxies/rdp/gss/mechanism.ts'
import { NTLM_OID } from '../../../../proxies/rdp/gss/oids.ts'
import { channelBindingsHash } from '../../../../proxies/rdp/ntlm/keys.ts'
import { KERBEROS_OID } from '../../../../src/kerberos/gss.ts'
import { MessageTokens } from '../../../../src/kerberos/message-tokens.ts'
import { SESSION_KEY } from '../../../kerberos/client.ts'
import { createIdentity } from './connections.ts'
import { createAcceptor, createInitiator, judge } from './pair.ts'

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex')

describe('DER', () => {
  test.each([
    [0, '020100'],
    [6, '020106'],
    [127, '02017f'],
    [128, '02020080'],
    [256, '02020100'],
    [0xc000006d, '0204c000006d'],
    [0x7fffffff, '02047fffffff'],
    [-1, '0201ff'],
    [-128, '020180'],
    [-129, '0202ff7f'],
  ])('INTEGER %s', (value, hex) => {
    expect(integer(value).toString('hex')).toBe(hex)
    expect(new DerReader(bytes(hex), 'test').uint32()).toBe(value >>> 0)
  })

  test('an INTEGER that is written without a sign', () => {
    expect(new DerReader(bytes('020500c000006d'), 'test').uint32()).toBe(0xc000006d)
    for (const hex of ['0200', '020501c000006d', '02060000c000006d']) {
      expect(() => new DerReader(bytes(hex), 'test').uint32()).toThrow(MalformedError)
    }
  })

  test.each([
    [0x7f, '047f'],
    [0x80, '048180'],
    [0xff, '0481ff'],
    [0x100, '04820100'],
    [0x10000, '0483010000'],
  ])('a length of %s', (length, head) => {
    const whole = der(TAG.OCTET_STRING, Buffer.alloc(length))
    expect(whole.toString('hex', 0, head.length / 2)).toBe(head)
    expect(new DerReader(whole, 'test').take(TAG.OCTET_STRING).length).toBe(length)
  })

  test('lengths that are longer than needed are read, indefinite ones and tags of two bytes are not', () => {
    expect(new DerReader(bytes('0484000000015a'), 'test').take(TAG.OCTET_STRING)).toEqual(bytes('5a'))
    expect(() => readHead(bytes('0480'), 0, 'test')).toThrow('a length of 1 to 4 bytes')
    expect(() => readHead(bytes('04850000000001'), 0, 'test')).toThrow('a length of 1 to 4 bytes')
    expect(() => readHead(bytes('1f81'), 0, 'test')).toThrow('a tag of one byte')
    expect(readHead(bytes('048200'), 0, 'test')).toBeUndefined()
  })
})

describe('TSRequest', () => {
  const whole = {
    version: 6,
    negoToken: bytes('01'),
    authInfo: bytes('02'),
    pubKeyAuth: bytes('03'),
    errorCode: 0xc000006d,
    clientNonce: Buffer.alloc(32, 5),
  }

  test('comes back as it was, with all fields and with none', () => {
    expect(parseTsRequest(buildTsRequest(whole))).toEqual(whole)
    expect(parseTsRequest(buildTsRequest({ version: 2 })).version).toBe(2)
  })

  test('with something after it', () => {
    expect(() => parseTsRequest(Buffer.concat([buildTsRequest(whole), bytes('00')]))).toThrow('the end')
    const wrapped = der(TAG.SEQUENCE, buildTsRequest(whole).subarray(3), bytes('a603020100'))
    expect(() => parseTsRequest(wrapped)).toThrow(MalformedError)
  })

  test('is cut out of a stream, and what follows is left', () => {
    const splitter = new TsRequestSplitter()
    const first = buildTsRequest(whole)
    const stream = Buffer.concat([first, buildTsRequest({ version: 6 }), bytes('0300')])
    const found: Buffer[] = []
    for (const byte of stream) {
      splitter.add(Buffer.from([byte]))
      if (found.length === 2) continue
      const message = splitter.next()
      if (message) found.push(message)
    }
    expect(found).toEqual([first, buildTsRequest({ version: 6 })])
    expect(splitter.rest()).toEqual(bytes('0300'))
    expect(() => splitter.next()).toThrow('found tag 0x3')
  })

  test('that would be too long is refused by its first bytes', () => {
    const splitter = new TsRequestSplitter()
    splitter.add(bytes('3083010001'))
    expect(() => splitter.next()).toThrow(`at most ${TS_REQUEST_LIMIT} bytes`)
  })
})

test('what is taken from a certificate is what Node and OpenSSL take', async () => {
  const { raw, publicKey } = new X509Certificate((await createIdentity()).cert)
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const key = Buffer.from(subjectPublicKey(raw))
  expect(spki.subarray(-key.length)).toEqual(key)
  // An RSA key's own DER begins here.
  expect(key[0]).toBe(TAG.SEQUENCE)
  const hash = createHash('sha256').update(raw).digest()
  expect(channelBindings(raw)).toEqual(channelBindingsHash(hash))
  expect(() => subjectPublicKey(raw.subarray(0, 100))).toThrow(MalformedError)
})

describe('SPNEGO', () => {
  const OTHER_OID = bytes('06092a864886f712010202')

  /** A mechanism that never completes. */
  const other = (): Initiator => ({
    oid: OTHER_OID,
    context: undefined,
    isComplete: false,
    start: () => bytes('aa'),
    step: () => bytes('ab'),
  })

  /** Runs SPNEGO to the end, and returns the server's result for NTLM after another mechanism. */
  function talk(initiator: Initiator, acceptor: Acceptor, between = (token: Uint8Array) => token): string {
    let token: Uint8Array | undefined = between(initiator.start())
    for (;;) {
      let step = acceptor.step(token)
      if (step.kind === 'judge') step = acceptor.judged(judge(step.proof))
      if (step.kind === 'refused' || step.kind === 'judge') return step.kind
      token = initiator.step(step.token!)
      if (step.kind === 'in') return initiator.isComplete ? 'in' : 'incomplete'
      token = between(token!)
    }
  }

  test('NTLM after a token of a mechanism that the server does not speak', () => {
    const initiator = new SpnegoInitiator([other(), createInitiator()])
    expect(talk(initiator, new SpnegoAcceptor([createAcceptor()]))).toBe('in')
  })

  test('a list that was changed on its way', () => {
    const changed = (token: Uint8Array): Uint8Array =>
      token[0] === TAG.APPLICATION
        ? buildInit(buildMechanismList([NTLM_OID]), createInitiator().start())
        : token
    const initiator = new SpnegoInitiator([createInitiator(), other()])
    expect(() => talk(initiator, new SpnegoAcceptor([createAcceptor()]), changed)).toThrow(
      'list of mechanisms',
    )
  })

  test('signatures that are left out after another choice than the first', () => {
    const initiator = new SpnegoInitiator([other(), createInitiator()])
    const unsigned = (token: Uint8Array): Uint8Array =>
      token[0] === TAG.APPLICATION ? token : buildResponse({ token: parseResponse(token).token })
    expect(() => talk(initiator, new SpnegoAcceptor([createAcceptor()]), unsigned)).toThrow(
      'list of mechanisms',
    )
  })

  /** Kerberos after its ticket: complete by the first answer, with the target's side of the same key. */
  function ticketed() {
    const first = { own: 5, peer: 5 }
    const side = { key: SESSION_KEY, isAcceptorKey: false, first }
    const target = new MessageTokens({ ...side, side: 'acceptor' })
    const context = contextOf(new MessageTokens({ ...side, side: 'initiator' }))
    let isComplete = false
    const kerberos: Initiator = {
      oid: KERBEROS_OID,
      get context() {
        return isComplete ? context : undefined
      },
      get isComplete() {
        return isComplete
      },
      start: () => bytes('aa'),
      step: () => {
        isComplete = true
        return undefined
      },
    }
    const list = buildMechanismList([KERBEROS_OID, NTLM_OID])
    const initiator = new SpnegoInitiator([kerberos, createInitiator()])
    initiator.start()
    const answer = (state: number, signature?: Uint8Array) =>
      initiator.step(buildResponse({ state, mechanism: KERBEROS_OID, token: bytes('ab'), signature }))
    return { target, context, list, initiator, answer }
  }

  test('a target that signs the list in its first answer, which ends it', () => {
    const { target, context, list, initiator, answer } = ticketed()
    expect(answer(STATE.COMPLETED, target.sign(list))).toBeUndefined()
    expect(initiator.isComplete).toBe(true)
    // Both sides count the signature as the first message.
    expect(context.unwrap(target.wrap(bytes('01')))).toEqual(bytes('01'))
    expect(target.unwrap(context.wrap(bytes('02')))).toEqual(bytes('02'))
    expect(() => initiator.step(buildResponse({ state: STATE.COMPLETED }))).toThrow('no further token')
  })

  test('a target that signs the list in its first answer, and wants ours', () => {
    const { target, list, initiator, answer } = ticketed()
    const ours = parseResponse(answer(STATE.INCOMPLETE, target.sign(list))!)
    expect(target.isSigned(list, ours.signature!)).toBe(true)
    expect(initiator.isComplete).toBe(true)
  })

  test.each([
    ['of another list', () => ticketed().target.sign(buildMechanismList([KERBEROS_OID]))],
    ['that was reflected', () => ticketed().context.signMechanisms(ticketed().list)],
    ['of no bytes', () => Buffer.alloc(0)],
  ])('a signature %s in the first answer ends the sign-in', (_, signature) => {
    for (const state of [STATE.COMPLETED, STATE.INCOMPLETE]) {
      const { initiator, answer } = ticketed()
      expect(() => answer(state, signature())).toThrow('list of mechanisms')
      expect(initiator.isComplete).toBe(false)
    }
  })

  test('nothing in common, and a target that refuses', () => {
    const acceptor = new SpnegoAcceptor([createAcceptor()])
    expect(() => acceptor.step(buildInit(buildMechanismList([OTHER_OID]), bytes('00')))).toThrow(
      'no mechanism',
    )
    expect(() => new SpnegoAcceptor([]).step(createInitiator().start())).toThrow('NTLM, which is off')
    const initiator = new SpnegoInitiator([createInitiator()])
    initiator.start()
    expect(() => initiator.step(buildResponse({ state: STATE.REJECT }))).toThrow('refused every mechanism')
    expect(() => initiator.step(buildResponse({ state: STATE.INCOMPLETE, mechanism: OTHER_OID }))).toThrow(
      'a mechanism that was offered was expected',
    )
  })

  test('more mechanisms than anybody has', () => {
    const list = buildMechanismList(Array.from({ length: 17 }, () => OTHER_OID))
    expect(() => new SpnegoAcceptor([]).step(buildInit(list, bytes('00')))).toThrow('at most 16 mechanisms')
  })
})
