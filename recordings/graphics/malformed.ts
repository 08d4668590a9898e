/** Graphics that cannot be drawn: the message says what was expected and what came. The picture stops there. */
export class MalformedGraphics extends Error {
  override name = 'MalformedGraphics'
}
