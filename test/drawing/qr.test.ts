/** QR codes, read by a reader of other authors. */
import { expect, it } from 'vitest'
import { qrLines, qrSquares } from '../../src/drawing/qr.ts'
import { describeWithPeers } from '../peers/program.ts'
import { pictureOfBlocks, qrText } from '../peers/zbar.ts'

const SECRET = 'secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Sallyport'

describeWithPeers('a QR code', ['zbarimg'], () => {
  it.each([
    `otpauth://totp/Sallyport:ops1?${SECRET}`,
    `otpauth://totp/Sallyport:m%C3%BCller%40corp.example?${SECRET}`,
    'x'.repeat(134),
  ])('of %s is read from the lines of a terminal, which they fit', async (text) => {
    const lines = qrLines(text)
    expect(lines.length).toBeLessThan(24)
    expect(new Set(lines.map((line) => line.length))).toEqual(new Set([qrSquares(text)!.length]))
    expect(lines[0]!.length).toBeLessThanOrEqual(80)
    expect(await qrText(pictureOfBlocks(lines))).toBe(text)
  })
})

it('there is none of a text that is too long for a terminal', () => {
  expect([qrSquares('x'.repeat(135)), qrLines('ü'.repeat(68))]).toEqual([undefined, []])
})
