// SPDX-License-Identifier: BSD-2-Clause
// build.mjs [FOLDER]: makes dist/page.js and dist/page.css (or in FOLDER) from src.
import { build } from 'esbuild';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, 'dist');
const spdx = '/* SPDX-License-Identifier: BSD-2-Clause */';

await build({
    absWorkingDir: here,
    entryPoints: ['src/page.ts', 'src/page.css'],
    outdir: out,
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['es2022'],
    charset: 'ascii',
    legalComments: 'none',
    banner: { js: spdx, css: spdx },
});
