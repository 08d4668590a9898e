/**
 * The one script, for pages with security keys: it carries what the page asks for to the browser's WebAuthn, and the answer
 * into the page's form. Plain JavaScript for a browser; it changes no other element, and writes text only.
 */

export const KEY_SCRIPT = `'use strict'
const bytes = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))
const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')

const create = ({ challenge, rpId, userId, userName, algorithms, known }) =>
  navigator.credentials.create({
    publicKey: {
      rp: { id: rpId, name: 'Sallyport' },
      user: { id: bytes(userId), name: userName, displayName: userName },
      challenge: bytes(challenge),
      pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
      excludeCredentials: known.map((id) => ({ type: 'public-key', id: bytes(id) })),
      authenticatorSelection: { residentKey: 'discouraged', userVerification: 'preferred' },
      attestation: 'none',
    },
  })

const get = ({ challenge, rpId, keys }) =>
  navigator.credentials.get({
    publicKey: {
      rpId,
      challenge: bytes(challenge),
      allowCredentials: keys.map(({ id, transports }) => ({ type: 'public-key', id: bytes(id), transports })),
      userVerification: 'preferred',
    },
  })

const answerOf = ({ id, rawId, type, response }) => {
  const { clientDataJSON, attestationObject, authenticatorData, signature, userHandle } = response
  const part = (name, buffer) => (buffer ? { [name]: text(buffer) } : {})
  return {
    id,
    rawId: text(rawId),
    type,
    clientExtensionResults: {},
    response: {
      clientDataJSON: text(clientDataJSON),
      ...part('attestationObject', attestationObject),
      ...part('authenticatorData', authenticatorData),
      ...part('signature', signature),
      ...part('userHandle', userHandle),
      ...(response.getTransports ? { transports: response.getTransports() } : {}),
    },
  }
}

for (const form of document.querySelectorAll('form[data-key]')) {
  const request = JSON.parse(form.dataset.key)
  const [button, failure] = [form.querySelector('button'), form.querySelector('.alert')]
  const field = form.querySelector('[name=answer0]')
  form.addEventListener('submit', async (event) => {
    if (field.value !== '') return
    event.preventDefault()
    failure.hidden = true
    button.disabled = true
    try {
      field.value = JSON.stringify(answerOf(await (request.keys ? get(request) : create(request))))
      form.submit()
    } catch {
      failure.hidden = false
      button.disabled = false
      button.focus()
    }
  })
  button.disabled = !window.PublicKeyCredential
}
`
