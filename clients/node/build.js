'use strict'
// Compiles addon.c with the C compiler and what pkg-config says of libsqlcached. Node's headers come from the package
// node-api-headers: an addon that keeps to Node-API needs no others, and runs with every Node since 18.

const { execFileSync } = require('node:child_process')
const { mkdirSync } = require('node:fs')
const { join } = require('node:path')

/**
 * Where Node-API's headers are. npm runs the script of a package that is a folder (`npm install ./clients/node`) before
 * it has installed what the package depends on; then that is done here.
 */
function headers() {
  try {
    return require('node-api-headers').include_dir
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error
  }
  // Such an npm tells its scripts what it was asked to do itself.
  const own = ['npm_config_global', 'npm_config_dry_run', 'npm_config_local_prefix', 'npm_config_prefix']
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.includes(name)))
  const npm = process.env.npm_execpath?.includes('npm') ? [process.execPath, process.env.npm_execpath] : ['npm']
  const [program, ...words] = [...npm, 'install', '--ignore-scripts', '--no-save', '--no-audit', '--no-fund']
  execFileSync(program, words, { cwd: __dirname, env, stdio: 'inherit' })
  return require('node-api-headers').include_dir
}

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
execFileSync(process.env.CC ?? 'cc', [...flags, `-I${headers()}`, ...pkgConfig('--cflags'), ...files, ...pkgConfig('--libs')], {
  stdio: 'inherit',
})
