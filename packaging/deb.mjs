/** The package for Debian, by dpkg-deb alone: what debhelper would do is a handful of files. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { openToAll, within } from './program.mjs'

const DEBIAN = join(import.meta.dirname, 'debian')
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' }
const CONFFILES = ['/etc/sallyport/sallyport.yaml', '/etc/logrotate.d/sallyport']
/** Where each shell looks for the completion of packages. */
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/sallyport',
  zsh: 'usr/share/zsh/vendor-completions/_sallyport',
  fish: 'usr/share/fish/vendor_completions.d/sallyport.fish',
}
const PAGES = ['man1/sallyport.1', 'man5/sallyport.yaml.5']

/**
 * Makes the package in the folder `out`, and returns its path. `layOut` puts the product into the folder that it gets,
 * `root` has configuration and pages, `epoch` is the time of all files in seconds.
 */
export function buildDeb({ root, layOut, version, cpu, out, epoch }) {
  const tree = mkdtempSync(join(tmpdir(), 'sallyport-deb-'))
  try {
    const program = join(tree, 'usr', 'lib', 'sallyport')
    layOut(program)
    mkdirSync(join(tree, 'usr', 'bin'), { recursive: true })
    symlinkSync('../lib/sallyport/bin/sallyport', join(tree, 'usr', 'bin', 'sallyport'))
    layOutSystem(root, tree, version, epoch)
    for (const [shell, path] of Object.entries(COMPLETIONS)) {
      const command = join(program, 'bin', 'sallyport')
      writeFileSync(within(tree, path), execFileSync(command, ['completion', shell]))
    }
    openToAll(tree)
    writeControl(tree, version, ARCHITECTURES[cpu])
    const file = join(out, `sallyport_${version}_${ARCHITECTURES[cpu]}.deb`)
    const draft = `${file}.new`
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z3', '--build', tree, draft], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
    })
    renameSync(draft, file)
    return file
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

/** Puts in place what the system reads: unit, configuration, pages. */
function layOutSystem(root, tree, version, epoch) {
  const config = readFileSync(join(root, 'config', 'sallyport.yaml'), 'utf8')
  const placed = config.replace(/^data_dir: .*/m, 'data_dir: /var/lib/sallyport')
  writeFileSync(within(tree, 'etc/sallyport/sallyport.yaml'), placed)
  cpSync(join(DEBIAN, 'logrotate'), within(tree, 'etc/logrotate.d/sallyport'))
  cpSync(join(root, 'config', 'sallyport.service'), within(tree, 'lib/systemd/system/sallyport.service'))
  cpSync(join(DEBIAN, 'lintian-overrides'), within(tree, 'usr/share/lintian/overrides/sallyport'))
  for (const page of PAGES) {
    const text = readFileSync(join(root, 'man', page.split('/')[1]))
    writeFileSync(within(tree, `usr/share/man/${page}.gz`), gzipSync(text, { level: 9 }))
  }
  const documents = 'usr/share/doc/sallyport'
  cpSync(join(DEBIAN, 'copyright'), within(tree, `${documents}/copyright`))
  const date = new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')
  const changes = `sallyport (${version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- the authors of Sallyport <sallyport@localhost>  ${date}\n`
  writeFileSync(within(tree, `${documents}/changelog.gz`), gzipSync(changes, { level: 9 }))
  writeFileSync(
    within(tree, `${documents}/CHANGELOG.md.gz`),
    gzipSync(readFileSync(join(root, 'CHANGELOG.md')), { level: 9 }),
  )
  for (const name of readdirSync(join(root, 'docs'))) {
    if (name.endsWith('.md')) cpSync(join(root, 'docs', name), within(tree, `${documents}/${name}`))
  }
}

function writeControl(tree, version, architecture) {
  const files = filesOf(tree)
  const size = Math.ceil(files.reduce((sum, { size }) => sum + size, 0) / 1024)
  const sums = files
    .filter(({ path, isLink }) => !isLink && !CONFFILES.includes(`/${path}`))
    .map(
      ({ path }) =>
        `${createHash('md5')
          .update(readFileSync(join(tree, path)))
          .digest('hex')}  ${path}\n`,
    )
  const control = join(tree, 'DEBIAN')
  mkdirSync(control, { mode: 0o755 })
  const fields = [
    'Package: sallyport',
    `Version: ${version}`,
    'Section: admin',
    'Priority: optional',
    `Architecture: ${architecture}`,
    'Maintainer: the authors of Sallyport <sallyport@localhost>',
    `Installed-Size: ${size}`,
    'Depends: adduser, libc6 (>= 2.28), libstdc++6 (>= 9)',
    'Recommends: logrotate',
    'Suggests: ffmpeg, age',
    'Description: privileged-access bastion for SSH, Telnet, rlogin, VNC and RDP',
    ' Users of ordinary clients reach targets by this bastion, which signs in there',
    ' with credentials that they never see, holds each session to rights, records it,',
    ' and writes every decision to a chained audit log.',
  ]
  writeFileSync(join(control, 'control'), `${fields.join('\n')}\n`, { mode: 0o644 })
  writeFileSync(join(control, 'conffiles'), `${CONFFILES.join('\n')}\n`, { mode: 0o644 })
  // For `dpkg --verify`.
  writeFileSync(join(control, 'md5sums'), sums.join(''), { mode: 0o644 })
  for (const name of ['postinst', 'prerm', 'postrm']) {
    cpSync(join(DEBIAN, name), join(control, name))
    chmodSync(join(control, name), 0o755)
  }
}

/** Returns the files below a folder, by their paths in it. */
function filesOf(folder, below = '') {
  return readdirSync(join(folder, below))
    .sort()
    .flatMap((name) => {
      const path = join(below, name)
      const stat = lstatSync(join(folder, path))
      if (stat.isDirectory()) return filesOf(folder, path)
      return [{ path, size: stat.size, isLink: stat.isSymbolicLink() }]
    })
}
