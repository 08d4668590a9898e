/**
 * The first two messages of MCS (T.125 sections 11.1 and 11.2) in BER, and GCC's conference (T.124 section
 * 8.7) inside them in PER. They carry both sides' data blocks (MS-RDPBCGR 2.2.1.3 and 2.2.1.4).
 */
import { Buffer } from 'node:buffer'
import { BER, buildBer, buildBerNumber, readBer, readBerNumber } from './ber.ts'
import { buildPerLength, readPerLength } from './per.ts'
import { ByteReader } from './reader.ts'
import { buildData, parseData } from './x224.ts'

const TAG = { initial: 0x7f65, response: 0x7f66 } as const
const RESULT_SUCCESSFUL = 0
/** T.125 has sixteen results. */
const RESULT_LIMIT = 15

/** ConnectData's key: the object identifier of T.124 02/98. */
const CONFERENCE_KEY = Buffer.from('000500147c0001', 'hex')
/** ConferenceCreateRequest: the conference `1` with one set of user data. */
const CREATE_REQUEST = Buffer.from('000800100001c000', 'hex')
const CLIENT_KEY = Buffer.from('Duca')
const SERVER_KEY = Buffer.from('McDn')
const CREATE_RESPONSE = 0x14
/** Start of a ConferenceCreateResponse: node, tag and result `success`, the same for every server. */
const RESPONSE_HEAD = Buffer.from('14760a01010001c000', 'hex')

const domainParameters = (...numbers: number[]) =>
  buildBer(BER.sequence, ...numbers.map((number) => buildBerNumber(BER.integer, number)))

/** MS-RDPBCGR 4.1.3: channels, users, tokens, priorities, throughput, height, PDU size, version. */
const TARGET_PARAMETERS = domainParameters(34, 2, 0, 1, 0, 1, 65535, 2)
const LEAST_PARAMETERS = domainParameters(1, 1, 1, 1, 0, 1, 1056, 2)
const MOST_PARAMETERS = domainParameters(65535, 64535, 65535, 1, 0, 1, 65535, 2)
/** MS-RDPBCGR 4.1.4. */
const CHOSEN_PARAMETERS = domainParameters(34, 3, 0, 1, 0, 1, 65528, 2)

/** Returns the client's data blocks from a whole TPKT. */
export function parseConnectInitial(pdu: Uint8Array): Uint8Array {
  const what = 'MCS Connect Initial'
  const outer = new ByteReader(parseData(pdu), what)
  const reader = new ByteReader(readBer(outer, TAG.initial), what)
  outer.end()
  readBer(reader, BER.octetString)
  readBer(reader, BER.octetString)
  readBer(reader, BER.boolean)
  // skips the client's domain parameters: RDP does not use them
  for (let sets = 3; sets > 0; sets--) readBer(reader, BER.sequence)
  const conference = new ByteReader(readBer(reader, BER.octetString), 'GCC conference create request')
  reader.end()
  readConferenceKey(conference)
  expectBytes(conference, CREATE_REQUEST, 'the create request of a conference')
  return readUserData(conference, CLIENT_KEY)
}

/** Builds a TPKT around the client's data blocks. */
export function buildConnectInitial(blocks: Uint8Array): Buffer {
  const data = Buffer.concat([CREATE_REQUEST, CLIENT_KEY, buildPerLength(blocks.length), blocks])
  return buildData(
    buildBer(
      TAG.initial,
      buildBer(BER.octetString, Uint8Array.of(1)),
      buildBer(BER.octetString, Uint8Array.of(1)),
      buildBer(BER.boolean, Uint8Array.of(0xff)),
      TARGET_PARAMETERS,
      LEAST_PARAMETERS,
      MOST_PARAMETERS,
      buildBer(BER.octetString, CONFERENCE_KEY, buildPerLength(data.length), data),
    ),
  )
}

/** Returns the server's data blocks from a whole TPKT. Throws if the server has refused. */
export function parseConnectResponse(pdu: Uint8Array): Uint8Array {
  const what = 'MCS Connect Response'
  const outer = new ByteReader(parseData(pdu), what)
  const reader = new ByteReader(readBer(outer, TAG.response), what)
  outer.end()
  const result = readBerNumber(reader, BER.enumerated)
  if (RESULT_LIMIT < result) reader.fail(`a result of 0 to ${RESULT_LIMIT} was expected, found ${result}`)
  if (result !== RESULT_SUCCESSFUL)
    reader.fail(`the result 0 was expected, the server refuses with ${result}`)
  readBerNumber(reader, BER.integer)
  readBer(reader, BER.sequence)
  const conference = new ByteReader(readBer(reader, BER.octetString), 'GCC conference create response')
  reader.end()
  readConferenceKey(conference)
  conference.expect('message', conference.uint8(), CREATE_RESPONSE)
  conference.skip(2)
  conference.skip(readPerLength(conference))
  conference.expect('result', conference.uint8(), RESULT_SUCCESSFUL)
  expectBytes(conference, Uint8Array.of(1, 0xc0, 0), 'user data of one set')
  return readUserData(conference, SERVER_KEY)
}

/** Builds a TPKT around the server's data blocks. */
export function buildConnectResponse(blocks: Uint8Array): Buffer {
  const data = Buffer.concat([RESPONSE_HEAD, SERVER_KEY, buildPerLength(blocks.length), blocks])
  return buildData(
    buildBer(
      TAG.response,
      buildBerNumber(BER.enumerated, RESULT_SUCCESSFUL),
      buildBerNumber(BER.integer, 0),
      CHOSEN_PARAMETERS,
      buildBer(BER.octetString, CONFERENCE_KEY, buildPerLength(data.length), data),
    ),
  )
}

/** Ignores the length after the key: MS-RDPBCGR 4.1.4 has 42 for more bytes, and servers copy that. */
function readConferenceKey(reader: ByteReader): void {
  expectBytes(reader, CONFERENCE_KEY, "the key of T.124's conference")
  readPerLength(reader)
}

function readUserData(reader: ByteReader, key: Uint8Array): Uint8Array {
  expectBytes(reader, key, 'the key of the user data')
  const blocks = reader.bytes(readPerLength(reader))
  reader.end()
  return blocks
}

function expectBytes(reader: ByteReader, wanted: Uint8Array, what: string): void {
  const found = reader.bytes(wanted.length)
  if (!found.every((byte, index) => byte === wanted[index])) {
    reader.fail(`${what} was expected, found ${Buffer.from(found).toString('hex')}`)
  }
}
