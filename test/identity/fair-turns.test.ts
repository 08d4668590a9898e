import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BusyError } from '../../src/identity/errors.ts'
import { FairTurns } from '../../src/identity/fair-turns.ts'

/** Works that end on request. */
class Works {
  readonly done: string[] = []
  readonly refused: string[] = []
  readonly #ends: (() => void)[] = []
  readonly #turns: FairTurns

  constructor(concurrent: number, maxWaiting: number) {
    this.#turns = new FairTurns(concurrent, maxWaiting)
  }

  get running(): number {
    return this.#ends.length
  }

  ask(source: string): void {
    this.#turns
      .run(source, async () => {
        await new Promise<void>((end) => this.#ends.push(end))
        this.done.push(source)
      })
      .catch((error: unknown) => {
        if (!(error instanceof BusyError)) throw error
        this.refused.push(source)
      })
  }

  async end(): Promise<void> {
    this.#ends.shift()?.()
    await settled()
  }

  async endAll(): Promise<void> {
    while (this.running > 0) await this.end()
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('turns', () => {
  it('go round among networks, and among the hosts of one', async () => {
    const works = new Works(1, 100)
    for (const source of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.9', '198.51.100.7', '2001:db8::1'])
      works.ask(source)
    await settled()
    await works.endAll()
    expect(works.done).toEqual([
      '192.0.2.1',
      '192.0.2.1',
      '198.51.100.7',
      '2001:db8::1',
      '192.0.2.9',
      '192.0.2.1',
    ])
  })

  it('of somebody with a whole /48 of IPv6 are those of one', async () => {
    const works = new Works(1, 100)
    for (let i = 0; i < 50; i++) works.ask(`2001:db8:0:${i.toString(16)}::1`)
    works.ask('192.0.2.1')
    await settled()
    await works.end()
    await works.end()
    await works.end()
    expect(works.done).toContain('192.0.2.1')
  })

  it('whose room is full are given up by whoever has most, the last first', async () => {
    const works = new Works(1, 4)
    for (let i = 1; i <= 5; i++) works.ask(`203.0.113.${i}`)
    works.ask('192.0.2.1')
    works.ask('198.51.100.1')
    works.ask('203.0.113.6')
    await settled()
    expect(works.refused.toSorted()).toEqual(['203.0.113.4', '203.0.113.5', '203.0.113.6'])
    await works.endAll()
    expect(works.done).toEqual(['203.0.113.1', '203.0.113.2', '192.0.2.1', '198.51.100.1', '203.0.113.3'])
  })

  it('never are more at once, nor more wait, than may, and everybody gets one or is refused', async () => {
    const source = fc.integer({ min: 0, max: 9 }).map((n) => `192.0.${n % 3}.${n}`)
    const steps = fc.array(fc.oneof(source, fc.constant(undefined)), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const works = new Works(2, 5)
        const asked = all.filter((one) => one !== undefined)
        for (const one of all) {
          if (one === undefined) await works.end()
          else works.ask(one)
          await settled()
          expect(works.running).toBeLessThanOrEqual(2)
        }
        await works.endAll()
        expect([...works.done, ...works.refused].toSorted()).toEqual(asked.toSorted())
      }),
      { numRuns: 100 },
    )
  })
})
