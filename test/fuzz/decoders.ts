import { globSync, readFileSync } from 'node:fs';

/** Files with parsers of untrusted bytes. */
const PLACES = [
  'domain/formats/**/*.ts',
  'domain/{status-lists,oauth,issuance,verification,trust-lists,registrar}/**/*.ts',
  'domain/shared/{base64url,json,jwk,utf8,web-address}.ts',
  'config/import/{parse-document,placeholders}.ts',
  'adapters/http/input/read-form.ts',
];
const DECODER = /^export function ((?:open|read|parse|decode|decompress)(?:[A-Z]\w*)?)\b/gm;

/** Decoders that no target runs, and why. */
export const NOT_FUZZED: ReadonlyMap<string, string> = new Map([
  ['domain/trust-lists/internal-address.ts#parseInternalTrustListAddress', 'It compares an address of the configuration with one pattern.'],
]);

/** Every function that takes something apart, as `<file>#<name>`: those that are exported and are called so. */
export function decoders(root: URL): readonly string[] {
  const files = globSync(PLACES, { cwd: root }).sort();
  return files.flatMap((file) => {
    const source = readFileSync(new URL(file, root), 'utf8');
    return Array.from(source.matchAll(DECODER), ([, name]) => `${file}#${name}`);
  });
}
