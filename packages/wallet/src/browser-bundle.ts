import { fileURLToPath } from 'node:url';
import type { BuildOptions, Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Messages in other languages than English, a third of the bundle, which nobody asks zod for here. */
const englishOnly: Plugin = {
  name: 'english-only',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};

/**
 * How the simulated wallet, or a page with it, is bundled for browsers: without code that compiles code, which a strict content
 * security policy reports.
 */
export const BROWSER_OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2024',
  minify: true,
  legalComments: 'none',
  alias: { 'cbor-x': 'cbor-x/index-no-eval' },
  plugins: [englishOnly],
} satisfies BuildOptions;
