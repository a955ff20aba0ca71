import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Authorities } from '../demo/authorities.ts';
import { findCredoWallets } from '../support/credo.ts';
import { loadOracles } from '../support/oracles.ts';
import { runWalletFlows } from './judge-wallet.ts';
import type { Options, ToolName } from './options.ts';
import { judgeByReaders, READER_TOOLS } from './readers.ts';
import { runProgram, runSchemathesis } from './run-program.ts';
import type { ServiceUnderTest } from './service.ts';
import type { Row, Tool } from './verdict.ts';
import type { WalletUnderTest } from './wallet.ts';
import { Credo } from './wallets/credo.ts';
import { EudiDev } from './wallets/eudi-dev.ts';
import { OpenidPackages } from './wallets/openid-packages.ts';

type ToolContext = {
  readonly service: ServiceUnderTest;
  readonly authorities: Authorities;
  readonly backend: string;
  readonly tell: (row: Row) => void;
};
type ToolResult = { readonly tools: readonly Tool[]; readonly rows: readonly Row[] };

/** One tool, or several that are run together. @throws Error when it cannot be had. */
export type InteroperabilityTool = { readonly name: ToolName; readonly about: string; run(context: ToolContext): Promise<ToolResult> };

/** Those that are wanted, in the order of the page. */
export function selectTools({ tools, only, examples }: Options): readonly InteroperabilityTool[] {
  const allJudges: readonly InteroperabilityTool[] = [
    {
      name: 'eudi-dev',
      about: 'a test wallet in Go',
      run: async (context) => runWallet(await startEudiDev(tools, context.authorities), context),
    },
    {
      name: '@openid4vc',
      about: 'packages of the OpenWallet Foundation',
      run: (context) => runWallet(new OpenidPackages(context.authorities), context),
    },
    {
      name: 'Credo',
      about: 'a framework of the OpenWallet Foundation',
      run: (context) => {
        const wallets = findCredoWallets();
        if (wallets === undefined) throw new Error('npm ci --prefix test/wallets/credo');
        return runWallet(new Credo(wallets, context.authorities), context);
      },
    },
    { name: 'readers', about: 'readers of credentials', run: runReaders },
    {
      name: 'Schemathesis',
      about: 'generated requests',
      run: async () => {
        const { tool, row } = await runSchemathesis(findProgram(tools, 'schemathesis'), examples);
        return { tools: [tool], rows: [row] };
      },
    },
  ];
  return only.length === 0 ? allJudges : allJudges.filter(({ name }) => only.includes(name));
}

async function runWallet(wallet: WalletUnderTest, { service, authorities, backend, tell }: ToolContext): Promise<ToolResult> {
  try {
    const rows = await runWalletFlows(wallet, service, { authorities, backend }, tell);
    return { tools: [wallet.tool], rows };
  } finally {
    await wallet.close();
  }
}

async function runReaders({ service, authorities, backend, tell }: ToolContext): Promise<ToolResult> {
  const oracles = loadOracles();
  if (oracles === undefined) throw new Error('npm ci --prefix test/oracles');
  return { tools: READER_TOOLS, rows: await judgeByReaders(oracles, service, { authorities, backend }, tell) };
}

/** A program that was built from a commit does not know which; `eudi-dev.version` beside it may say so. */
async function startEudiDev(tools: string | undefined, authorities: Authorities): Promise<EudiDev> {
  const program = findProgram(tools, 'eudi-dev');
  const note = `${program}.version`;
  const versionText = existsSync(note) ? readFileSync(note, 'utf8') : (await runProgram(program, ['version'], 10)).output;
  return EudiDev.start(program, { version: versionText.trim().split('\n')[0] ?? '?', authorities });
}

/** @throws Error when there is none. */
function findProgram(folder: string | undefined, name: string): string {
  if (folder === undefined) throw new Error('--tools or VIDIMUS_JUDGE_TOOLS names no folder');
  const program = join(folder, name);
  if (!existsSync(program)) throw new Error(`there is no program ${name} in the folder of the tools`);
  return program;
}
