import { fileURLToPath } from 'node:url';
import type { BuildOptions, Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Removes zod messages in languages other than English, which are a third of the bundle and unused. */
const englishOnly: Plugin = {
  name: 'english-only',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: "export { default as en } from './en.js';" }));
  },
};

/**
 * Bundle options of the simulated wallet, and of pages with it, for browsers: without code generation at runtime, which a strict content
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
