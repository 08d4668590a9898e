/** NTLMv2 against the example of MS-NLMP 4.2: user "User" of "Domain" with "Password", on "COMPUTER". */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { utf16Bytes } from '../../../../proxies/rdp/codec/utf16.ts'
import { buildAvPairs } from '../../../../proxies/rdp/ntlm/av-pairs.ts'
import { directionKeys } from '../../../../proxies/rdp/ntlm/keys.ts'
import { parseAuthenticate, parseChallenge } from '../../../../proxies/rdp/ntlm/messages.ts'
import { AV } from '../../../../proxies/rdp/ntlm/numbers.ts'
import { Rc4 } from '../../../../proxies/rdp/ntlm/rc4.ts'
import { NtlmSession } from '../../../../proxies/rdp/ntlm/session.ts'
import { judgeProof, ntHash, prove, responseKey } from '../../../../src/model/ntlm-auth.ts'
import { windowsUpperCase } from '../../../../src/model/upper-case.ts'

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex')

const SERVER_CHALLENGE = bytes('0123456789abcdef')
const SESSION_KEY = Buffer.alloc(16, 0x55)
const TARGET_INFO = '02000c0044006f006d00610069006e0001000c0053006500720076006500720000000000'
/** 4.2.4.1.3: time 0, client challenge aa…, the target info, and zeros after it. */
const TEMP = bytes(`01010000000000000000000000000000${'aa'.repeat(8)}00000000${TARGET_INFO}00000000`)
const PROOF = '68cd0ab851e51c96aabc927bebef6a1c'
const BASE_KEY = '8de40ccadbc14a82f15cb0ad0de95ca3'

/** 4.2.4.3 */
const CHALLENGE = bytes(
  `4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef00000000000000002400240044000000060070170000000f530065007200760065007200${TARGET_INFO}`,
)
const AUTHENTICATE = bytes(
  `4e544c4d5353500003000000180018006c00000054005400840000000c000c00480000000800080054000000100010005c00000010001000d8000000358288e20501280a0000000f44006f006d00610069006e00550073006500720043004f004d005000550054004500520086c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa${PROOF}${TEMP.toString('hex')}c5dad2544fc9799094ce1ce90bc9d03e`,
)

describe('keys', () => {
  test('of a password (4.2.2.1.2, 4.2.4.1.1)', () => {
    expect(ntHash('Password').toString('hex')).toBe('a4f49c406510bdcab6824ee7c30fd852')
    expect(responseKey(ntHash('Password'), 'User', 'Domain').toString('hex')).toBe(
      '0c868a403bfd7a93a3001ef22ef02e3f',
    )
  })

  test('proof and session base key (4.2.4.2.2, 4.2.4.1.2)', () => {
    const { response, sessionBaseKey } = prove(
      responseKey(ntHash('Password'), 'User', 'Domain'),
      SERVER_CHALLENGE,
      TEMP,
    )
    expect(response.toString('hex')).toBe(PROOF + TEMP.toString('hex'))
    expect(sessionBaseKey.toString('hex')).toBe(BASE_KEY)
  })

  test('encrypted session key (4.2.4.2.3)', () => {
    expect(new Rc4(bytes(BASE_KEY)).apply(SESSION_KEY).toString('hex')).toBe(
      'c5dad2544fc9799094ce1ce90bc9d03e',
    )
  })

  test('of both directions (4.2.4.4)', () => {
    const client = directionKeys(SESSION_KEY, 'client-to-server')
    expect(client.sign.toString('hex')).toBe('4788dc861b4782f35d43fd98fe1a2d39')
    expect(client.seal.toString('hex')).toBe('59f600973cc4960a25480a7c196e4c58')
    const server = directionKeys(SESSION_KEY, 'server-to-client')
    expect(server.sign.toString('hex')).toBe('d04d6f10741041d1d246d64188d7a8ad')
    expect(server.seal.toString('hex')).toBe('9355f3a957c1583d25c4c2f11e40390e')
  })
})

describe('messages (4.2.4.3)', () => {
  test('target info', () => {
    const pairs = [
      { id: AV.DOMAIN_NAME, value: utf16Bytes('Domain') },
      { id: AV.COMPUTER_NAME, value: utf16Bytes('Server') },
    ]
    expect(buildAvPairs(pairs).toString('hex')).toBe(TARGET_INFO)
  })

  test('CHALLENGE', () => {
    const challenge = parseChallenge(CHALLENGE)
    expect(challenge.flags).toBe(0xe28a8233)
    expect(challenge.serverChallenge).toEqual(SERVER_CHALLENGE)
    expect(Buffer.from(challenge.targetInfo).toString('hex')).toBe(TARGET_INFO)
  })

  test('AUTHENTICATE, without a MIC; its proof is judged', () => {
    const message = parseAuthenticate(AUTHENTICATE)
    expect(message).toMatchObject({
      user: 'User',
      domain: 'Domain',
      workstation: 'COMPUTER',
      mic: undefined,
      flags: 0xe2888235,
    })
    const { user, domain, ntResponse: response } = message
    const proof = { user, domain, serverChallenge: SERVER_CHALLENGE, response }
    expect(judgeProof(ntHash('Password'), proof)?.toString('hex')).toBe(BASE_KEY)
    expect(judgeProof(ntHash('password'), proof)).toBeUndefined()
    expect(judgeProof(ntHash('Password'), { ...proof, user: 'Other' })).toBeUndefined()
    expect(judgeProof(ntHash('Password'), { ...proof, domain: 'DOMAIN' })).toBeUndefined()
    expect(judgeProof(ntHash('Password'), { ...proof, response: response.subarray(0, 15) })).toBeUndefined()
    expect(judgeProof(ntHash('Password'), { ...proof, user: 'uSER' })).toBeDefined()
  })
})

describe('sealed messages', () => {
  test('the example (4.2.4.4)', () => {
    const sealed = new NtlmSession(SESSION_KEY, 'client').wrap(utf16Bytes('Plaintext'))
    expect(sealed.toString('hex')).toBe(
      '010000007fb38ec5c55d49760000000054e50165bf1936dc996020c1811b0f06fb5f',
    )
  })

  test('come out at the other side, both ways, in their order only', () => {
    const client = new NtlmSession(SESSION_KEY, 'client')
    const server = new NtlmSession(SESSION_KEY, 'server')
    expect(server.unwrap(client.wrap(bytes('00')))).toEqual(bytes('00'))
    expect(client.unwrap(server.wrap(bytes('')))).toEqual(bytes(''))
    const [first, second] = [client.wrap(bytes('01')), client.wrap(bytes('02'))]
    expect(server.unwrap(second)).toBeUndefined()
    expect(server.unwrap(first)).toBeUndefined()
  })

  test('changed ones do not', () => {
    const sealed = new NtlmSession(SESSION_KEY, 'client').wrap(bytes('0102'))
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at]! ^= 1
      expect(new NtlmSession(SESSION_KEY, 'server').unwrap(changed)).toBeUndefined()
    }
    expect(new NtlmSession(SESSION_KEY, 'server').unwrap(sealed.subarray(0, 15))).toBeUndefined()
  })
})

test('capital letters as Windows makes them: one for one', () => {
  expect(windowsUpperCase('aé÷ÿß ıſµ я')).toBe('AÉ÷Ÿß ıſµ Я')
})
