/** The arithmetic of the security types, checked against results of others. */
import { createDecipheriv } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Eax, FrameOpener, FrameSealer, SENT_FRAME } from '../../../../proxies/vnc/security/frames.ts'
import { vncAuthResponse, vncDesKey } from '../../../../src/model/vnc-auth.ts'

const hex = (text: string): Buffer => Buffer.from(text, 'hex')

describe('VNC authentication', () => {
  test('encrypts as TigerVNC does: its file of the password "VncPass1" is that under a key that all know', () => {
    const known = String.fromCharCode(23, 82, 107, 6, 35, 78, 88, 7)
    expect(vncAuthResponse(Buffer.from('VncPass1'), known).toString('hex')).toBe('af4aecd4dea429ed')
  })

  test('of a password eight bytes count, and fewer are filled with zeros', () => {
    const challenge = hex('000102030405060708090a0b0c0d0e0f')
    expect(vncAuthResponse(challenge, 'password')).toEqual(vncAuthResponse(challenge, 'password123'))
    expect(vncAuthResponse(challenge, 'short')).toEqual(vncAuthResponse(challenge, 'short\0\0\0'))
    const decipher = createDecipheriv('des-ede3', vncDesKey(Buffer.from('password')), null)
    decipher.setAutoPadding(false)
    expect(decipher.update(vncAuthResponse(challenge, 'password'))).toEqual(challenge)
  })
})

describe('EAX', () => {
  // The authors' own vectors: https://web.cs.ucdavis.edu/~rogaway/papers/eax.pdf, appendix E.
  test.each([
    [
      '',
      '233952DEE4D5ED5F9B9C6D6FF80FF478',
      '62EC67F9C3A4A407FCB2A8C49031A8B3',
      '6BFB914FD07EAE6B',
      'E037830E8389F27B025A2D6527E79D01',
    ],
    [
      'F7FB',
      '91945D3F4DCBEE0BF45EF52255F095A4',
      'BECAF043B0A23D843194BA972C66DEBD',
      'FA3BFD4806EB53FA',
      '19DD5C4C9331049D0BDAB0277408F67967E5',
    ],
    [
      '1A47CB4933',
      '01F74AD64077F2E704C0F60ADA3DD523',
      '70C3DB4F0D26368400A10ED05D2BFF5E',
      '234A3463C1264AC6',
      'D851D5BAE03A59F238A23E39199DC9266626C40F80',
    ],
    [
      '481C9E39B1',
      'D07CF6CBB7F313BDDE66B727AFD3C5E8',
      '8408DFFF3C1A2B1292DC199E46B7D617',
      '33CCE2EABFF5A79D',
      '632A9D131AD4C168A4225D8E1FF755939974A7BEDE',
    ],
    [
      '40D0C07DA5E4',
      '35B6D0580005BBC12B0587124557D2C2',
      'FDB6B06676EEDC5C61D74276E1F8E816',
      'AEB96EAEBE2970E9',
      '071DFE16C675CB0677E536F73AFE6A14B74EE49844DD',
    ],
    [
      '4DE3B35C3FC039245BD1FB7D',
      'BD8E6E11475E60B268784C38C62FEB22',
      '6EAC5C93072D8E8513F750935E46DA1B',
      'D4482D1CA78DCE0F',
      '835BB4F15D743E350E728414ABB8644FD6CCB86947C5E10590210A4F',
    ],
    [
      '8B0A79306C9CE7ED99DAE4F87F8DD61636',
      '7C77D6E813BED5AC98BAA417477A2E7D',
      '1A8C98DCD73D38393B2BF1569DEEFC19',
      '65D2017990D62528',
      '02083E3979DA014812F59F11D52630DA30137327D10649B0AA6E1C181DB617D7F2',
    ],
  ])('message %s', (message, key, nonce, header, sealed) => {
    const eax = new Eax(hex(key))
    const [bytes, tag] = eax.seal(hex(nonce), hex(header), hex(message))
    expect(Buffer.concat([bytes, tag])).toEqual(hex(sealed))
    expect(eax.open(hex(nonce), hex(header), bytes, tag)).toEqual(hex(message))
    tag[3]! ^= 1
    expect(eax.open(hex(nonce), hex(header), bytes, tag)).toBeUndefined()
  })
})

describe('frames', () => {
  const key = Buffer.alloc(32, 7)

  test('come out whole wherever chunks end, and in pieces of what a frame takes', () => {
    const [sealer, opener] = [new FrameSealer(key), new FrameOpener(key)]
    const messages = [Buffer.from('a'), Buffer.alloc(3 * SENT_FRAME + 5, 'b'), Buffer.from('the end')]
    const sealed = Buffer.concat(messages.map((message) => sealer.seal(message)))
    const opened: Buffer[] = []
    for (let at = 0; at < sealed.length; at += 777) opened.push(opener.open(sealed.subarray(at, at + 777)))
    expect(Buffer.concat(opened)).toEqual(Buffer.concat(messages))
  })

  test('a frame that comes again is refused', () => {
    const [sealer, opener] = [new FrameSealer(key), new FrameOpener(key)]
    const sealed = sealer.seal(Buffer.from('once'))
    opener.open(sealed)
    expect(() => opener.open(sealed)).toThrow('tag is wrong')
  })

  test('are the same whether blocks go through one cipher or another', () => {
    for (const length of [1, 15, 16, 17, 240, 241, 256, 257, 4096]) {
      const eax = new Eax(key)
      const message = Buffer.alloc(length, 'm')
      const nonce = Buffer.alloc(16, 0xff)
      const [bytes, tag] = eax.seal(nonce, Buffer.of(0, 1), message)
      // A counter whose bytes all overflow, computed by OpenSSL.
      const [zeros] = eax.seal(nonce, Buffer.of(0, 1), Buffer.alloc(4096))
      const expected = message.map((byte, at) => byte ^ zeros[at]!)
      expect(bytes, `${length}`).toEqual(Buffer.from(expected))
      expect(eax.open(nonce, Buffer.of(0, 1), bytes, tag), `${length}`).toEqual(message)
    }
  })

  test('without a message are refused: they would cost as much as others', () => {
    const [bytes, tag] = new Eax(key).seal(Buffer.alloc(16), Buffer.of(0, 0), Buffer.alloc(0))
    const frame = Buffer.concat([Buffer.of(0, 0), bytes, tag])
    expect(() => new FrameOpener(key).open(frame)).toThrow('without a message')
  })
})
