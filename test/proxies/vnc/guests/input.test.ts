/** A guest's input on its way to the target. */
import { expect, test } from 'vitest'
import { Upstream, type UpstreamOptions } from '../../../../proxies/vnc/relay/upstream.ts'

function setting(isViewOnly: boolean) {
  const sent: Buffer[] = []
  const recorded: number[][] = []
  const upstream = new Upstream({
    send: (bytes: Uint8Array) => sent.push(Buffer.from(bytes)),
    isViewOnly,
    recorder: {
      pointer: (...of: number[]) => recorded.push(of),
      key: (isDown: boolean, keysym: number, _: undefined, participant: number) =>
        recorded.push([Number(isDown), keysym, participant]),
    },
    onPointer: () => {},
    watch: { acts: () => {} },
    onSign: () => {},
  } as unknown as UpstreamOptions)
  return { upstream, sent, recorded }
}

test('is sent and recorded as theirs; an eighth button, which would announce another byte, never', () => {
  const { upstream, sent, recorded } = setting(false)
  upstream.input(3, { kind: 'pointer', x: 258, y: 4, buttons: 0x1ff })
  upstream.input(3, { kind: 'key', isDown: true, keysym: 0x61, keycode: undefined })
  expect(sent).toEqual([Buffer.of(5, 0x7f, 1, 2, 0, 4), Buffer.of(4, 1, 0, 0, 0, 0, 0, 0x61)])
  expect(recorded).toEqual([
    [258, 4, 0x7f, 3],
    [1, 0x61, 3],
  ])
})

test('is nothing where the session is for viewing only', () => {
  const { upstream, sent, recorded } = setting(true)
  upstream.input(3, { kind: 'pointer', x: 1, y: 1, buttons: 1 })
  upstream.input(3, { kind: 'key', isDown: true, keysym: 0x61, keycode: undefined })
  expect([sent, recorded]).toEqual([[], []])
})
