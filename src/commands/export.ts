/** `sallyport export TYPE`. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { callerOf } from '../api/access/caller.ts'
import { actor, record } from '../api/access/events.ts'
import { exportTable } from '../api/csv/exporter.ts'
import { besideBroker } from './beside.ts'
import { type Command, UsageError } from './command.ts'
import { forStream } from './output.ts'
import { contextOf, separatorOption, typeOf, whoRunsThis } from './tables.ts'

export const exportCommand: Command = {
  synopsis: [['export TYPE [--separator ;]', 'write objects as a CSV table to standard output']],
  options: { separator: { type: 'string' } },
  async run(invocation) {
    const [type, ...more] = invocation.words
    const name = typeOf(type)
    if (more.length > 0) throw new UsageError(`${JSON.stringify(more[0])} is one word too many`)
    const separator = separatorOption(invocation)
    return await besideBroker(invocation, async (beside) => {
      const who = whoRunsThis()
      await record(beside.audit, who, 'object.export', { ...actor(callerOf(who)), object_type: name })
      const table = forTerminal(exportTable(contextOf(beside), who, name, separator))
      await pipeline(Readable.from(table), process.stdout, { end: false })
      return 0
    })
  },
}

async function* forTerminal(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const piece of pieces) yield forStream(piece, process.stdout)
}
