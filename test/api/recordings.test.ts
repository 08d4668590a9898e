/** Answers of the API if a recording cannot be shown in the requested form. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RecordingError } from '../../recordings/container/format/error.ts'
import { FfmpegMissing, GraphicSession } from '../../recordings/show/export/choices.ts'
import { type ExportStream, TooManyExports } from '../../src/recording-service/exporting/threads.ts'
import { StillRecording } from '../../src/recording-service/exports.ts'
import { searchEstate } from './estate.ts'
import { type Harness, startHarness } from './harness.ts'

const SESSION = '01K9T5RZ8Q4W6X2C3V1B0N7M50'

let h: Harness
let cookie = ''
let failure: Error = new Error('none yet')
let choice: unknown
let opening: ((gone: AbortSignal) => Promise<ExportStream>) | undefined
beforeAll(async () => {
  h = await startHarness({
    recordings: {
      open: async (_session, _format, chosen, gone) => {
        choice = chosen
        if (opening) return await opening(gone!)
        throw failure
      },
      close: async () => {},
    },
  })
  cookie = await h.signIn()
  await searchEstate(h, cookie)
})
afterAll(() => h.close())

const get = (suffix: string) => h.call('GET', `/sessions/${SESSION}/recording${suffix}`, { cookie })

it.each([
  [new StillRecording(SESSION), 409, 'still_recording'],
  [new RecordingError('wrong_key', 'not among the recipients'), 409, 'sealed_to_auditors'],
  [new GraphicSession(), 409, 'graphic_session'],
  [new FfmpegMissing(), 501, 'ffmpeg_missing'],
  [new TooManyExports(), 503, 'busy'],
  [new RecordingError('damaged_record', 'bytes 1 to 2 were changed'), 500, 'internal'],
])('%s', async (error, status, code) => {
  failure = error
  const answer = await get('.mp4?channel=3')
  expect([answer.status, answer.body.error]).toEqual([status, code])
  expect(choice).toEqual({ channel: 3 })
  expect((await h.events()).filter(({ event }) => event === 'recording.view')).toEqual([])
})

it.each([
  '.json?raw=true',
  '.cast?at=3',
  '.cast?channel=some',
  '.cast?channel=all&raw=true',
  '.png?at=-1',
  '.png?at=x',
  '.png?channel=1.5',
  '.png?channel=all',
  '.png?raw=true',
])('refuses %s', async (suffix) => {
  expect((await get(suffix)).status).toBe(400)
})

it('says which channels of how many are in the answer', async () => {
  for (const [query, channel] of [
    ['', 5],
    ['?channel=all', 'all'],
    ['?channel=5&raw=true', 5],
  ] as const) {
    opening = async () => Object.assign(Readable.from(['text']), { shown: { channel, count: 2 } })
    const { headers, status } = await get(`.txt${query}`)
    expect(status).toBe(200)
    expect([headers['recording-channel'], headers['recording-channels']]).toEqual([String(channel), '2'])
  }
  expect(choice).toEqual({ channel: 5, raw: true })
})

it('gives up what nobody waits for any more', async () => {
  let asked: () => void = () => undefined
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const isGone = new Promise<void>((resolve) => {
    opening = async (gone) => {
      asked()
      await once(gone, 'abort')
      resolve()
      throw new Error('the export was ended')
    }
  })
  await h.api.listen({ port: 0, host: '127.0.0.1' })
  const { port } = h.api.server.address() as { port: number }
  const client = connect({ port, host: '127.0.0.1', ca: h.cert })
  await once(client, 'secureConnect')
  client.write(
    `GET /api/sessions/${SESSION}/recording.mp4 HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`,
  )
  await isAsked
  h.log.length = 0
  client.destroy()
  await isGone
  expect(h.log.join()).not.toContain('the request failed')
})
