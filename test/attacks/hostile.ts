/** Content by which a hostile target or user would control others' terminals and browsers. */

/** Markup that would run scripts, send requests or navigate in a page; each is its own attack. */
export const MARKUP =
  '<script>attack("script")</script><img src=x onerror=attack("img")><svg onload=attack("svg")>' +
  '<img src="https://evil.invalid/picture"><iframe src="https://evil.invalid/frame"></iframe>' +
  '<a href="javascript:attack(1)">press</a><meta http-equiv="refresh" content="0;url=https://evil.invalid/gone">'
/** Markup that closes any element around it. */
export const BREAKOUT = `'">]]>--></style></title></textarea></pre></script>${MARKUP}`

/** Without slashes and quotes, so that it works as a file's name and in a shell. */
export const NAME = '<img src=x onerror=attack(2)>'

/**
 * Titles, hyperlinks, the clipboard (set and queried), queries that terminals answer as typed input,
 * printing, other modes; in 7-bit form, by C1 controls, and with text direction reversed.
 */
export const SEQUENCES = [
  `\x1b]0;${MARKUP}\x07\x1b]2;owned\x1b\\`,
  '\x1b]8;;javascript:attack("link")\x1b\\press here\x1b]8;;\x1b\\ \x1b]8;;https://evil.invalid/link\x07or here\x1b]8;;\x07',
  '\x1b]52;c;b3duZWQ=\x07\x1b]52;c;?\x07',
  '\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[c\x1b[>c\x1b[6n\x1b[5n\x1b[21t\x1b[?2004$p\x1b]10;?\x07\x1b]7;file://evil.invalid/\x07',
  '\x1b[5i\x1b[4i\x1b[?1000h\x1b[?2004h\x1b[8;1;1t',
  '\u009b21t\u009d0;owned\u009c\u0090$qm\u009c \u202egnihton\u202c\x7f',
].join('')

/** Characters that none of them may leave for a terminal: controls except line ends, and direction marks. */
export const UNSAFE = /[\x00-\x09\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
