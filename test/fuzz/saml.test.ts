/** Random XML against the reader and the guard of SAML messages. */
import { parseDomFromString } from '@node-saml/node-saml/lib/xml.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SamlError } from '../../src/identity/methods/saml/error.ts'
import { checkSigned } from '../../src/identity/methods/saml/shape.ts'
import { readXml, type XmlElement } from '../../src/identity/methods/saml/xml.ts'
import { times } from '../times.ts'

const name = fc.constantFrom(
  'a',
  'b:c',
  'Assertion',
  'ds:Signature',
  'ID',
  'Id',
  'xmlns',
  'xmlns:b',
  'xmlns:ds',
)
const piece = fc.oneof(
  name.map((one) => `<${one}>`),
  name.map((one) => `</${one}>`),
  name.map(
    (one) => `<${one} xmlns:b="u" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" ID="x" b:y='&lt;&#65;'/>`,
  ),
  fc.constantFrom(
    '<',
    '>',
    '/>',
    '="',
    "'",
    '&',
    '&amp;',
    '&#x41;',
    '&#0;',
    '&x;',
    '<!--',
    '-->',
    '<![CDATA[',
    ']]>',
  ),
  fc.constantFrom('<!DOCTYPE a>', '<?x ?>', '\r\n', '\t', ' ', '\u0000', '\ufffe', '\u{1f600}', 'text'),
)
const noise = fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join(''))
const characters = fc.constantFrom(
  '',
  ' a ',
  '&lt;',
  '&#x41;',
  '&#13;',
  'a\r\nb',
  'é\t',
  '&quot;>',
  '&amp;amp;',
)
const space = fc.constantFrom(' ', '\n', '\t ', '\r\n')
const attributeOf = fc
  .tuple(space, fc.constantFrom('ID', 'Id', 'x:y', 'z', 'xmlns', 'xmlns:x'), characters, fc.boolean())
  .map(([blank, one, value, isSingle]) => {
    const text = one.startsWith('xmlns') ? 'urn:u' : value
    return isSingle ? `${blank}${one} = '${text}'` : `${blank}${one}="${text}"`
  })
/** Elements that are mostly well formed. */
const { tree } = fc.letrec<{ tree: string; child: string }>((tie) => ({
  child: fc.oneof({ depthSize: 'small', withCrossShrink: true }, characters, tie('tree')),
  tree: fc
    .tuple(
      fc.constantFrom('a', 'x:b', 'Assertion', 'Signature'),
      fc.array(attributeOf, { maxLength: 3 }),
      fc.array(tie('child') as fc.Arbitrary<string>, { maxLength: 3 }),
    )
    .map(([one, attributes, children]) => `<${one}${attributes.join('')} >${children.join('')}</${one}\n>`),
}))
const document = fc.oneof(
  noise,
  noise.map((text) => `<r>${text}</r>`),
  { weight: 3, arbitrary: (tree as fc.Arbitrary<string>).map((text) => `<r xmlns:x="urn:x">${text}</r>`) },
)

function read(text: string): XmlElement | undefined {
  try {
    return readXml(text)
  } catch (error) {
    expect(error).toBeInstanceOf(SamlError)
    return undefined
  }
}

interface Node {
  nodeType: number
  localName: string
  namespaceURI: string | null
  data: string
  childNodes: ArrayLike<Node>
}
const shapeOf = ({ local, namespace, children, text }: XmlElement): unknown => [
  local,
  namespace,
  text,
  children.map(shapeOf),
]
function shapeOfNode(node: Node): unknown {
  const nodes = Array.from(node.childNodes)
  const text = nodes.filter(({ nodeType }) => nodeType === 3).map(({ data }) => data)
  const elements = nodes.filter(({ nodeType }) => nodeType === 1)
  return [node.localName, node.namespaceURI ?? '', text.join(''), elements.map(shapeOfNode)]
}

test('what the reader accepts, the library reads the same', async () => {
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(document, async (text) => {
      const root = read(text)
      if (!root) return
      accepted += 1
      const other = (await parseDomFromString(text)).documentElement as unknown as Node
      expect(shapeOf(root)).toEqual(shapeOfNode(other))
    }),
    { numRuns: times(500, 50_000) },
  )
  expect(accepted).toBeGreaterThan(50)
})

test('the guard ends with its own error or none', () => {
  fc.assert(
    fc.property(document, (text) => {
      const root = read(text)
      if (!root) return
      try {
        checkSigned(root, [root])
      } catch (error) {
        expect(error).toBeInstanceOf(SamlError)
      }
    }),
    { numRuns: times(500, 50_000) },
  )
})
