/** `sallyport audit verify|export`. */
import { verifyAudit } from '../audit/chain.ts'
import { besideBroker } from './beside.ts'
import { type Command, UsageError } from './command.ts'

const ROWS_AT_A_TIME = 1000

export const auditCommand: Command = {
  synopsis: [
    ['audit verify [--json]', 'check the chain of the audit log'],
    ['audit export', 'write the audit log to standard output, one JSON object a line'],
  ],
  options: { json: { type: 'boolean' } },
  async run(invocation) {
    const [action, ...more] = invocation.words
    if (more.length > 0 || (action !== 'verify' && action !== 'export')) {
      throw new UsageError('expected audit verify or audit export')
    }
    return await besideBroker(invocation, async ({ store }) => {
      if (action === 'export') {
        let next = 0
        for (;;) {
          const rows = await store.audit.range(next, ROWS_AT_A_TIME)
          for (const row of rows) process.stdout.write(`${row.json}\n`)
          const last = rows.at(-1)
          if (!last) return 0
          next = last.sequence + 1
        }
      }
      const verdict = await verifyAudit(store.audit)
      if (invocation.options['json']) process.stdout.write(`${JSON.stringify(verdict)}\n`)
      else if (verdict.fault) {
        process.stdout.write(
          `row ${verdict.fault.sequence}: ${verdict.fault.message}; ${verdict.rows} rows before it are in order\n`,
        )
      } else process.stdout.write(`ok: ${verdict.rows} rows, head ${verdict.head ?? 'none'}\n`)
      return verdict.fault ? 1 : 0
    })
  },
}
