/** A thread that exports one recording, piece by piece on request, and ends. */
import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'
import { parentPort, workerData } from 'node:worker_threads'
import { FfmpegMissing, GraphicSession, NothingToShow } from '../../../recordings/show/export/choices.ts'
import { openExport } from '../../../recordings/show/export/formats.ts'
import { giveWay } from '../../threads/priority.ts'
import type { ExportJob, FromExporter, ToExporter } from './messages.ts'

/** Of 19: sessions take precedence over exports. */
const NICENESS = 10
/** Small pieces of text are sent together. */
const PIECE = 64 * 1024

giveWay(NICENESS)

let wanted = 0
let isStopped = false
let wake: (() => void) | undefined

function answer(message: FromExporter): void {
  parentPort?.postMessage(message)
}

parentPort?.on('message', (message: ToExporter) => {
  if (message === 'more') wanted++
  else isStopped = true
  wake?.()
})

async function send(parts: Buffer[]): Promise<void> {
  while (wanted === 0 && !isStopped) {
    await new Promise<void>((resolve) => {
      wake = resolve
    })
  }
  wanted--
  if (!isStopped) answer({ kind: 'piece', bytes: Buffer.concat(parts) })
}

async function pour(stream: Readable): Promise<void> {
  let parts: Buffer[] = []
  let length = 0
  for await (const piece of stream) {
    const bytes = Buffer.from(piece as string | Uint8Array)
    parts.push(bytes)
    length += bytes.length
    if (length < PIECE) continue
    await send(parts)
    if (isStopped) return
    parts = []
    length = 0
  }
  if (length > 0) await send(parts)
}

async function run({ entry, key, choice }: ExportJob): Promise<void> {
  try {
    const stream = await openExport(entry, key, choice)
    answer({ kind: 'open', shown: stream.shown })
    await pour(stream)
    answer({ kind: 'end' })
  } catch (error) {
    if (error instanceof NothingToShow) answer({ kind: 'nothing' })
    else if (error instanceof GraphicSession) answer({ kind: 'graphic_session' })
    else if (error instanceof FfmpegMissing) answer({ kind: 'ffmpeg_missing' })
    else answer({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) })
  } finally {
    key.fill(0)
    parentPort?.close()
  }
}

void run(workerData as ExportJob)
