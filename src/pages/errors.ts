/** Errors of pages: the codes of the API, in words for a person. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode } from '../api/http/errors.ts'
import { noteError } from '../api/http/failures.ts'
import { html } from './html.ts'
import type { Messages } from './languages/en.ts'
import { messagesOf } from './languages/languages.ts'
import { sendPage } from './page.ts'

type ErrorWords = Exclude<keyof Messages['errors'], 'title' | 'back'>

/** Returns the words for a code. */
export function errorText({ errors }: Messages, code: ErrorCode, status: number): string {
  const own = Object.hasOwn(errors, code) ? (code as ErrorWords) : undefined
  if (own) return errors[own]
  if (status === 503) return errors.unavailable
  return status < 500 ? errors.invalid : errors.internal
}

/** Sends the error as a page; one that a sign-in would mend leads there. */
export function answerErrorPage(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, code } = noteError(error, request, reply)
  if (code === 'authentication_required') {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const wish = isRead ? `?return=${encodeURIComponent(request.url)}` : ''
    reply.redirect(`/signin${wish}`, 303)
    return
  }
  const messages = messagesOf(request)
  const { errors } = messages
  const body = html`<div class="sheet">
<h1>${errors.title}</h1>
<p role="alert">${errorText(messages, code, status)}</p>
<a class="button plain" href="/">${errors.back}</a>
</div>`
  sendPage(request, reply, { title: errors.title, status, body })
}
