/** MS-RDPBCGR's own examples (section 4), those without RDP's own security. */
import { Buffer } from 'node:buffer'

const bytes = (hex: string) => Buffer.from(hex.replace(/\s+/g, ''), 'hex')

/** 4.1.1 and 4.1.2. */
export const CONNECTION_REQUEST = bytes(
  '03 00 00 2c 27 e0 00 00 00 00 00 43 6f 6f 6b 69 65 3a 20 6d 73 74 73 68 61 73 68 3d 65 6c 74 6f 6e 73 0d 0a' +
    '01 00 08 00 00 00 00 00',
)
export const CONNECTION_CONFIRM = bytes('03 00 00 13 0e d0 00 00 12 34 00 02 00 08 00 00 00 00 00')

const ZEROS = '00'.repeat(64)
/** 4.1.3: client core data without its header. */
export const CLIENT_CORE = bytes(
  '04 00 08 00 00 05 00 04 01 ca 03 aa 09 04 00 00 ce 0e 00 00' +
    '45 00 4c 00 54 00 4f 00 4e 00 53 00 2d 00 44 00 45 00 56 00 32 00 00 00 00 00 00 00 00 00 00 00' +
    `04 00 00 00 00 00 00 00 0c 00 00 00 ${ZEROS}` +
    '01 ca 01 00 00 00 00 00 18 00 07 00 01 00' +
    Buffer.from('69712-783-0357974-42714'.padEnd(32, '\0'), 'utf16le').toString('hex') +
    '00 00 00 00 00 00',
)

const CLIENT_BLOCKS =
  `01 c0 d8 00 ${CLIENT_CORE.toString('hex')}` +
  '04 c0 0c 00 0d 00 00 00 00 00 00 00' +
  '02 c0 0c 00 1b 00 00 00 00 00 00 00' +
  '03 c0 2c 00 03 00 00 00 72 64 70 64 72 00 00 00 00 00 80 80' +
  '63 6c 69 70 72 64 72 00 00 00 a0 c0 72 64 70 73 6e 64 00 00 00 00 00 c0'

/** 4.1.3, whole. */
export const CONNECT_INITIAL = bytes(
  '03 00 01 a5 02 f0 80 7f 65 82 01 99 04 01 01 04 01 01 01 01 ff' +
    '30 1a 02 01 22 02 01 02 02 01 00 02 01 01 02 01 00 02 01 01 02 03 00 ff ff 02 01 02' +
    '30 19 02 01 01 02 01 01 02 01 01 02 01 01 02 01 00 02 01 01 02 02 04 20 02 01 02' +
    '30 20 02 03 00 ff ff 02 03 00 fc 17 02 03 00 ff ff 02 01 01 02 01 00 02 01 01 02 03 00 ff ff 02 01 02' +
    '04 82 01 33 00 05 00 14 7c 00 01 81 2a 00 08 00 10 00 01 c0 00 44 75 63 61 81 1c' +
    CLIENT_BLOCKS,
)

/** As 4.1.4, with security data for TLS (2.2.1.4.3), and with the example's wrong length of 42. */
export const CONNECT_RESPONSE = bytes(
  '03 00 00 6b 02 f0 80 7f 66 62 0a 01 00 02 01 00' +
    '30 1a 02 01 22 02 01 03 02 01 00 02 01 01 02 01 00 02 01 01 02 03 00 ff f8 02 01 02' +
    '04 3e 00 05 00 14 7c 00 01 2a 14 76 0a 01 01 00 01 c0 00 4d 63 44 6e 28' +
    '01 0c 0c 00 04 00 08 00 00 00 00 00 03 0c 10 00 eb 03 03 00 ec 03 ed 03 ee 03 00 00' +
    '02 0c 0c 00 00 00 00 00 00 00 00 00',
)

/** 4.1.5 to 4.1.8: without TPKT and X.224. */
export const MCS = {
  erectDomain: bytes('04 01 00 01 00'),
  attachRequest: bytes('28'),
  attachConfirm: bytes('2e 00 00 06'),
  joinRequest: bytes('38 00 06 03 ef'),
  joinConfirm: bytes('3e 00 00 06 03 ef 03 ef'),
  /** 4.2.1. */
  disconnect: bytes('21 80'),
} as const

const utf16 = (text: string) => Buffer.from(`${text}\0`, 'utf16le').toString('hex')
const zone = (name: string) => Buffer.from(name.padEnd(32, '\0'), 'utf16le').toString('hex')

