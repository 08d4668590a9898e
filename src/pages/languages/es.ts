/** Spanish. */
import type { Messages } from './en.ts'

export const es: Messages = {
  name: 'Español',
  signIn: {
    title: 'Iniciar sesión',
    lead: 'Este bastión registra quién accede a qué sistema.',
    user: 'Nombre de usuario',
    password: 'Contraseña',
    submit: 'Iniciar sesión',
    or: 'o',
    negotiate: 'Entrar con la cuenta de este equipo (Kerberos)',
    provider: (name) => `Entrar con ${name}`,
    lastUsed: 'usado la última vez',
    goOn: 'Continuar',
    cancel: 'Empezar de nuevo',
    round: 'Un paso más',
    answer: 'Respuesta',
    noTicket:
      'El navegador no ha mostrado ningún ticket. Su configuración debe nombrar esta dirección como de confianza para Kerberos, y este equipo necesita un ticket.',
    expired:
      'Este formulario estuvo abierto demasiado tiempo, o venía de otra página. Inicie sesión de nuevo.',
    signedOut: 'Ha cerrado la sesión.',
  },
  code: {
    title: 'Código de un solo uso',
    text: 'Abra su autenticador y escriba el código que muestra.',
    label: 'Código de un solo uso, o un código de recuperación',
  },
  enrol: {
    title: 'Configure su segundo factor',
    text: 'Necesita un segundo factor. Escanee esto con una aplicación de autenticación, o escriba en ella el secreto.',
    again: 'Ese no era el código actual. Pruebe con el siguiente.',
    picture: 'Código QR para el autenticador',
    secret: 'Secreto',
    label: 'Primer código del autenticador',
  },
  recovery: {
    title: 'Sus códigos de recuperación',
    text: 'Cada uno le permite entrar una vez sin el autenticador. Guárdelos en un lugar seguro: no se mostrarán otra vez.',
    noted: 'Los he anotado',
  },
  account: {
    title: 'Su cuenta',
    signedInAs: 'Sesión iniciada como',
    profile: 'Perfil',
    signOut: 'Cerrar sesión',
  },
  errors: {
    title: 'Esto no ha funcionado',
    back: 'Volver al inicio',
    not_found: 'Esta página no existe, o no puede verla.',
    forbidden: 'No puede hacer esto.',
    cross_site:
      'Esto no vino de una página de este bastión, o la página estuvo abierta demasiado tiempo. Ábrala de nuevo.',
    busy: 'Demasiadas peticiones a la vez. Inténtelo de nuevo en un momento.',
    unavailable: 'El bastión no puede hacerlo ahora. Inténtelo de nuevo en unos minutos.',
    invalid: 'El navegador ha enviado algo que esta página no acepta.',
    internal: 'El bastión ha fallado. Su registro dice más.',
    invalid_credentials:
      'El nombre de usuario o la contraseña son incorrectos, o el usuario no puede iniciar sesión.',
    sign_in_unavailable:
      'No se puede contactar con los servidores que juzgan este inicio de sesión. Nada se ha contado en su contra: inténtelo de nuevo en unos minutos.',
  },
}
