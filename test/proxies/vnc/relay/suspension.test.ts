/** Input of a viewer and of guests that is held by order of the broker. */
import { expect, test } from 'vitest'
import {
  encodeClientCutText,
  encodeKey,
  encodePointer,
  encodeSetEncodings,
  encodeUpdateRequest,
} from '../../../../proxies/vnc/codec/client-encoder.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { newWorld } from '../relay-world.ts'

const WHY = 'the change is being checked'
const ALL = { x: 0, y: 0, width: 100, height: 80 }

test('keys, pointer and clipboard of a suspended viewer are dropped; pictures are asked for as before', async () => {
  const { viewer, target, session } = await newWorld(['VNC_CLIPBOARD_UP'])
  viewer.say(encodeSetEncodings([ENCODING.DESKTOP_NAME]))
  viewer.say(encodeUpdateRequest(false, ALL))
  target.take()
  viewer.take()
  session.suspension.begin(WHY)
  expect(viewer.take().toString()).toContain(WHY)
  viewer.say(encodeKey(true, 0x61))
  viewer.say(encodePointer(1, 2, 1))
  viewer.say(encodeClientCutText(Buffer.from('secret')))
  expect(target.take()).toEqual(Buffer.alloc(0))
  viewer.say(encodeUpdateRequest(true, ALL))
  expect(target.take()).toEqual(encodeUpdateRequest(true, ALL))
  session.suspension.end()
  expect(viewer.take().toString()).toContain('accepted again')
  viewer.say(encodeKey(true, 0x62))
  expect(target.take()).toEqual(encodeKey(true, 0x62))
})

test('keys and buttons that are held when input is suspended are released at the target', async () => {
  const { viewer, target, session } = await newWorld([])
  viewer.say(encodeKey(true, 0xffe3))
  viewer.say(encodePointer(5, 6, 1))
  target.take()
  session.suspension.begin(WHY)
  expect(target.take()).toEqual(Buffer.concat([encodeKey(false, 0xffe3), encodePointer(5, 6, 0)]))
  viewer.say(encodeKey(false, 0xffe3))
  expect(target.take()).toEqual(Buffer.alloc(0))
})
