/** The sign-in page: the ways in, or one round of a sign-in. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { qrSquares } from '../drawing/qr.ts'
import { MAX_PASSWORD_BYTES } from '../identity/password.ts'
import type { Outcome } from '../identity/sign-in.ts'
import { tokenField } from './forms.ts'
import { type Html, html } from './html.ts'
import { keyForm } from './key-form.ts'
import type { Messages } from './languages/en.ts'
import { messagesOf } from './languages/languages.ts'
import { sendPage } from './page.ts'
import { HOME } from './return-path.ts'
import { lastWay, PASSWORD_WAY, type PageContext, type Way, waysOf } from './ways.ts'

type Challenge = Extract<Outcome, { result: 'challenge' }>

export interface SignInView {
  /** Path of the page after the sign-in. */
  return: string
  /** Why the last try failed. */
  alert?: string
  notice?: string
  status?: number
  /** Name that was typed, to be corrected. */
  user?: string
}

export async function sendSignIn(
  context: PageContext,
  request: FastifyRequest,
  reply: FastifyReply,
  view: SignInView,
): Promise<FastifyReply> {
  const { signIn } = messagesOf(request)
  const wish = view.return === HOME ? '' : `?return=${encodeURIComponent(view.return)}`
  const last = lastWay(request)
  const ways = await waysOf(context)
  const isFirst = ({ id }: Way) => id === last
  const links = (some: readonly Way[]) => linksOf(request, some, { wish, isPlain: !some.some(isFirst) })
  const [first, others] = [ways.filter(isFirst), ways.filter((way) => !isFirst(way))]
  const or = html`<p class="or">${signIn.or}</p>`
  const body = html`<div class="sheet">
<h1>${signIn.title}</h1>
<p class="soft">${signIn.lead}</p>
${view.alert !== undefined && html`<p class="alert" role="alert">${view.alert}</p>`}
${view.notice !== undefined && html`<p class="notice" role="status">${view.notice}</p>`}
${first.length > 0 && [links(first), or]}
${passwordForm(request, reply, view)}
${others.length > 0 && [or, links(others)]}
</div>`
  return sendPage(request, reply, {
    title: signIn.title,
    body,
    path: `/signin${wish}`,
    ...(view.status !== undefined && { status: view.status }),
  })
}

function passwordForm(request: FastifyRequest, reply: FastifyReply, view: SignInView): Html {
  const { signIn } = messagesOf(request)
  const isLast = [undefined, PASSWORD_WAY].includes(lastWay(request))
  const focus = isLast && html` autofocus`
  const hasName = view.user !== undefined
  return html`<form method="post" action="/signin">
${tokenField(request, reply)}<input type="hidden" name="return" value="${view.return}">
<label for="user">${signIn.user}</label>
<input id="user" name="user" value="${view.user}" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="512" required${!hasName && focus}>
<label for="password">${signIn.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="${MAX_PASSWORD_BYTES}" required${hasName && focus}>
<button${!isLast && html` class="plain"`}>${signIn.submit}</button>
</form>`
}

function linksOf(
  request: FastifyRequest,
  ways: readonly Way[],
  { wish, isPlain }: { wish: string; isPlain: boolean },
): Html {
  const messages = messagesOf(request)
  const mark = html` <span class="mark">${messages.signIn.lastUsed}</span>`
  const link = ({ path, label }: Way) =>
    html`<a class="button${isPlain && ' plain'}" href="${path}${wish}">${label(messages)}${!isPlain && mark}</a>`
  return html`<div class="ways">${ways.map(link)}</div>`
}

/** Sends the page of one round; `way` is noted when the sign-in is complete. */
export function sendRound(
  request: FastifyRequest,
  reply: FastifyReply,
  challenge: Challenge,
  view: { return: string; way: string },
): FastifyReply {
  const messages = messagesOf(request)
  const { title, lead, fields } = roundPart(messages, challenge)
  const key = challenge.form?.kind === 'code' ? challenge.form.key : undefined
  const again = view.return === HOME ? '/signin' : `/signin?return=${encodeURIComponent(view.return)}`
  const hidden = { return: view.return, way: view.way, challenge: challenge.challenge }
  const body = html`<div class="sheet">
<h1>${title}</h1>
${lead}
${key && keyForm(request, reply, { action: '/signin', key, hidden, label: messages.keys.use })}
${key && fields && html`<p class="or">${messages.signIn.or}</p>`}
${
  fields &&
  html`<form method="post" action="/signin" autocomplete="off">
${tokenField(request, reply)}${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields}
</form>`
}
<p class="small"><a href="${again}">${messages.signIn.cancel}</a></p>
</div>`
  return sendPage(request, reply, { title, body, hasScript: key !== undefined })
}

interface RoundPart {
  title: string
  lead: Html
  /** Absent if a security key is all that is asked for. */
  fields?: Html
}

function roundPart(messages: Messages, challenge: Challenge): RoundPart {
  const { signIn, code, enrol, keys, recovery } = messages
  const { form, uri } = challenge
  switch (form?.kind) {
    case 'code':
      if (!form.hasCodes) return { title: keys.title, lead: html`<p>${keys.useText}</p>` }
      return { title: code.title, lead: html`<p>${code.text}</p>`, fields: codeField(messages, code.label) }
    case 'enrol': {
      const lead = html`${form.isAgain && html`<p class="alert" role="alert">${enrol.again}</p>`}<p>${enrol.text}</p>
${uri !== undefined && qrPicture(uri, enrol.picture)}
<p>${enrol.secret}: <code>${form.secret.match(/.{1,4}/g)?.join(' ')}</code></p>`
      return { title: enrol.title, lead, fields: codeField(messages, enrol.label) }
    }
    case 'recovery_codes': {
      const lead = html`<p>${recovery.text}</p>
<ul class="codes">${form.codes.map((one) => html`<li>${one}</li>`)}</ul>`
      const fields = html`<input type="hidden" name="answer0" value=""><button>${recovery.noted}</button>`
      return { title: recovery.title, lead, fields }
    }
    case undefined: {
      const lead = html`${challenge.message !== '' && html`<pre>${challenge.message}</pre>`}
${uri !== undefined && qrPicture(uri, enrol.picture)}`
      const fields = html`${challenge.prompts.map(promptField(messages))}<button>${signIn.goOn}</button>`
      return { title: signIn.round, lead, fields }
    }
  }
}

function codeField({ signIn }: Messages, label: string): Html {
  return html`<label for="answer0">${label}</label>
<input id="answer0" name="answer0" class="code" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="64" required autofocus>
<button>${signIn.goOn}</button>`
}

const promptField =
  ({ signIn }: Messages) =>
  ({ text, echo }: Challenge['prompts'][number], index: number): Html => {
    const name = `answer${index}`
    const label = text.trim().replace(/\s*:$/, '')
    return html`<label for="${name}">${label === '' ? signIn.answer : label}</label>
<input id="${name}" name="${name}" type="${echo ? 'text' : 'password'}" autocomplete="off" maxlength="${MAX_PASSWORD_BYTES}"${index === 0 && html` autofocus`}>`
  }

/** Draws a QR code; nothing for a text that is too long for one. */
function qrPicture(text: string, label: string): Html | undefined {
  const squares = qrSquares(text)
  if (!squares) return undefined
  const dark = squares.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  return html`<svg class="qr" role="img" aria-label="${label}" viewBox="0 0 ${squares.length} ${squares.length}" shape-rendering="crispEdges"><path fill="currentColor" d="${dark.join('')}"/></svg>`
}
