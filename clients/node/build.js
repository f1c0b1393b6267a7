'use strict'
// Compiles addon.c with the C compiler and what pkg-config says of libsqlcached. Node's headers come from the package
// node-api-headers: an addon that keeps to Node-API needs no others, and runs with every Node since 18.

const { execFileSync } = require('node:child_process')
const { mkdirSync } = require('node:fs')
const { join } = require('node:path')
const headers = require('node-api-headers').include_dir

const words = (text) => text.split(/\s+/).filter(Boolean)

function pkgConfig(...questions) {
  try {
    return words(execFileSync('pkg-config', [...questions, 'sqlcached'], { encoding: 'utf8' }))
  } catch {
    console.error("pkg-config does not find libsqlcached; install it with 'make install-client' in sqlcached's sources")
    process.exit(1)
  }
}

mkdirSync(join(__dirname, 'build'), { recursive: true })
const flags = ['-std=c11', '-fPIC', '-shared', '-Wall', '-Wextra', ...words(process.env.CFLAGS ?? '-O2')]
const files = [join(__dirname, 'addon.c'), '-o', join(__dirname, 'build', 'sqlcached.node')]
execFileSync(process.env.CC ?? 'cc', [...flags, `-I${headers}`, ...pkgConfig('--cflags'), ...files, ...pkgConfig('--libs')], {
  stdio: 'inherit',
})
