/** Recognises prompts. */

/** The last character of nearly every prompt: shells, network devices, interpreters, and themes of zsh and fish. */
const PROMPT_END = /[$#%>❯➜»›→⟩λ]\s{0,2}$/u
/** Second prompts: `> `, zsh's `quote> `, Python's `... `, `    -> ` and `    "> ` of MySQL, `...> ` of SQLite, `db-# `. */
const CONTINUATION = /^(?:(?:[a-z]+ )*(?:[a-z]*)> ?|\.\.\.>? ?|\s*[-'"`/*]*> ?|\w+[-'"($]+[#>] ?)$/
/** readline's display while it searches the history, with the line found. */
const SEARCH = /^\((?:failed )?(?:(?:reverse|forward)-)?(?:i-)?search\)`.*?': (.*)$/s
/** Echo of a password with one mark for each character. */
const MASKED = /^[*•●∙·]+$/u

const MAX_PROMPT = 256

/** `end`: the last characters of the line before the cursor, at least three. */
export function mayEndPrompt(end: string): boolean {
  return PROMPT_END.test(end)
}

export function isPrompt(text: string): boolean {
  return text.length <= MAX_PROMPT && PROMPT_END.test(text)
}

/** Returns whether a line with this prompt continues the line before it. */
export function isContinuation(prompt: string): boolean {
  return prompt.length <= MAX_PROMPT && CONTINUATION.test(prompt)
}

/** Returns the line that a search of the history shows, or undefined if there is no search. */
export function searched(line: string): string | undefined {
  return SEARCH.exec(line)?.[1]
}

export function isMasked(text: string): boolean {
  return MASKED.test(text)
}
