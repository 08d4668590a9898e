/**
 * The list of a user's targets: typing searches it, Enter or a second click on a line chooses. Names were
 * checked when they were stored; descriptions are an administrator's free text, so characters that are not
 * printable show as `?`.
 */

import type { TargetEntry } from '../../../src/contract/gate.ts'
import { GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { BUTTON_HEIGHT, button, buttonRow, FIELD_HEIGHT, TextField } from './parts.ts'
import type { Rectangle, Scene } from './scene.ts'
import { DrawnScreen, GAP, isInside, type KeyPress, LINE, type Size } from './screen.ts'
import { cut } from './words.ts'

export interface TargetListOptions {
  /** The bastion's name. */
  bastion: string
  user: string
  targets: readonly TargetEntry[]
  /** The number of all targets (TargetsAnswer). */
  total: number
  /** The reason for showing the list again. */
  notice?: string
}

export type TargetListOutcome = { choice: TargetEntry } | 'left'

/** Characters of a search. */
export const MAX_SEARCH = 128
/** Lines that one step of the wheel scrolls. */
const WHEEL_LINES = 3
const SCROLL_BAR = 12
const ROW = LINE + 2
const NOWHERE: Rectangle = { left: 0, top: 0, width: 0, height: 0 }

interface Point {
  x: number
  y: number
}

export class TargetList extends DrawnScreen<TargetListOutcome> {
  readonly #options: TargetListOptions
  readonly #search = new TextField(MAX_SEARCH)
  /** The searched text of each target, from the first search on. */
  #texts: readonly string[] | undefined
  /** The last search, and its results. */
  #searched = ''
  #found: readonly TargetEntry[]
  #selected = 0
  #top = 0
  #follows = true
  /** Lines that fit on the screen. */
  #page = 1
  /** A clicked line, until another input: a second click chooses it. */
  #clickedLine: number | undefined
  #isScrolling = false
  #rows = NOWHERE
  #scrollBar = NOWHERE
  #buttons: readonly Rectangle[] = []
  /** Of all targets, not only the shown ones, so that the columns do not move. */
  readonly #longestName: number

  constructor(options: TargetListOptions, size: Size) {
    super(options, size)
    this.#options = options
    this.#found = options.targets
    this.#longestName = options.targets.reduce((longest, { target }) => Math.max(longest, target.length), 0)
  }

  protected override pressed(press: KeyPress): void {
    this.#clickedLine = undefined
    if ('text' in press || !this.#move(press.key)) this.#search.press(press)
  }

  /** Handles a key of the list, and returns false for others. */
  #move(key: string): boolean {
    // Applies the typed search first: the selected line is an index into its results.
    this.#results()
    switch (key) {
      case 'Enter':
        this.#choose()
        return true
      case 'Escape':
        if (this.#search.value === '') this.finish('left')
        else this.#search.clear()
        return true
      case 'Up':
        this.#select(this.#selected - 1)
        return true
      case 'Down':
        this.#select(this.#selected + 1)
        return true
      case 'PageUp':
        this.#select(this.#selected - this.#page)
        return true
      case 'PageDown':
        this.#select(this.#selected + this.#page)
        return true
      case 'Home':
        this.#select(0)
        return true
      case 'End':
        this.#select(this.#results().length - 1)
        return true
      default:
        return false
    }
  }

  protected override clicked(at: Point): void {
    const before = this.#clickedLine
    this.#clickedLine = undefined
    const [leave, connect] = this.#buttons
    if (leave && isInside(leave, at)) this.finish('left')
    else if (connect && isInside(connect, at)) this.#choose()
    else if (isInside(this.#scrollBar, at)) {
      this.#isScrolling = true
      this.dragged(at)
    } else if (isInside(this.#rows, at)) {
      const line = this.#first() + Math.floor((at.y - this.#rows.top) / ROW)
      if (line >= this.#results().length) return
      this.#selected = line
      if (line === before) this.#choose()
      this.#clickedLine = line
    }
  }

  protected override dragged({ y }: Point): void {
    if (!this.#isScrolling) return
    this.#follows = false
    const { top, height } = this.#scrollBar
    const share = height > 0 ? (y - top) / height : 0
    this.#top = Math.round(share * this.#results().length - this.#page / 2)
  }

  protected override released(): void {
    this.#isScrolling = false
  }

  protected override wheeled(steps: number): void {
    this.#clickedLine = undefined
    this.#follows = false
    this.#top = this.#first() + steps * WHEEL_LINES
  }

  /** Returns the results of the search: every word of it occurs in the name or the description. */
  #results(): readonly TargetEntry[] {
    const search = this.#search.value.toLowerCase().trim()
    if (search === this.#searched) return this.#found
    this.#searched = search
    const { targets } = this.#options
    this.#texts ??= targets.map(({ target, description }) => `${target} ${description}`.toLowerCase())
    const texts = this.#texts
    const words = [...new Set(search.split(/\s+/))]
    const selected = this.#found[this.#selected]
    this.#found = targets.filter((_, index) => words.every((word) => texts[index]?.includes(word)))
    this.#select(selected ? this.#found.indexOf(selected) : 0)
    return this.#found
  }

  /** Returns the first shown line. */
  #first(): number {
    return bounded(this.#top, this.#results().length - this.#page)
  }

  #select(line: number): void {
    this.#selected = bounded(line, this.#results().length - 1)
    this.#follows = true
  }

  /** Scrolls to the selected line, unless the user has scrolled away from it. */
  #follow(): void {
    const first = this.#first()
    this.#top = this.#follows ? bounded(first, this.#selected, this.#selected - this.#page + 1) : first
  }

  #choose(): void {
    const choice = this.#results()[this.#selected]
    if (choice) this.finish({ choice })
  }

  protected override compose(scene: Scene, body: Rectangle): void {
    const left = body.left + GAP
    const width = body.width - 2 * GAP
    const columns = Math.floor(width / GLYPH_WIDTH)
    let { top } = body
    if (this.#options.notice !== undefined) {
      scene.fill({ left: 0, top, width: scene.width + 1, height: LINE + 6 }, 'failure')
      scene.text(left, top + 4, cut(this.#options.notice, columns), 'focusText')
      top += LINE + 6
    }
    top += GAP
    scene.text(left, top + 4, 'Search', 'barText')
    const label = 7 * GLYPH_WIDTH
    this.#search.draw(scene, { left: left + label, top, width: width - label, height: FIELD_HEIGHT }, true)
    top += FIELD_HEIGHT + GAP
    const bottom = body.top + body.height - GAP - BUTTON_HEIGHT
    const isCut = this.#options.total > this.#options.targets.length
    const foot = bottom - (isCut ? 3 : 2) * LINE - 2
    this.#list(scene, { left, top, width, height: Math.max(0, foot - GAP - top) })
    this.#foot(scene, { left, top: foot, width, height: bottom - foot })
    this.#buttons = buttonRow(['Leave', 'Connect'], left + width, bottom)
    button(scene, this.#buttons[0]!, 'Leave', false)
    button(scene, this.#buttons[1]!, 'Connect', this.#results().length > 0)
    const room = Math.floor((this.#buttons[0]!.left - left - GAP) / GLYPH_WIDTH)
    scene.text(left, bottom + 5, cut('Type to search, Enter connects, Esc leaves', room), 'barMuted')
  }

  #list(scene: Scene, box: Rectangle): void {
    scene.fill(box, 'panel')
    scene.fill({ ...box, height: Math.min(box.height, ROW) }, 'button')
    const columns = Math.floor((box.width - SCROLL_BAR - GAP) / GLYPH_WIDTH)
    const names = Math.max(12, Math.min(Math.floor((columns * 3) / 5), this.#longestName))
    const second = box.left + (names + 2) * GLYPH_WIDTH
    const row = (top: number, name: string, description: string, isHead: boolean, isSelected: boolean) => {
      const colour = isSelected ? 'focusText' : 'text'
      scene.text(box.left + 4, top + 3, cut(name, Math.min(names, columns)), colour, isHead)
      scene.text(
        second + 4,
        top + 3,
        cut(description, columns - names - 2),
        isSelected ? colour : 'muted',
        isHead,
      )
    }
    if (box.height >= ROW) row(box.top, 'Target', 'Description', true, false)
    this.#page = Math.max(1, Math.floor((box.height - ROW) / ROW))
    this.#rows = {
      left: box.left,
      top: box.top + ROW,
      width: box.width - SCROLL_BAR,
      height: Math.max(0, box.height - ROW),
    }
    this.#follow()
    const found = this.#results()
    const top = this.#first()
    const selected = this.#selected
    for (const [index, { target, description }] of found.slice(top, top + this.#page).entries()) {
      const line = { left: box.left, top: box.top + ROW * (index + 1), width: this.#rows.width, height: ROW }
      if (line.top + ROW > box.top + box.height) break
      const isSelected = top + index === selected
      if (isSelected) scene.fill(line, 'focus')
      row(line.top, target, description, false, isSelected)
    }
    if (found.length === 0) {
      const { targets } = this.#options
      const text =
        targets.length === 0 ? 'There is no target that you may open.' : 'Nothing matches the search.'
      scene.text(box.left + 4, box.top + ROW + 3, cut(text, columns), 'muted')
    }
    this.#bar(scene, box)
  }

  #bar(scene: Scene, box: Rectangle): void {
    const found = this.#results()
    const top = this.#first()
    const length = found.length
    if (length <= this.#page) {
      this.#scrollBar = NOWHERE
      return
    }
    this.#scrollBar = {
      ...this.#rows,
      left: box.left + box.width - SCROLL_BAR,
      width: SCROLL_BAR,
    }
    scene.fill(this.#scrollBar, 'button')
    const height = Math.max(12, Math.floor((this.#scrollBar.height * this.#page) / length))
    const way = (this.#scrollBar.height - height) * (top / (length - this.#page))
    scene.fill(
      {
        left: this.#scrollBar.left + 2,
        top: this.#scrollBar.top + Math.floor(way),
        width: SCROLL_BAR - 4,
        height,
      },
      'muted',
    )
  }

  /** Draws the whole text of the selected line, and the number of targets. */
  #foot(scene: Scene, { left, top, width }: Rectangle): void {
    const columns = Math.floor(width / GLYPH_WIDTH)
    const entry = this.#results()[this.#selected]
    if (entry) {
      const description = entry.description === '' ? '' : `  ${entry.description}`
      scene.text(left, top, cut(`${entry.target}${description}`, columns), 'barText')
    }
    scene.text(left, top + LINE, cut(this.#count(), columns), 'barMuted')
    const { targets, total } = this.#options
    if (total === targets.length) return
    const only = `Only the first ${targets.length} of ${total} are here: ask for fewer rights.`
    scene.text(left, top + 2 * LINE, cut(only, columns), 'barText', true)
  }

  #count(): string {
    const { targets } = this.#options
    const found = this.#results()
    const top = this.#first()
    const shown = found.length === 0 ? '0' : `${top + 1}-${Math.min(found.length, top + this.#page)}`
    const of =
      found.length === targets.length
        ? `of ${found.length} targets`
        : `of ${found.length} found among ${targets.length} targets`
    return `${shown} ${of}`
  }
}

function bounded(value: number, last: number, first = 0): number {
  return Math.max(0, first, Math.min(value, last))
}
