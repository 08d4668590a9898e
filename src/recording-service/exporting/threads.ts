/**
 * Exports for the API, each in its own thread: drawing and decoding an hour of terminal takes seconds, which
 * must not delay sessions.
 */
import { Readable } from 'node:stream'
import type { Shown } from '../../../recordings/decode/frames/channel.ts'
import { FfmpegMissing, GraphicSession, NothingToShow } from '../../../recordings/show/export/choices.ts'
import { programBeside, Thread } from '../../threads/thread.ts'
import type { ExportJob, FromExporter, ToExporter } from './messages.ts'

/** Limit of exports at a time. */
const MAX_THREADS = 4
/** Time for a stopped thread to end its ffmpeg. */
const STOP_MS = 2000
const MAX_HEAP_MIB = 256

/** An export's bytes, with the part of the session that they show. */
export interface ExportStream extends Readable {
  readonly shown?: Shown | undefined
}

/** The limit of exports at a time is reached. */
export class TooManyExports extends Error {
  constructor() {
    super(`expected at most ${MAX_THREADS} exports at a time: try again when one is done`)
    this.name = 'TooManyExports'
  }
}

export class ExportThreads {
  readonly #streams = new Set<ThreadStream>()
  /** Number of exports whose thread has not started. */
  #preparing = 0
  readonly #stopping = new AbortController()

  /**
   * Returns the export's bytes, read from the thread on demand. `prepare` makes the thread's input; its
   * signal aborts when the export is cancelled, as does `gone` until this resolves. Throws TooManyExports and
   * the errors of `prepare` and `openExport`.
   */
  async open(
    prepare: (signal: AbortSignal) => Promise<ExportJob>,
    gone?: AbortSignal,
  ): Promise<ExportStream> {
    if (this.#streams.size + this.#preparing >= MAX_THREADS) throw new TooManyExports()
    const unwanted = AbortSignal.any([this.#stopping.signal, ...(gone ? [gone] : [])])
    this.#preparing++
    let stream: ThreadStream
    try {
      const job = await prepare(unwanted)
      unwanted.throwIfAborted()
      stream = new ThreadStream(job)
    } finally {
      this.#preparing--
    }
    this.#streams.add(stream)
    stream.on('close', () => this.#streams.delete(stream))
    const end = () => stream.destroy()
    unwanted.addEventListener('abort', end)
    try {
      await stream.opened
    } finally {
      unwanted.removeEventListener('abort', end)
    }
    return stream
  }

  /** Stops all exports, for good. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the broker is stopping'))
    await Promise.all(
      [...this.#streams].map(async (stream) => {
        stream.destroy()
        await stream.ended
      }),
    )
  }
}

class ThreadStream extends Readable {
  readonly #thread: Thread<ToExporter, FromExporter>
  readonly #session: string
  readonly #channel: number | 'all' | undefined
  /** The part of the session that the export shows; set when `opened` resolves. */
  shown: Shown | undefined
  /** Rejects if there will be no stream. */
  readonly opened: Promise<void>
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>
  #open: () => void = () => undefined
  #isOver = false

  constructor(job: ExportJob) {
    super()
    this.#session = job.entry.session
    this.#channel = job.choice.channel
    this.opened = new Promise((resolve, reject) => {
      this.#open = resolve
      this.on('error', reject)
      this.on('close', () => reject(new Error('the export was ended')))
    })
    let end: () => void = () => undefined
    this.ended = new Promise((resolve) => {
      end = resolve
    })
    this.#thread = new Thread('exporting', {
      program: programBeside(import.meta.url, 'worker'),
      workerData: () => job,
      maxHeapMib: MAX_HEAP_MIB,
      onAnswer: (message) => this.#heard(message),
      onLost: (error) => {
        end()
        if (!this.#isOver) this.destroy(error)
      },
    })
    this.#thread.start()
    this.#thread.ref()
  }

  override _read(): void {
    this.#tell('more')
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#tell('stop')
    const late = setTimeout(() => void this.#thread.destroy(), STOP_MS)
    void this.ended.then(() => clearTimeout(late))
    done(error)
  }

  #tell(message: ToExporter): void {
    this.#thread.send(message)
  }

  #heard(message: FromExporter): void {
    switch (message.kind) {
      case 'open':
        this.shown = message.shown
        this.#open()
        return
      case 'piece':
        this.push(message.bytes)
        return
      case 'end':
        this.#isOver = true
        this.push(null)
        return
      case 'nothing':
        this.destroy(new NothingToShow(this.#session, this.#channel))
        return
      case 'graphic_session':
        this.destroy(new GraphicSession())
        return
      case 'ffmpeg_missing':
        this.destroy(new FfmpegMissing())
        return
      case 'failed':
        this.destroy(new Error(message.reason))
    }
  }
}
