/** Sizes and areas of a desktop, in pixels. */
export interface Rectangle {
  x: number
  y: number
  width: number
  height: number
}

export interface Size {
  width: number
  height: number
}
