/** The parts of the account page. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from '../api/access/caller.ts'
import type { ListedSignIn, SecurityKey } from '../store/store.ts'
import { tokenField } from './forms.ts'
import { type Html, html } from './html.ts'
import type { Messages } from './languages/en.ts'
import { languageOf, messagesOf } from './languages/languages.ts'

interface Sheet {
  request: FastifyRequest
  reply: FastifyReply
}

/** `current`: id of the sign-in of this request. */
export function signInsSheet(
  { request, reply }: Sheet,
  own: readonly ListedSignIn[],
  current: string | undefined,
): Html {
  const messages = messagesOf(request)
  const { signIns } = messages
  const row = ({ id, begin, lastUse, client }: ListedSignIn) => html`<li><div>
<strong>${client?.address || signIns.unknown}</strong> ${id === current && html`<span class="mark">${signIns.current}</span>`}<br>
<span class="small soft">${methodText(messages, client?.method ?? '')} · ${signIns.begun} ${when(request, begin)} · ${signIns.used} ${when(request, lastUse)}</span><br>
<span class="small soft">${client?.agent}</span></div>
<form method="post" action="/account/signins/end">${tokenField(request, reply)}<input type="hidden" name="id" value="${id}">
<button class="plain short">${signIns.end}<span class="hidden"> ${client?.address}, ${when(request, begin)}</span></button></form></li>`
  return html`<section class="sheet" aria-labelledby="signins"><h2 id="signins">${signIns.title}</h2>
<p class="soft">${signIns.text}</p>
<ul class="list">${own.map(row)}</ul>
<form method="post" action="/account/signins/end-all">${tokenField(request, reply)}
<label class="check"><input type="checkbox" name="sessions" value="yes"> ${signIns.withSessions}</label>
<button class="plain">${signIns.endAll}</button></form></section>`
}

/** `proof`: asked for once more with each change. */
export function keysSheet(
  { request, reply }: Sheet,
  keys: readonly SecurityKey[],
  proof: 'password' | 'code',
): Html {
  const messages = messagesOf(request)
  const { keys: words } = messages
  const { name: userName } = callerOf(request)
  const proofOf = (id: string) => html`<input autocomplete="username" value="${userName}" readonly hidden>
${proofField(messages, proof, id)}`
  const row = ({ id, name, created, lastUse }: SecurityKey) => html`<li><div><strong>${name}</strong><br>
<span class="small soft">${words.added} ${when(request, created)} · ${lastUse === undefined ? words.unused : html`${messages.signIns.used} ${when(request, lastUse)}`}</span></div>
<details><summary>${words.remove}<span class="hidden"> ${name}</span></summary>
<form method="post" action="/account/keys/remove">${tokenField(request, reply)}<input type="hidden" name="id" value="${id}">
${proofOf(`proof-${id}`)}<button class="plain">${words.remove}</button></form></details></li>`
  return html`<section class="sheet" aria-labelledby="keys"><h2 id="keys">${words.title}</h2>
<p class="soft">${words.text}</p>
${keys.length > 0 && html`<ul class="list">${keys.map(row)}</ul>`}
<form method="post" action="/account/keys">${tokenField(request, reply)}
<label for="key-name">${words.name}</label>
<input id="key-name" name="name" maxlength="64" autocomplete="off" required>
${proofOf('proof')}
<button class="plain">${words.add}</button></form></section>`
}

function proofField({ keys, signIn }: Messages, proof: 'password' | 'code', id: string): Html {
  const isCode = proof === 'code'
  return html`<label for="${id}">${isCode ? keys.code : signIn.password}</label>
<input id="${id}" name="proof" type="${isCode ? 'text' : 'password'}" autocomplete="${isCode ? 'one-time-code' : 'current-password'}" required>`
}

function methodText({ signIns }: Messages, method: string): string {
  const { methods } = signIns
  return Object.hasOwn(methods, method) ? methods[method as keyof typeof methods] : method
}

function when(request: FastifyRequest, time: number): Html {
  const format = new Intl.DateTimeFormat(languageOf(request), {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return html`<time datetime="${new Date(time).toISOString()}">${format.format(time)} UTC</time>`
}
