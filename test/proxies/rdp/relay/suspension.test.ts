/** Input of a client that is held by order of the broker. */
import { expect, test } from 'vitest'
import type { InputEvent } from '../../../../proxies/rdp/codec/input.ts'
import { parseFastPathInput } from '../../../../proxies/rdp/codec/input.ts'
import { newWorldWithDesktop } from '../relay-world.ts'

const WHY = 'the change is being checked'
const key = (isDown: boolean, code = 0x1e): InputEvent => ({ kind: 'key', code, extended: 0, isDown })

test('keys of a suspended client are dropped, those that were held are released, and the reason is shown', async () => {
  const world = await newWorldWithDesktop()
  const inputs = () => world.target.heard().fastPath.flatMap((pdu) => parseFastPathInput(pdu))
  world.client.input(key(true))
  expect(inputs()).toEqual([key(true)])
  world.session.suspension.begin(WHY)
  expect(inputs()).toEqual([key(false)])
  world.client.input(key(false), key(true, 0x30), { kind: 'pointer', flags: 0x9000, x: 1, y: 1 })
  expect(inputs()).toEqual([])
  world.session.suspension.end()
  world.client.input(key(true, 0x31))
  expect(inputs()).toEqual([key(true, 0x31)])
})
