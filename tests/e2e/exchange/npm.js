// SPDX-License-Identifier: BSD-2-Clause
// npm.js NODE_MODULES pprof|speedscope FILE: reads FILE with packages of npm. pprof: prints folded
// stacks. speedscope: checks it against the schema that speedscope ships, which must also refuse a
// wrong file.
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const [modules, format, file] = process.argv.slice(2);
const load = (name) => require(path.join(modules, name));

function pprof() {
    const { Profile } = load('pprof-format');
    const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
    const str = (i) => p.stringTable.strings[Number(i)];
    const functions = new Map(p.function.map((f) => [String(f.id), str(f.name)]));
    const locations = new Map(p.location.map((l) =>
        [String(l.id), functions.get(String(l.line[0].functionId))]));
    const sum = new Map();
    for (const s of p.sample) {
        const stack = s.locationId.map((id) => locations.get(String(id))).reverse().join(';');
        sum.set(stack, (sum.get(stack) || 0) + Number(s.value[0]));
    }
    for (const [stack, value] of sum) console.log(`${stack} ${value.toFixed(3)}`);
}

function schema() {
    const find = (dir) => fs.readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
        e.isDirectory() ? find(path.join(dir, e.name)) : path.join(dir, e.name));
    const name = find(path.join(modules, 'speedscope')).find((f) => f.endsWith('file-format-schema.json'));
    const Ajv = load('ajv');
    const valid = new (Ajv.default || Ajv)({ strict: false }).compile(JSON.parse(fs.readFileSync(name)));
    const doc = JSON.parse(fs.readFileSync(file));
    if (!valid(doc)) throw new Error(JSON.stringify(valid.errors));
    doc.profiles[0].weights = 'none';
    if (valid(doc)) throw new Error('the schema refuses nothing');
}

(format === 'pprof' ? pprof : schema)();
