/**
 * Graphics that cannot be drawn: the message says what was expected and what came. The picture stops there, unless what
 * was thrown is an UndrawableGraphics.
 */
export class MalformedGraphics extends Error {
  override name = 'MalformedGraphics'
}

/** All bytes of what cannot be drawn are taken: what comes next can be drawn. */
export class UndrawableGraphics extends MalformedGraphics {
  override name = 'UndrawableGraphics'
}
