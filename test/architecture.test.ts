import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { describeLayer, folderCycles, folderGraph } from './support/folder-graph.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const rules = createRequire(import.meta.url)('../.dependency-cruiser.cjs') as { forbidden: unknown[]; options: Record<string, unknown> };
const LAYERS = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'packages', 'tools'];

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
  let wholeTree: ICruiseResult;
  before(async () => {
    wholeTree = await violations(LAYERS);
  });

  it('rejects imports that a layer must not make', () => {
    const { summary, modules } = wholeTree;
    expect(modules.filter((module) => module.source.startsWith('domain/')).length).to.be.greaterThan(20);
    expect(summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)).to.deep.equal([]);
  });

  it('has no cycle of folders, type imports included', () => {
    const graph = folderGraph(wholeTree.modules);
    expect(graph.size).to.be.greaterThan(40);
    expect(folderCycles(graph)).to.deep.equal([]);
    for (const layer of ['domain', 'application']) console.log(`${layer}\n${describeLayer(graph, layer)}`);
  });

  it('detects a cycle of files or folders that consists of type imports only', async () => {
    const [firstModule, secondModule] = [`${root}domain/planted-one`, `${root}domain/planted-other`];
    for (const folder of [firstModule, secondModule]) mkdirSync(folder, { recursive: true });
    try {
      writeFileSync(`${firstModule}/a.ts`, "import type { B } from '../planted-other/b.ts';\nexport type A = { b: B };\n");
      writeFileSync(`${secondModule}/b.ts`, "import type { C } from '../planted-one/c.ts';\nexport type B = { c: C };\n");
      writeFileSync(`${firstModule}/c.ts`, "import type { D } from './d.ts';\nexport type C = { d: D };\n");
      writeFileSync(`${firstModule}/d.ts`, "import type { C } from './c.ts';\nexport type D = { c?: C };\n");
      const { summary, modules } = await violations(['domain/planted-one', 'domain/planted-other']);
      const cycles = summary.violations.filter(({ rule }) => rule.name === 'no-cycles');
      expect(cycles.map(({ from }) => from)).to.deep.equal(['domain/planted-one/c.ts']);
      expect(folderCycles(folderGraph(modules))).to.deep.equal([['domain/planted-one', 'domain/planted-other']]);
    } finally {
      for (const folder of [firstModule, secondModule]) rmSync(folder, { recursive: true, force: true });
    }
  });

  // Without a parser that knows TypeScript the tool sees no file and passes everything.
  it('detects a planted violation of every rule', async () => {
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

  it('detects an import of any module in the client', async () => {
    const file = `${root}packages/client/src/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../../application/ports/store.ts';\nimport { jwtVerify } from 'jose';\n" +
          "import { readFileSync } from 'node:fs';\nexport const planted = [Store, jwtVerify, readFileSync];\n",
      );
      const { summary } = await violations(['packages/client/src']);
      const targets = summary.violations.map(({ rule, to }) => `${rule.name} ${to}`);
      expect(targets).to.have.length(3);
      for (const target of targets) expect(target).to.match(/^client-stands-alone /);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('detects an import of service code in the console', async () => {
    const file = `${root}packages/console/src/pages/planted.tsx`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../../../application/ports/store.ts';\nimport express from 'express';\n" +
          'export const planted = <p>{[Store, express].length}</p>;\n',
      );
      const { summary } = await violations(['packages/console/src']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members(['console-is-a-program-of-browsers', 'console-packages']);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('detects an import in the error reference, which the console bundles', async () => {
    const file = `${root}domain/shared/error-reference.planted.ts`;
    try {
      writeFileSync(file, "import { FAILURE_CODES } from './failure.ts';\nexport const planted = FAILURE_CODES;\n");
      const { summary } = await violations(['domain/shared/error-reference.planted.ts']);
      expect(summary.violations.map(({ rule, to }) => `${rule.name} ${to}`)).to.deep.equal([
        'error-reference-is-data domain/shared/failure.ts',
      ]);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('detects an import of service code in the attack tool', async () => {
    const file = `${root}packages/attack/src/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../../application/ports/store.ts';\nimport express from 'express';\n" +
          "import { SimulatedWallet } from '../../wallet/src/core/index.ts';\n" +
          'export const planted = [Store, express, SimulatedWallet];\n',
      );
      const { summary } = await violations(['packages/attack/src']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members(['attack-tool-is-independent', 'attack-tool-packages']);
      const targets = summary.violations.filter(({ rule }) => rule.name === 'attack-tool-is-independent').map(({ to }) => to);
      expect(targets).to.have.members(['application/ports/store.ts', 'packages/wallet/src/core/index.ts']);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('detects an import of the wallet in the shared encodings', async () => {
    const file = `${root}packages/wallet/src/core/formats/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { base64url } from 'jose';\nimport { newKey } from '../keys.ts';\nexport const planted = [base64url, newKey];\n",
      );
      const { summary } = await violations(['packages/wallet/src']);
      expect(summary.violations.map(({ rule }) => rule.name)).to.deep.equal(['shared-formats-are-small', 'shared-formats-are-small']);
    } finally {
      rmSync(file, { force: true });
    }
  });

  it('detects an import of service code or a Node module in the simulated wallet', async () => {
    const file = `${root}packages/wallet/src/core/planted.ts`;
    try {
      writeFileSync(
        file,
        "import { Store } from '../../../../application/ports/store.ts';\n" +
          "import { readFileSync } from 'node:fs';\nexport const planted = [Store, readFileSync];\n",
      );
      const { summary } = await violations(['packages/wallet/src']);
      const names = summary.violations.map(({ rule }) => rule.name);
      expect(names).to.include.members(['simulated-wallet-is-independent', 'simulated-wallet-runs-in-browsers']);
    } finally {
      rmSync(file, { force: true });
    }
  });
});
