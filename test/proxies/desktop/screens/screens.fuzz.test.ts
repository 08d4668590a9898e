/**
 * Any events in any order, on any size: nothing throws, the drawn parts are the changed ones, a choice is one
 * of the list.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ApprovalScreen, reasonForm } from '../../../../proxies/desktop/screens/approval.ts'
import { FormScreen } from '../../../../proxies/desktop/screens/form.ts'
import { recordedNotice } from '../../../../proxies/desktop/screens/message.ts'
import { MAX_CHANGES } from '../../../../proxies/desktop/screens/scene.ts'
import type { Screen, Size } from '../../../../proxies/desktop/screens/screen.ts'
import { TargetList } from '../../../../proxies/desktop/screens/targets.ts'
import { WaitingScreen } from '../../../../proxies/desktop/screens/waiting.ts'

const KEYS = [
  ...(['Enter', 'Escape', 'Backspace', 'Delete', 'Tab', 'Left', 'Right', 'Up', 'Down'] as const),
  ...(['PageUp', 'PageDown', 'Home', 'End'] as const),
]

const size: fc.Arbitrary<Size> = fc.record({
  width: fc.integer({ min: 1, max: 1100 }),
  height: fc.integer({ min: 1, max: 800 }),
})
type Happening = (screen: Screen) => void
const event: fc.Arbitrary<Happening> = fc.oneof(
  fc
    .record({ text: fc.oneof(fc.constantFrom('1', '2', 'web', ' '), fc.string({ unit: 'binary' })) })
    .map((press) => (screen: Screen) => screen.key(press)),
  fc
    .record({ key: fc.constantFrom(...KEYS), shift: fc.boolean() })
    .map((press) => (screen: Screen) => screen.key(press)),
  fc
    .record({
      x: fc.integer({ min: 0, max: 65_535 }),
      y: fc.oneof(fc.integer({ min: 0, max: 800 }), fc.integer({ min: 0, max: 65_535 })),
      left: fc.boolean(),
      wheel: fc.integer({ min: -9, max: 9 }),
    })
    .map((state) => (screen: Screen) => screen.pointer(state)),
  fc.nat(5000).map((now) => (screen: Screen) => screen.tick(now)),
  size.map((to) => (screen: Screen) => screen.resize(to)),
)
const targets = fc.array(
  fc.record({
    target: fc.string({ unit: 'grapheme', maxLength: 90 }),
    description: fc.string({ unit: 'binary' }),
  }),
  { maxLength: 60 },
)

type Picture = { width: number; height: number; pixels: Uint8Array }

const whole = (screen: Screen): Picture =>
  screen.paint({ left: 0, top: 0, width: screen.width, height: screen.height })

/** Returns the picture of a viewer that receives the changes only. */
function follow(screen: Screen, before: Picture | undefined): Picture {
  const damage = screen.takeDamage()
  expect(damage.length).toBeLessThanOrEqual(MAX_CHANGES)
  const isNew = before?.width !== screen.width || before.height !== screen.height
  const picture = isNew
    ? { width: screen.width, height: screen.height, pixels: new Uint8Array(screen.width * screen.height) }
    : before
  for (const { left, top, width, height } of damage) {
    expect(Math.min(left, top, width - 1, height - 1)).toBeGreaterThanOrEqual(0)
    expect(left + width).toBeLessThanOrEqual(screen.width)
    expect(top + height).toBeLessThanOrEqual(screen.height)
    const { pixels } = screen.paint({ left, top, width, height })
    for (let y = 0; y < height; y++) {
      picture.pixels.set(pixels.subarray(y * width, (y + 1) * width), (top + y) * picture.width + left)
    }
  }
  return picture
}

function play(screen: Screen, events: readonly Happening[]): void {
  let picture = follow(screen, undefined)
  for (const [index, happens] of events.entries()) {
    const { outcome } = screen
    happens(screen)
    if (outcome !== undefined) expect(screen.outcome).toBe(outcome)
    if (index % 3 === 0) picture = follow(screen, picture)
  }
  picture = follow(screen, picture)
  expect(Buffer.compare(picture.pixels, whole(screen).pixels)).toBe(0)
}

const events = fc.array(event, { maxLength: 30 })

describe('any sequence of events', () => {
  test('on the list of targets', () => {
    fc.assert(
      fc.property(targets, fc.nat(99), size, events, (entries, more, at, happening) => {
        const total = entries.length + more
        const list = new TargetList({ bastion: 'Sallyport', user: 'alice', targets: entries, total }, at)
        play(list, happening)
        const { outcome } = list
        if (typeof outcome === 'object') expect(entries).toContain(outcome.choice)
        else if (outcome === undefined && entries.length > 0) {
          // After the search is cleared, there is a line to choose.
          list.key({ key: 'Escape' })
          list.key({ key: 'Enter' })
          if (typeof list.outcome === 'object') expect(entries).toContain(list.outcome.choice)
          else expect(list.outcome).toBe('left')
        }
      }),
      { numRuns: 150 },
    )
  })

  test('on the other screens', () => {
    const text = fc.string({ unit: 'binary', maxLength: 500 })
    const fields = fc.array(fc.record({ label: text, echo: fc.boolean(), value: text }), { maxLength: 12 })
    fc.assert(
      fc.property(text, fields, size, events, (words, asked, at, happening) => {
        const bastion = words
        play(new WaitingScreen({ bastion, heading: words, text: words }, at), happening)
        play(recordedNotice({ bastion, user: words, target: words, seconds: 3 }, at), happening)
        const lines = asked.map(({ label }) => label)
        play(new ApprovalScreen({ bastion, user: words, target: words, lines, news: words }, at), happening)
        const question = { target: words, comment: 'mandatory', ticket: 'optional', flaw: words } as const
        play(reasonForm({ bastion, user: words, question, texts: { comment: words } }, at), happening)
        const form = new FormScreen({ bastion, heading: words, flaw: words, fields: asked, button: 'OK' }, at)
        play(form, happening)
        if (typeof form.outcome === 'object') expect(form.outcome.answers).toHaveLength(asked.length)
      }),
      { numRuns: 100 },
    )
  })
})
