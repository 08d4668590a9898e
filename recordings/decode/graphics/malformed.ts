/**
 * Graphics that cannot be drawn: the message names the expected and the received data. The picture stops
 * there, unless the error is an UndrawableGraphics.
 */
export class MalformedGraphics extends Error {
  override name = 'MalformedGraphics'
}

/** All bytes of the undrawable part were consumed, so the next part can be drawn. */
export class UndrawableGraphics extends MalformedGraphics {
  override name = 'UndrawableGraphics'
}
