/** One line of the report of `sallyport check`. */
export interface Finding {
  level: 'ok' | 'warning' | 'error'
  subject: string
  text: string
}
