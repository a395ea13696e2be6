// SPDX-License-Identifier: Apache-2.0
//
// cacache, the cache of npm, as it is shipped in it: addressed by content, sha512 checked on every read, no fsync. Its
// memoization is off, as that of the others is. CACACHE in the environment says where it is.

const fs = require('fs')
const cacache = require(process.env.CACACHE)

const a = { op: process.argv[2], dir: 'data/x', variant: '', sync: 'default', system: 'cacache', workload: '', size: 4096, n: 20000, procs: 1, proc: 0, threads: 1, seed: 1, secs: 1, cap: 30, 'warm-ms': 300, handshake: false }
for (let i = 3; i < process.argv.length; i++) {
  const name = process.argv[i].slice(2)
  if (name === 'handshake') a.handshake = true
  else {
    const value = process.argv[++i]
    a[name] = typeof a[name] === 'number' ? +value : value
  }
}

const draws = 65536
const key = i => 'user:' + String(i).padStart(8, '0') + '/thumb'
const now = () => { const [s, n] = process.hrtime(); return s * 1e9 + n }

// mulberry32
function random (seed) {
  let state = seed | 0
  return () => {
    state = state + 0x6D2B79F5 | 0
    let t = Math.imul(state ^ state >>> 15, 1 | state)
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t
    return ((t ^ t >>> 14) >>> 0) / 4294967296
  }
}

function permutation (n, next) {
  const order = Array.from({ length: n }, (_, i) => i)
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1))
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}

function zipf (next) {
  const keys = permutation(a.n, random(424242))
  const sums = new Float64Array(a.n)
  let total = 0
  for (let i = 0; i < a.n; i++) sums[i] = total += 1 / Math.pow(i + 1, 0.99)
  return Array.from({ length: draws }, () => {
    const u = next() * total
    let low = 0
    let high = a.n - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle] < u) low = middle + 1
      else high = middle
    }
    return keys[low]
  })
}

function bucket (v) {
  if (v < 64) return v
  const e = Math.floor(Math.log2(v))
  return e > 40 ? 2303 : (e - 5) * 64 + (Math.floor(v / 2 ** (e - 6)) & 63)
}

function handshake () {
  if (!a.handshake) return
  fs.writeSync(1, 'READY\n')
  const line = Buffer.alloc(64)
  for (;;) {
    try {
      if (!fs.readSync(0, line, 0, 64)) process.exit(3)
      return
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

// Another content for each key and put: what is addressed by content would be there already.
const noise = Buffer.alloc(a.size)
{ const next = random(12345); for (let i = 0; i < a.size; i++) noise[i] = next() * 256 }
function value (i, version) {
  noise.writeUInt32LE(i, 0)
  noise.writeUInt32LE(version, 4)
  return noise
}

async function read (i) {
  try {
    return (await cacache.get(a.dir, key(i), { memoize: false })).data
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

const result = { system: a.system, workload: a.workload, op: a.op, variant: a.variant, sync: a.sync, size: a.size, procs: a.procs, proc: a.proc, threads: a.threads }
const times = []
let hits = 0
let miss = 0
let errs = 0

function check (data, i) {
  if (!data) miss++
  else if (data.length === a.size && data.readUInt32LE(0) === i) hits++
  else errs++
}

async function get (next) {
  const offset = a.op === 'get_miss' ? a.n : 0
  const order = permutation(a.n, next)
  let end = now() + a['warm-ms'] * 1e6
  if (!offset) for (const i of order) { await read(i); if (now() > end) break }
  const begin = start()
  end = begin + a.secs * 1e9
  let previous = begin
  while (previous < end) {
    for (const i of order) {
      const data = await read(i + offset)
      const t = now()
      times.push(t - previous)
      previous = t
      if (offset && data) errs++
      else check(data, i)
      if (t >= end) break
    }
  }
  return previous
}

async function put () {
  const order = permutation(a.n, random(a.seed * 131 + 999)).slice(Math.floor(a.n * a.proc / a.procs), Math.floor(a.n * (a.proc + 1) / a.procs))
  let end = start()
  const cap = end + a.cap * 1e9
  for (const i of order) {
    const data = value(i, a.op === 'put_over' ? a.seed : 0)
    const begin = now()
    await cacache.put(a.dir, key(i), data)
    end = now()
    times.push(end - begin)
    if (end >= cap) break
  }
  return end
}

async function mixed (next) {
  const order = zipf(next)
  let version = a.seed * 1000 + a.proc
  let previous = start()
  const end = previous + a.secs * 1e9
  for (let j = 0; previous < end; j++) {
    const i = order[j % draws]
    if (next() < 0.1) await cacache.put(a.dir, key(i), value(i, version += 16))
    else check(await read(i), i)
    const t = now()
    times.push(t - previous)
    previous = t
  }
  return previous
}

async function fill () {
  for (let i = 0; i < a.n; i += 32) {
    const some = []
    for (let j = i; j < Math.min(i + 32, a.n); j++) some.push(cacache.put(a.dir, key(j), Buffer.from(value(j, 0))))
    await Promise.all(some)
  }
}

async function openFirst () {
  const i = a.seed * 7919 % a.n
  handshake()
  const begin = now()
  const data = await read(i)
  const time = now() - begin
  check(data, i)
  Object.assign(result, { ops: 1, open_ns: 0, first_get_ns: time, p50_ns: time, ok: hits })
}

let usage
function start () {
  handshake()
  usage = process.cpuUsage()
  result.t0 = now()
  return result.t0
}

function finish (end) {
  const used = process.cpuUsage(usage)
  const sorted = Float64Array.from(times).sort()
  const n = sorted.length
  let sum = 0
  for (const t of sorted) sum += t
  Object.assign(result, { ops: n, errs, hits, miss, p50_ns: sorted[n >> 1], p99_ns: sorted[Math.floor(n * 0.99)], mean_ns: sum / Math.max(1, n), ops_per_s: n / Math.max(1e-9, (end - result.t0) / 1e9), t1: end, ucpu: used.user * 1e3, scpu: used.system * 1e3 })
  if (!a.handshake) return
  const counts = new Map()
  for (const t of times) counts.set(bucket(t), (counts.get(bucket(t)) || 0) + 1)
  result.hist = [...counts.entries()].sort((x, y) => x[0] - y[0])
}

async function main () {
  const next = random(a.seed * 2654435761 ^ a.proc * 40503)
  if (a.op === 'fill') await fill()
  else if (a.op === 'open_first') await openFirst()
  else if (a.op === 'get_hit' || a.op === 'get_miss') finish(await get(next))
  else if (a.op === 'put_new' || a.op === 'put_over') finish(await put())
  else if (a.op === 'mixed') finish(await mixed(next))
  else throw new Error('no operation ' + a.op)
  console.log(JSON.stringify(result))
}

main().catch(error => { console.error(String(error)); process.exit(1) })
