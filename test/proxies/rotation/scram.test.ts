import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { SCRAM_ITERATIONS, scramVerifier } from '../../../proxies/rotation/scram.ts'

test('the verifier is the one of the example in RFC 7677', () => {
  // Its section 3: the user's password, the salt and the number of iterations.
  expect(SCRAM_ITERATIONS).toBe(4096)
  const verifier = scramVerifier('pencil', Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'))
  expect(verifier).toBe(
    'SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=',
  )
})
