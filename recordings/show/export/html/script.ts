/** The page's player: plain JavaScript for a browser, with xterm.js and the page's data beside it. */

export const PAGE_SCRIPT = String.raw`'use strict'
const one = (id) => document.getElementById(id)
const read = (element) =>
  new TextDecoder().decode(Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0)))
const header = JSON.parse(read(one('header')))
const channels = header.channels.map((channel) => ({ ...channel, events: [], keyframes: [], lines: [] }))
const owner = (number, time) =>
  channels.findLast((one) => one.channel === number && one.opened <= time) ?? channels[0]
for (const element of document.querySelectorAll('script.data')) {
  for (const line of read(element).split('\n')) {
    if (line === '') continue
    const [type, time, number, ...rest] = JSON.parse(line)
    const channel = owner(number, time)
    if (type === 'k') channel.keyframes.push({ time, at: channel.events.length, columns: rest[0], rows: rest[1], text: rest[2] })
    else if (type === 't') channel.lines.push(rest[0])
    else channel.events.push({ type, time, rest })
  }
  element.remove()
}

let channel
let terminal
let next = 0
let position = 0
let playing = false
let last = 0

const two = (value) => String(value).padStart(2, '0')
const show = (time) => {
  const seconds = Math.floor(time / 1e6)
  const rest = two(Math.floor(seconds / 60) % 60) + ':' + two(seconds % 60)
  return seconds < 3600 ? rest : Math.floor(seconds / 3600) + ':' + rest
}
// Resizes in order behind the earlier writes: the emulator applies text with a delay.
const resize = (columns, rows) => terminal.write('', () => terminal.resize(Math.max(2, columns), Math.max(1, rows)))
const apply = ({ type, rest }) => (type === 'o' ? terminal.write(rest[0]) : resize(rest[0], rest[1]))

function begin() {
  terminal.write('\x1bc')
  resize(channel.columns, channel.rows)
  next = 0
}

function seek(time) {
  const to = Math.min(Math.max(time, channel.opened), channel.closed ?? header.duration)
  const keyframe = channel.keyframes.findLast((one) => one.time <= to)
  if (to < position || (keyframe && keyframe.at > next)) {
    begin()
    if (keyframe) {
      resize(keyframe.columns, keyframe.rows)
      terminal.write(keyframe.text)
      next = keyframe.at
    }
  }
  advance(to)
}

function advance(time) {
  position = time
  for (; next < channel.events.length && channel.events[next].time <= time; next++) apply(channel.events[next])
  one('time').textContent = show(position) + ' / ' + show(header.duration)
  one('slider').value = String(position / 1e6)
}

function choose(chosen) {
  channel = chosen
  terminal?.dispose()
  terminal = new Terminal({
    cols: Math.max(2, channel.columns),
    rows: Math.max(1, channel.rows),
    scrollback: 0,
    disableStdin: true,
    convertEol: !channel.hasTerminal,
    fontFamily: 'monospace',
    fontSize: 14,
  })
  terminal.open(one('screen'))
  next = 0
  position = 0
  one('channel').value = String(channels.indexOf(channel))
  one('transcript').textContent = channel.lines.join('\n')
}

function play(now) {
  if (!playing) return
  let to = position + (now - last) * 1000 * Number(one('speed').value)
  last = now
  const following = channel.events[next]
  if (following && one('idle').checked && following.time - to > 2e6) to = following.time - 2e6
  if (following) advance(to)
  else toggle()
  requestAnimationFrame(play)
}

function toggle() {
  playing = !playing
  one('play').textContent = playing ? 'Pause' : 'Play'
  last = performance.now()
  if (playing) requestAnimationFrame(play)
}

for (const [name, value] of Object.entries(header.metadata)) {
  const row = one('metadata').insertRow()
  row.insertCell().textContent = name
  row.insertCell().textContent = String(value)
}
for (const [index, { kind, command, channel: number }] of channels.entries()) {
  const option = document.createElement('option')
  option.value = String(index)
  option.textContent = number + ' ' + kind + (command === undefined ? '' : ' ' + command)
  one('channel').append(option)
}
for (const chapter of header.chapters) {
  const item = document.createElement('button')
  item.textContent = show(chapter.time) + '  ' + chapter.type + '  ' + chapter.text
  item.addEventListener('click', () => {
    const wanted = owner(chapter.channel, chapter.time)
    if (wanted !== channel) choose(wanted)
    seek(chapter.time)
  })
  one('chapters').append(item)
}
document.title = 'Session ' + header.metadata.session
one('title').textContent = document.title
one('slider').max = String(header.duration / 1e6)
one('slider').addEventListener('input', () => seek(Number(one('slider').value) * 1e6))
one('play').addEventListener('click', toggle)
one('channel').addEventListener('change', () => {
  const time = position
  choose(channels[Number(one('channel').value)])
  seek(time)
})
document.addEventListener('keydown', (event) => {
  if (event.target.tagName === 'INPUT' || event.target.tagName === 'SELECT') return
  if (event.key === ' ') toggle()
  else if (event.key === 'ArrowRight') seek(position + 1e7)
  else if (event.key === 'ArrowLeft') seek(position - 1e7)
  else return
  event.preventDefault()
})
if (channels.length > 0) {
  choose(channels[header.main] ?? channels[0])
  seek(Number(new URLSearchParams(location.hash.slice(1)).get('t') ?? 0) * 1e6)
}
`
