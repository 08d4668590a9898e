import { expect, test } from 'vitest'
import { html } from '../../src/pages/html.ts'

test('values are escaped in text and attributes, pieces are not, absent ones leave nothing', () => {
  const evil = `<script>'"&`
  const piece = html`<b title="${evil}">${evil}</b>`
  const escaped = '&lt;script&gt;&#39;&quot;&amp;'
  expect(String(piece)).toBe(`<b title="${escaped}">${escaped}</b>`)
  expect(String(html`${[piece, evil, 1]}${undefined}${false}`)).toBe(`${String(piece)}${escaped}1`)
})

test('no object that looks like a piece passes as one', () => {
  const forged = { toString: () => '<script>' }
  expect(() => html`${forged as never}`).toThrow()
})
