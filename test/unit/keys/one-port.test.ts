import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** What makes a signature with a private key. */
const SIGNING = [
  /import\s*(?:type\s*)?\{[^}]*(?<![\w.])sign\b[^}]*\}\s*from\s*'node:crypto'/,
  /\b(?:createSign|privateEncrypt|SignJWT|CompactSign|FlattenedSign|GeneralSign)\b/,
  /\bsubtle\.sign\b/,
];

/** Files of the product that sign, or could. */
function signers(files: readonly { readonly path: string; readonly text: string }[]): string[] {
  return files.filter(({ text }) => SIGNING.some((pattern) => pattern.test(text))).map(({ path }) => path);
}

describe('private keys', () => {
  it('sign in key providers alone, so that a key elsewhere is never gone round', () => {
    const paths = globSync(
      ['domain', 'application', 'adapters', 'bootstrap', 'config'].map((layer) => `${layer}/**/*.ts`),
      {
        cwd: ROOT,
      },
    );
    const files = paths.map((path) => ({ path, text: readFileSync(`${ROOT}/${path}`, 'utf8') }));
    expect(files.length).to.be.greaterThan(300);
    const found = signers(files);
    expect(found).to.include('adapters/kms/local/local-kms.ts');
    expect(found.filter((path) => !path.startsWith('adapters/kms/'))).to.deep.equal([]);
  });

  it('would be noticed elsewhere', () => {
    const planted = [
      "import { hash, sign } from 'node:crypto';",
      "import {\n  createHash,\n  sign as makeSignature,\n} from 'node:crypto';",
      "import { SignJWT } from 'jose';",
      'await webcrypto.subtle.sign(a, b, c)',
    ];
    for (const text of planted) expect(signers([{ path: 'planted.ts', text }]), text).to.have.length(1);
    expect(signers([{ path: 'x.ts', text: "import { signingKey } from './signing-key.ts';" }])).to.deep.equal(
      [],
    );
  });
});
