import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { cruise, type ICruiseResult } from 'dependency-cruiser';

const root = fileURLToPath(new URL('..', import.meta.url));
const rules = createRequire(import.meta.url)('../.dependency-cruiser.cjs') as {
  forbidden: unknown[];
  options: Record<string, unknown>;
};
const LAYERS = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'client', 'tools'];

async function violations(paths: string[]): Promise<ICruiseResult> {
  const { output } = await cruise(paths, {
    ...rules.options,
    baseDir: root,
    validate: true,
    ruleSet: { forbidden: rules.forbidden },
  } as never);
  return output as ICruiseResult;
}

describe('architecture', () => {
  it('keeps the layers apart', async () => {
    const { summary, modules } = await violations(LAYERS);
    expect(modules.filter((module) => module.source.startsWith('domain/')).length).to.be.greaterThan(20);
    expect(summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)).to.deep.equal(
      [],
    );
  });

  // Without a parser that knows TypeScript the tool sees no file and passes everything.
  it('notices a planted violation of every kind', async () => {
    const folder = `${root}domain/planted-violation`;
    mkdirSync(folder, { recursive: true });
    try {
      writeFileSync(
        `${folder}/planted.ts`,
        "import { Store } from '../../application/ports/store.ts';\nimport express from 'express';\n" +
          "import { readFileSync } from 'node:fs';\nexport const planted = [Store, express, readFileSync];\n",
      );
      const { summary } = await violations(['domain/planted-violation']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members(['domain-is-pure', 'domain-packages', 'domain-builtins']);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('notices when the client needs anything', async () => {
    const file = `${root}client/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../application/ports/store.ts';\nimport { jwtVerify } from 'jose';\n" +
          "import { readFileSync } from 'node:fs';\nexport const planted = [Store, jwtVerify, readFileSync];\n",
      );
      const { summary } = await violations(['client']);
      const targets = summary.violations.map(({ rule, to }) => `${rule.name} ${to}`);
      expect(targets).to.have.length(3);
      for (const target of targets) expect(target).to.match(/^client-stands-alone /);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('notices when the console looks inside', async () => {
    const file = `${root}adapters/http/console/app/pages/planted.tsx`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../../../../application/ports/store.ts';\nimport express from 'express';\n" +
          'export const planted = <p>{[Store, express].length}</p>;\n',
      );
      const { summary } = await violations(['adapters/http/console/app']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members(['console-is-a-program-of-browsers', 'console-packages']);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('notices when the attack tool looks inside', async () => {
    const file = `${root}tools/attack/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../application/ports/store.ts';\nimport express from 'express';\n" +
          'export const planted = [Store, express];\n',
      );
      const { summary } = await violations(['tools/attack']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members(['attack-tool-is-independent', 'attack-tool-packages']);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('notices when the simulated wallet looks inside, or needs Node', async () => {
    const file = `${root}tools/wallet/core/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../../application/ports/store.ts';\n" +
          "import { readFileSync } from 'node:fs';\nexport const planted = [Store, readFileSync];\n",
      );
      const { summary } = await violations(['tools/wallet']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members([
        'simulated-wallet-is-independent',
        'simulated-wallet-runs-in-browsers',
      ]);
    } finally {
      rmSync(file, { force: true });
    }
  });
});