/** 4.1.10, without the security header. */
export const CLIENT_INFO = bytes(
  '09 04 09 04 b3 43 00 00 0a 00 0c 00 00 00 00 00 00 00' +
    `${utf16('NTDEV')}${utf16('eltons')}${utf16('')}${utf16('')}${utf16('')}` +
    `02 00 1e 00 ${utf16('157.59.242.156')}` +
    `84 00 ${utf16('C:\\depots\\w2k3_1\\termsrv\\newclient\\lib\\win32\\obj\\i386\\mstscax.dll')}` +
    `e0 01 00 00 ${zone('Pacific Standard Time')} 00 00 0a 00 00 00 05 00 02 00 00 00 00 00 00 00 00 00 00 00` +
    `${zone('Pacific Daylight Time')} 00 00 04 00 00 00 01 00 02 00 00 00 00 00 00 00 c4 ff ff ff` +
    '00 00 00 00 01 00 00 00',
)

/** 4.1.11, with the security header. */
export const VALID_CLIENT = bytes('80 00 00 00 ff 03 10 00 07 00 00 00 02 00 00 00 04 00 00 00')

/** 4.1.13, capability sets of the client; orders and glyphs have bits to strip. */
export const CLIENT_SETS = bytes(
  '12 00 00 00 01 00 18 00 01 00 03 00 00 02 00 00 00 00 1d 04 00 00 00 00 00 00 00 00' +
    '02 00 1c 00 18 00 01 00 01 00 01 00 00 05 00 04 00 00 01 00 01 00 00 00 01 00 00 00' +
    '03 00 58 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 14 00 00 00 01 00 00 00 2a 00' +
    '01 01 01 01 01 00 00 01 01 01 00 01 00 00 00 01 01 01 01 01 01 01 01 00 01 01 01 00 00 00 00 00' +
    '00 00 00 00 00 00 00 00 00 84 03 00 00 00 00 00 00 00 00 00' +
    '13 00 28 00 03 00 00 03 78 00 00 00 78 00 00 00 fb 09 00 80 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00' +
    '00 00 00 00 0a 00 08 00 06 00 00 00 07 00 0c 00 00 00 00 00 00 00 00 00 05 00 0c 00 00 00 00 00 02 00 02 00' +
    `08 00 0a 00 01 00 14 00 15 00 09 00 08 00 00 00 00 00 0d 00 58 00 15 00 00 00 09 04 00 00 04 00 00 00` +
    `00 00 00 00 0c 00 00 00 ${ZEROS} 0c 00 08 00 01 00 00 00 0e 00 08 00 01 00 00 00` +
    '10 00 34 00 fe 00 04 00 fe 00 04 00 fe 00 08 00 fe 00 08 00 fe 00 10 00 fe 00 20 00 fe 00 40 00 fe 00 80 00' +
    'fe 00 00 01 40 00 00 08 00 01 00 01 03 00 00 00 0f 00 08 00 01 00 00 00' +
    '11 00 0c 00 01 00 00 00 00 1e 64 00 14 00 0c 00 01 00 00 00 40 06 00 00 15 00 0c 00 02 00 00 00 00 0a 00 01' +
    `16 00 28 00 ${'00'.repeat(36)}`,
)
export const CONFIRM_ACTIVE = Buffer.concat([
  bytes('f0 01 13 00 ef 03 ea 03 01 00 ea 03 06 00 da 01 4d 53 54 53 43 00'),
  CLIENT_SETS,
])

/** 4.1.14 to 4.1.22. */
export const FINALIZATION = {
  synchronize: bytes('16 00 17 00 ef 03 ea 03 01 00 00 01 08 00 1f 00 00 00 01 00 ea 03'),
  cooperate: bytes('1a 00 17 00 ef 03 ea 03 01 00 00 01 0c 00 14 00 00 00 04 00 00 00 00 00 00 00'),
  requestControl: bytes('1a 00 17 00 ef 03 ea 03 01 00 00 01 0c 00 14 00 00 00 01 00 00 00 00 00 00 00'),
  fontList: bytes('1a 00 17 00 ef 03 ea 03 01 00 00 01 0c 00 27 00 00 00 00 00 00 00 03 00 32 00'),
  grantedControl: bytes('1a 00 17 00 ea 03 ea 03 01 00 00 02 0c 00 14 00 00 00 02 00 ef 03 ea 03 00 00'),
  fontMap: bytes('1a 00 17 00 ea 03 ea 03 01 00 00 02 0c 00 28 00 00 00 00 00 00 00 03 00 04 00'),
} as const
