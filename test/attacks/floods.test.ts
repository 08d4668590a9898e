import { beforeAll, describe, expect, test } from 'vitest'
import { buildGlobalRequest } from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import type { Bastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { until } from '../until.ts'
import { channelOpen, type RawClient, sessionOpen } from './raw.ts'

import { begin, describeAttacks, forward } from './setting.ts'

const NOTHING = Buffer.alloc(0)

describeAttacks('floods', (setting) => {
  const { arrive, resident } = setting
  let bastion: Bastion
  beforeAll(() => {
    bastion = setting.bastion
  })

  describe('floods', () => {
    test('10,000 channels: some dozens are opened, the rest is refused', async () => {
      const client = await arrive()
      const before = resident()
      for (let n = 0; n < 10_000; n++) client.send(sessionOpen(n))
      await until('all answers', () => client.received.length >= 10_000 || undefined)
      const opened = client.received.filter(([type]) => type === MSG.channelOpenConfirmation)
      const refused = client.received.filter(([type]) => type === MSG.channelOpenFailure)
      expect([opened.length > 0 && opened.length <= 64, opened.length + refused.length]).toEqual([
        true,
        10_000,
      ])
      expect(resident() - before).toBeLessThan(100_000)
    })

    const requests: [string, () => Buffer][] = [
      [
        'keepalives',
        () => buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: NOTHING }),
      ],
      [
        'forwardings',
        () => buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: forward('', 1) }),
      ],
      ['channels of another kind', () => channelOpen('direct-tcpip', 1, 1, forward('127.0.0.1', 22))],
      ['channels over the limit', () => sessionOpen(1)],
    ]

    /**
     * Sends without reading an answer, until all is sent or the connection ends; returns the broker's growth
     * in KiB.
     */
    async function flood(client: RawClient, message: Buffer): Promise<number> {
      const before = resident()
      let peak = 0
      client.socket.pause()
      for (let n = 0; n < 300_000 && !client.closed; n++) {
        client.send(message)
        if (n % 1_000 !== 0) continue
        await new Promise((resolve) => setImmediate(resolve))
        peak = Math.max(peak, resident())
      }
      // The broker reads up to its limit; others are served meanwhile.
      expect((await ssh(bastion.home, bastion.login(), ['echo fine'])).stdout).toBe('fine\n')
      return Math.max(peak, resident()) - before
    }

    test.each(requests)(
      '300,000 %s whose answers nobody reads: memory is bounded, others go on',
      async (_, make) => {
        const client = await arrive()
        await begin(client)
        expect(await flood(client, make())).toBeLessThan(100_000)
      },
    )

    test.each(requests)('the same in the menu, where there is no target yet: %s', async (_, make) => {
      const client = await arrive('ops1')
      expect(await flood(client, make())).toBeLessThan(100_000)
    })
  })
})
